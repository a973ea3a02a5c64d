"""`store.py front|bench HOST PORT [DATA]`, `store.py schema`: the services of the store."""

import json
import os
import sys
import urllib.request

import psycopg

from parts import articles
from search import Catalogue, Reader
from shelves import Shelves
from web import FAULT, Refused, serve

TABLES = """
    create table if not exists shelf (edition int not null, article_no text not null, doc jsonb not null, primary key (edition, article_no));
    do $$ begin create role {role} login; exception when duplicate_object then null; end $$;
    alter role {role} nosuperuser nocreatedb nocreaterole noreplication nobypassrls password {password};
    revoke all on database {database} from public;
    grant connect on database {database} to {role};
    revoke create on schema public from public;
    revoke all on all tables in schema public from {role}, public;
    grant select on shelf to {role};
    revoke execute on function lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) from public;
"""
MEMBER_OF = """
    select g.rolname from pg_auth_members m join pg_roles g on g.oid = m.roleid
    join pg_roles r on r.oid = m.member where r.rolname = %s
"""


def front(host, port):
    """Health and the catalogue."""
    reader = Reader(os.environ["STORE_READER_URL"])
    catalogue = Catalogue(reader, os.environ["STORE_KEY"])

    def health(asked):
        """Whether database and bench answer."""
        found = {"db": "up", "bench": "up"}
        try:
            if FAULT != "database-unasked":
                reader.rows("select 1 from shelf limit 1")
        except Refused as refused:
            found["db"] = str(refused)
        try:
            with urllib.request.urlopen(f"{os.environ['STORE_BENCH']}/health", timeout=3):
                pass
        except OSError:
            found["bench"] = "does not answer"
        well = set(found.values()) == {"up"}
        return (200 if well else 503), {"status": "healthy" if well else "unhealthy", "dependencies": found}

    return {("GET", "/health"): (health, None), ("GET", "/cots/search"): (catalogue.search, None), ("GET", "/cots/prices"): (catalogue.prices, None)}


def bench(host, port, data):
    """Health and the sessions' files."""
    def health(asked):
        """Whether the files are there."""
        there = os.access(data, os.W_OK)
        return (200 if there else 503), {"status": "healthy" if there else "unhealthy", "dependencies": {"files": "up" if there else "gone"}}

    return {("GET", "/health"): (health, None), **Shelves(data).routes()}


def schema():
    """The table, the role that reads it, and the first edition."""
    reader = psycopg.conninfo.conninfo_to_dict(os.environ["STORE_READER_URL"])
    with psycopg.connect(os.environ["STORE_URL"]) as connection:
        role = psycopg.sql.Identifier(reader["user"])
        names = {"role": role, "password": psycopg.sql.Literal(reader["password"]), "database": psycopg.sql.Identifier(reader["dbname"])}
        connection.execute(psycopg.sql.SQL(TABLES).format(**names))
        for (group,) in connection.execute(MEMBER_OF, (reader["user"],)).fetchall():
            connection.execute(psycopg.sql.SQL("revoke {} from {}").format(psycopg.sql.Identifier(group), role))
        if FAULT == "reader-writes":
            connection.execute(psycopg.sql.SQL("grant insert on shelf to {}").format(role))
        rows = [(1, each["part_id"], json.dumps(each)) for each in articles()]
        with connection.cursor() as cursor:
            cursor.executemany("insert into shelf values (%s, %s, %s) on conflict do nothing", rows)


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "schema":
        schema()
    else:
        host, port, *rest = words
        routes = {"front": front, "bench": bench}[what](host, int(port), *rest)
        serve(host, int(port), title=f"store: {what}", key=os.environ["STORE_KEY"], names=[os.environ["STORE_NAME"]], routes=routes)
