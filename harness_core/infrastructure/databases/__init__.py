"""Databases for tests: made in milliseconds, asserted on row by row.

- ``_database.py``: :class:`Database`, a handle that reads, writes and asserts.
- ``_expectations.py``: what an assertion on rows looks at, and its text when it fails.
- ``_conditions.py``: a condition on a column, as a value and in SQL.
- ``_schema.py``: which tables and columns a database has.
- ``_relations.py``: what a product keeps otherwise, read under the names of a contract.
- ``_connection.py``: psycopg connections in threads, which can be interrupted.
- ``_asyncpg.py``: a pool of asyncpg, for tests that speak to a database from asyncio.
- ``_migrations.py``: alembic chains: heads, what is applied, hash, upgrade.
- ``_blueprint.py``: how a database comes to be: migrations, SQL files, a function.
- ``_provision.py``: an empty database for a system that migrates itself.
- ``_pool.py``: a pool of clones of a migrated template.
- ``_for_test.py``: a clone for one test, kept when the test fails.
- ``_server.py``: the statements behind both, and whose databases may be dropped.
- ``_left.py``: what was made and not dropped by the end of a run.
- ``_sweep.py``: what a dead run left on a server that is not ours.
- ``_environment/``: the alembic environment for chains that have none of their own.

The only package that imports psycopg, asyncpg, SQLAlchemy or alembic.
"""

from harness_core.base.machine import need_extra

need_extra("postgres", action="use harness_core.infrastructure.databases")

from harness_core.infrastructure.databases._blueprint import (
    Blueprint,
    alembic_blueprint,
    all_of,
    call_blueprint,
    sql_blueprint,
)
from harness_core.infrastructure.databases._conditions import Contains, Regex
from harness_core.infrastructure.databases._database import Database
from harness_core.infrastructure.databases._for_test import database_for_test
from harness_core.infrastructure.databases._left import left_databases
from harness_core.infrastructure.databases._migrations import (
    MigrationChain,
    applied_revisions,
    chain_hash,
    chain_heads,
    upgrade,
)
from harness_core.infrastructure.databases._pool import DatabasePool, drop_run_databases, open_pool
from harness_core.infrastructure.databases._provision import create_database
from harness_core.infrastructure.databases._relations import Relation
from harness_core.infrastructure.databases._schema import UNDEFINED
from harness_core.infrastructure.databases._server import Clone
from harness_core.infrastructure.databases._sweep import POSTGRES_URL_VARIABLE, sweep_databases

__all__ = [
    "POSTGRES_URL_VARIABLE",
    "UNDEFINED",
    "Blueprint",
    "Clone",
    "Contains",
    "Database",
    "DatabasePool",
    "MigrationChain",
    "Regex",
    "Relation",
    "alembic_blueprint",
    "all_of",
    "applied_revisions",
    "call_blueprint",
    "chain_hash",
    "chain_heads",
    "create_database",
    "database_for_test",
    "drop_run_databases",
    "left_databases",
    "open_pool",
    "sql_blueprint",
    "sweep_databases",
    "upgrade",
]
