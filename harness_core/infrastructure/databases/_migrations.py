"""Alembic chains: what their files hold, what a database has applied, and how to bring the two together.

A chain is a directory with revisions and a version table of its own; one database may hold several
(core, one per butler, one per module). A product may migrate itself at boot; then only the reading
half of this is used.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import psycopg
from alembic import command
from alembic.config import Config
from psycopg import sql

from harness_core.base.bridge import Mutex, blocking
from harness_core.base.errors import BadInput, HarnessError
from harness_core.infrastructure.databases._connection import Connection

_OWN_ENVIRONMENT: Final = Path(__file__).parent / "_environment"

#: Alembic keeps the migration that runs in module globals: one at a time per process.
_ALEMBIC_LOCK: Final = Mutex()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationChain:
    """One chain of alembic revisions.

    Args:
        name: for messages.
        directory: holds ``env.py`` and ``versions/``, or revision files alone; without an
            ``env.py`` the harness's own is used.
        version_table: where the chain notes what is applied.
        options: further main options an ``env.py`` reads.
    """

    name: str
    directory: Path
    version_table: str = "alembic_version"
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def versions(self) -> Path:
        """The directory of the revision files."""
        nested = self.directory / "versions"
        return nested if nested.is_dir() else self.directory

    @property
    def environment(self) -> Path:
        """The directory of the ``env.py`` that runs."""
        return self.directory if (self.directory / "env.py").is_file() else _OWN_ENVIRONMENT


def chain_heads(chain: MigrationChain) -> tuple[str, ...]:
    """The revisions nothing follows, read from the files as text.

    Nothing is imported: a revision may need the product's own packages, which are not here.

    Raises:
        BadInput: the directory is missing, or its revisions do not form a chain.
    """
    if not chain.versions.is_dir():
        raise BadInput(
            chain.name,
            key="directory",
            found=str(chain.directory),
            expected="a directory of alembic revisions",
        )
    followed: set[str] = set()
    revisions: set[str] = set()
    for path in sorted(chain.versions.glob("*.py")):
        named = _assignments(path)
        revision = named.get("revision")
        if isinstance(revision, str):
            revisions.add(revision)
            followed.update(_names(named.get("down_revision")))
    if not revisions:
        raise BadInput(
            chain.name,
            key="directory",
            found=f"no revision in {chain.versions}",
            expected="alembic revisions",
        )
    unknown = followed - revisions
    if unknown:
        raise BadInput(
            chain.name,
            key="down_revision",
            found=", ".join(sorted(unknown)),
            expected=f"revisions of {chain.versions} that form a chain",
        )
    return tuple(sorted(revisions - followed))


def _assignments(path: Path) -> dict[str, Any]:
    """The module-level constants of a revision file."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise BadInput(path, found=str(error), expected="an alembic revision") from error
    found: dict[str, Any] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
                try:
                    found[target.id] = ast.literal_eval(node.value) if node.value else None
                except ValueError:
                    continue
    return found


def _names(down_revision: Any) -> tuple[str, ...]:
    if down_revision is None:
        return ()
    return (down_revision,) if isinstance(down_revision, str) else tuple(down_revision)


def chain_hash(*chains: MigrationChain) -> str:
    """A hash of everything that shapes the schema: names and contents of all files, env.py too.

    Two checkouts with the same files have the same hash; where they lie plays no part.
    """
    digest = hashlib.sha256()
    for chain in chains:
        options = sorted(chain.options.items())
        digest.update(repr((chain.name, chain.version_table, options)).encode())
        for path in sorted(_files(chain)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


async def applied_revisions(url: str, *, version_table: str = "alembic_version") -> tuple[str, ...]:
    """What is applied to a database; nothing when it has no such version table.

    Raises:
        Unavailable: the database cannot be reached.
    """
    connection = Connection(url)
    query = sql.SQL("select version_num from {} order by 1").format(
        sql.Identifier(*version_table.split("."))
    )
    try:
        return tuple(row["version_num"] for row in await connection.rows(query))
    except psycopg.errors.UndefinedTable:
        return ()
    finally:
        await connection.close()


async def upgrade(url: str, chain: MigrationChain, *, revision: str = "heads") -> None:
    """Bring a database to ``revision`` of a chain; runs alembic in a thread of this process.

    Raises:
        BadInput: the chain's files are unusable.
        HarnessError: a migration failed; carries the server's message.
    """
    await blocking(_upgrade, url, chain, revision)


def _upgrade(url: str, chain: MigrationChain, revision: str) -> None:
    heads = chain_heads(chain)  # a broken chain is the chain's mistake, not the migration's
    config = _config(chain)
    driver_url = f"postgresql+psycopg://{url.partition('://')[2]}"
    # Alembic interpolates with %, as configparser does.
    config.set_main_option("sqlalchemy.url", driver_url.replace("%", "%%"))
    with _ALEMBIC_LOCK:
        try:
            command.upgrade(config, revision)
        except Exception as error:  # a migration is code of the product: anything
            raise HarnessError(
                f"migrate {chain.name} to {revision} ({', '.join(heads)})",
                observed=f"{type(error).__name__}: {str(error).strip().splitlines()[0]}",
                next_step=f"Read the revisions in {chain.versions}",
            ) from error


def _config(chain: MigrationChain) -> Config:
    config = Config()
    values: dict[str, Any] = {
        **chain.options,
        "script_location": str(chain.environment),
        "version_locations": str(chain.versions),
        "path_separator": "newline",
        "version_table": chain.version_table,
    }
    for key, value in values.items():
        config.set_main_option(key, value.replace("%", "%%"))
    return config


def _files(chain: MigrationChain) -> Iterator[Path]:
    yield from (path for path in chain.environment.glob("*.py"))
    for path in chain.versions.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
            yield path
