#!/bin/sh
# Initialise the data directory unless it is there, give the superuser its password, serve.
#
# All of it is done in single-user mode, before anything listens: a client that gets through to the
# server gets through to the finished one.
set -eu

user="${POSTGRES_USER:-postgres}"
database="${POSTGRES_DB:-$user}"
ready="$PGDATA/.prepared"

single() {
    postgres --single -D "$PGDATA" -c fsync=off -c log_min_messages=fatal -j "$1" >/dev/null
}

if [ "${1:-postgres}" != postgres ]; then
    exec "$@"
fi
if [ ! -e "$ready" ]; then
    if [ -z "${POSTGRES_PASSWORD:-}" ]; then
        echo "entrypoint: POSTGRES_PASSWORD is not set: the superuser needs a password" >&2
        exit 1
    fi
    if [ ! -s "$PGDATA/PG_VERSION" ]; then
        initdb --pgdata "$PGDATA" --username "$user" --auth-local trust \
            --auth-host scram-sha-256 --encoding UTF8 --locale C --no-sync --no-instructions
        echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
        if [ "$database" != postgres ]; then
            printf 'CREATE DATABASE "%s"\n' "$database" | single postgres
        fi
    fi
    quoted="$(printf '%s' "$POSTGRES_PASSWORD" | sed "s/'/''/g")"
    printf "ALTER ROLE \"%s\" PASSWORD '%s'\n" "$user" "$quoted" | single postgres
    : > "$ready"
fi
unset POSTGRES_PASSWORD
shift || true
exec postgres -D "$PGDATA" -c 'listen_addresses=*' "$@"
