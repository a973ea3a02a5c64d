"""Disposable servers: one protocol, several providers, one conformance check.

- ``_service.py``: what every service can do (start, stop, kill, pause, resume) and its address.
- ``_postgres.py``: PostgreSQL as the rest of the harness sees it; the table of providers.
- ``_local.py``: provider *local*: server binaries as supervised children.
- ``_external.py``: provider *external*: a URL that somebody else looks after.
- ``_container.py``: provider *container*: an image, by testcontainers.
- ``_binaries.py``: where the PostgreSQL binaries are, and whether the server's user can read them.
- ``_cluster.py``: the cached initialised data directory, and its copies.
- ``_cache.py``: the per-user cache directory, and locks between processes.
- ``_protocol.py``: enough of the PostgreSQL protocol to know that a server answers.
- ``_url.py``: a PostgreSQL URL in parts.
- ``_processes.py``: the processes a server forked, which live in sessions of their own.

Every provider passes ``harness_core.testing.check_service``.
"""

from harness_core.services._binaries import PostgresBinaries, find_postgres_binaries
from harness_core.services._postgres import (
    PROVIDERS,
    PostgresService,
    open_postgres,
    postgres_answers,
)
from harness_core.services._postgres_local import server_account, usable_binaries
from harness_core.services._postgres_url import PostgresUrl, parse_postgres_url
from harness_core.services._service import Service

__all__ = [
    "PROVIDERS",
    "PostgresBinaries",
    "PostgresService",
    "PostgresUrl",
    "Service",
    "find_postgres_binaries",
    "open_postgres",
    "parse_postgres_url",
    "postgres_answers",
    "server_account",
    "usable_binaries",
]
