"""Bring one database to the head of its migration chains.

Each chain is an ordinary alembic script directory with its own version table, so that the core
chain and a butler's chain never collide: `alembic_version_core`, `alembic_version_<butler>`,
`alembic_version_module_<module>`.

Alembic renders the SQL of the missing revisions (its offline mode), asyncpg runs that SQL and the
version stamp in one transaction, under an advisory lock. So no second database driver is needed,
and the rendered text can be kept: like compiled bytecode it lies in `__pycache__` beside the
scripts, keyed by their contents. With it a boot spends no 0.2 s of processor time on importing
SQLAlchemy, which counts when four butlers boot on two cores. The price: migrations are `op.*` and
SQL, they cannot read rows in Python.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from butlers import __version__, faults
from butlers.errors import DatabaseProblem
from butlers.log import describe

if TYPE_CHECKING:
    import asyncpg

    from butlers.log import Log

CORE_SCRIPTS = Path(__file__).parent / "migrations"

#: "butlers" in ASCII: one migrating process per database at a time.
_LOCK = 0x6275746C657273


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """One alembic script directory and the table that holds its version."""

    name: str
    scripts: Path

    @property
    def version_table(self) -> str:
        return f"alembic_version_{self.name.replace('-', '_')}"

    def files(self) -> list[Path]:
        return sorted((self.scripts / "versions").glob("*.py"))


def chains(butler: str, directory: Path, modules: dict[str, Path]) -> list[Chain]:
    """The chains of a butler in the order they run: core, butler, modules."""
    found = [Chain(name="core", scripts=CORE_SCRIPTS)]
    if (directory / "migrations" / "versions").is_dir():
        found.append(Chain(name=butler, scripts=directory / "migrations"))
    found.extend(
        Chain(name=f"module_{name}", scripts=scripts) for name, scripts in modules.items()
    )
    return found


async def upgrade(pool: asyncpg.Pool, chain: Chain, *, log: Log) -> None:
    """Run what is missing of one chain; a chain at its head costs one query.

    Raises:
        DatabaseProblem: a revision is unknown or a statement failed; nothing of it remains.
    """
    import asyncpg

    head = _head(chain)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        current = await _current(connection, chain)
        if current == head:
            return
        before = _revisions(chain)[head]
        if faults.on("migration-head-stamped") and chain.name == "health" and before is not None:
            sql = await asyncio.to_thread(_rendered, chain, current, before)
            sql += _stamp(chain, head)
        else:
            sql = await asyncio.to_thread(_rendered, chain, current, head)
        try:
            await connection.execute(sql)
        except asyncpg.PostgresError as error:
            raise DatabaseProblem(
                f"cannot migrate chain {chain.name} from {current or 'empty'} to {head}: "
                f"{describe(error)}. Correct the script in {chain.scripts}/versions"
            ) from error
    log.info("migrated", chain=chain.name, before=current or "empty", after=head)


async def _current(connection: asyncpg.Connection, chain: Chain) -> str | None:
    if await connection.fetchval("SELECT to_regclass($1)", chain.version_table) is None:
        return None
    revision: str | None = await connection.fetchval(
        f"SELECT version_num FROM {chain.version_table}"
    )
    return revision


def _revisions(chain: Chain) -> dict[str, str | None]:
    """Revision to down-revision, read from the scripts without importing them."""
    found: dict[str, str | None] = {}
    for file in chain.files():
        values: dict[str, object] = {}
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            if not isinstance(node.value, ast.Constant):
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    values[target.id] = node.value.value
        if isinstance(revision := values.get("revision"), str):
            down = values.get("down_revision")
            found[revision] = down if isinstance(down, str) else None
    return found


def _head(chain: Chain) -> str:
    revisions = _revisions(chain)
    heads = set(revisions) - set(revisions.values())
    if len(heads) != 1:
        raise DatabaseProblem(
            f"cannot migrate chain {chain.name}: {chain.scripts}/versions has {len(heads)} heads "
            f"({', '.join(sorted(heads)) or 'none'}). Leave exactly one"
        )
    return heads.pop()


def _stamp(chain: Chain, revision: str) -> str:
    table = chain.version_table
    return (
        f"\nCREATE TABLE IF NOT EXISTS {table} (version_num VARCHAR(32) NOT NULL PRIMARY KEY);"
        f"\nDELETE FROM {table};\nINSERT INTO {table} VALUES ('{revision}');\n"
    )


def _rendered(chain: Chain, current: str | None, head: str | None) -> str:
    """The SQL from one revision to another, from the cache when the scripts are unchanged.

    Where no bytecode is kept beside the code, neither is this.
    """
    if head is None or current == head:
        return ""
    if sys.dont_write_bytecode:
        return _render(chain, current, head)
    file = chain.scripts / "__pycache__" / f"{_key(chain, current, head)}.sql"
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8")
    sql = _render(chain, current, head)
    with contextlib.suppress(OSError):  # a read-only installation renders every time
        file.parent.mkdir(exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(sql, encoding="utf-8")
        draft.replace(file)
    return sql


def _key(chain: Chain, current: str | None, head: str) -> str:
    digest = hashlib.sha256()
    # A script may ask for a fault of this kind, so its rendering depends on the planted ones.
    planted = sorted(name for name in faults.active() if name.startswith("migration-"))
    for part in (__version__, chain.version_table, str(current), head, *planted):
        digest.update(part.encode() + b"\0")
    for file in chain.files():
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return f"upgrade-{digest.hexdigest()[:24]}"


def _render(chain: Chain, current: str | None, head: str) -> str:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(chain.scripts))
    output = io.StringIO()
    with EnvironmentContext(
        Config(),
        script,
        fn=lambda revision, _context: script._upgrade_revs(head, revision),
        as_sql=True,
        starting_rev=current,
        destination_rev=head,
    ) as environment:
        environment.configure(
            dialect_name="postgresql",
            output_buffer=output,
            version_table=chain.version_table,
            transactional_ddl=False,  # the transaction is ours
            literal_binds=True,
        )
        environment.run_migrations()
    return output.getvalue()
