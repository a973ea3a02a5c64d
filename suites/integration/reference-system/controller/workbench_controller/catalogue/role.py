"""The database role that reads the catalogue: made when the database is migrated, and held to reading.

Roles belong to the server and their rights to a database: databases that share a server share the
role, and a copy of a database has the rights that the original's tables gave (until it is migrated, a
copy lets everybody have temporary tables, which end with their connection). So every migration makes
what is missing of either, and two at once on one server do not stand in each other's way.
"""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DBAPIError

from workbench_foundation import faults, log
from workbench_foundation.errors import describe

TABLES = ("catalogue_versions", "catalogue_parts")

#: Everybody may make large objects unless it is forbidden; they are no tables, and stay.
_MAKE_OBJECTS = ("lo_creat(integer)", "lo_create(oid)", "lo_from_bytea(oid, bytea)")

_POWERS = (
    "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
    " OR EXISTS (SELECT FROM pg_auth_members WHERE member = pg_roles.oid)"
    " FROM pg_roles WHERE rolname = :name"
)


class UnfitRole(Exception):
    """The role that the settings name cannot be the one that only reads."""


def make_reader(connection: Connection, url: str) -> None:
    """Let the role of a URL read the catalogue of this database, and do nothing else.

    Args:
        connection: of whoever owns the tables; within its transaction.
        url: as the controller connects to read: role, password and database.

    Raises:
        UnfitRole: the URL lacks role or password, or the role may do more than read.
    """
    parsed = make_url(url)
    name, password = parsed.username, parsed.password
    if not name or not password:
        raise UnfitRole(
            "cannot make the role that reads the catalogue: its URL lacks a name or a password. Set "
            "both in WORKBENCH_CATALOGUE_DATABASE_URL"
        )
    if _powers(connection, name) is None:
        _run(connection, "CREATE ROLE %I LOGIN NOINHERIT PASSWORD %L", name, password)
    powers = _powers(connection, name)
    if powers is None:
        raise UnfitRole(
            f"cannot let {name} read the catalogue: there is no such role, and it could not be made. Let "
            "who migrates make roles, or make it beforehand"
        )
    if powers:
        raise UnfitRole(
            f"cannot let {name} read the catalogue: that role may do more than read. Name another one in "
            "WORKBENCH_CATALOGUE_DATABASE_URL"
        )
    _run(connection, "ALTER ROLE %I PASSWORD %L", name, password)
    _run(connection, "ALTER ROLE %I SET default_transaction_read_only = on", name)
    _grant(connection, name)


def _powers(connection: Connection, name: str) -> bool | None:
    """Whether a role may do more than log in; none when there is no such role."""
    found: bool | None = connection.execute(text(_POWERS), {"name": name}).scalar()
    return found


def _grant(connection: Connection, name: str) -> None:
    [role, database] = connection.execute(
        text("SELECT format('%I', CAST(:name AS text)), format('%I', current_database())"),
        {"name": name},
    ).one()
    tables = ", ".join(TABLES)
    rights = "SELECT, INSERT, UPDATE, DELETE" if faults.on("catalogue-role-writes") else "SELECT"
    for statement in (
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC",
        f"REVOKE EXECUTE ON FUNCTION {', '.join(_MAKE_OBJECTS)} FROM PUBLIC",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}",
        f"GRANT USAGE ON SCHEMA public TO {role}",
        f"GRANT {rights} ON {tables} TO {role}",
    ):
        connection.execute(text(statement))


def _run(connection: Connection, form: str, *values: str) -> None:
    """A statement about the role, quoted by the server.

    It is the server's, not this database's: another migration may be about the same at this moment,
    and then one of the two is refused.
    """
    places = {f"v{number}": value for number, value in enumerate(values)}
    arguments = "".join(f", CAST(:{name} AS text)" for name in places)
    statement = connection.execute(
        text(f"SELECT format(CAST(:form AS text){arguments})"), {"form": form, **places}
    ).scalar_one()
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except DBAPIError as error:
        log.warning("role_left_as_it_is", reason=describe(error.orig or error))
