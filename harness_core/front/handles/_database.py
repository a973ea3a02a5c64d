"""A database as the fixtures give it: that of the core, for code without a loop too."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as IniError
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeAlias

from harness_core.base.bridge import Loop, View, in_sync, this_loop
from harness_core.base.errors import BadInput
from harness_core.base.evidence import Evidence
from harness_core.base.reading import read_text
from harness_core.front.handles._function import function_of
from harness_core.infrastructure import databases as core
from harness_core.infrastructure.databases import (
    Blueprint,
    DatabasePool,
    MigrationChain,
    alembic_blueprint,
    all_of,
    call_blueprint,
    database_for_test,
    open_pool,
    sql_blueprint,
)
from harness_core.infrastructure.services import PostgresService
from harness_core.process import Run

#: One step on the way to a database; see the fixture ``database_template``.
Step: TypeAlias = str | os.PathLike[str] | Callable[[str], object] | Blueprint

#: What a database is made from.
Template: TypeAlias = Step | Sequence[Step]


class SyncDatabase(View["Database"]):
    """The methods of :class:`Database` for code without a loop."""

    rows = in_sync(core.Database.rows)
    one = in_sync(core.Database.one)
    execute = in_sync(core.Database.execute)
    expect_row = in_sync(core.Database.expect_row)
    expect_no_row = in_sync(core.Database.expect_no_row)
    expect_count = in_sync(core.Database.expect_count)
    expect_table = in_sync(core.Database.expect_table)
    expect_columns = in_sync(core.Database.expect_columns)
    close = in_sync(core.Database.close)


class Database(core.Database):
    """A database of a test; given by the fixtures.

    Its methods may be awaited in a task of trio, asyncio or anyio; :attr:`sync` has them for any other
    code. Drivers of your own connect to :attr:`url`.

    Args:
        url: ``postgresql://USER:PASSWORD@127.0.0.1:PORT/NAME``.
        loop: where :attr:`sync` waits.
    """

    def __init__(self, url: str, *, loop: Loop) -> None:
        super().__init__(url)
        self._loop = loop

    @property
    def sync(self) -> SyncDatabase:
        """The same methods, which wait for their answer."""
        return SyncDatabase(self, self._loop)

    @property
    def environment(self) -> Mapping[str, str]:
        """For a process: ``DATABASE_URL``."""
        return {"DATABASE_URL": self.url}


class Databases:
    """Databases made from one template; built only by :func:`open_databases`."""

    def __init__(self, pool: DatabasePool, loop: Loop) -> None:
        self._pool = pool
        self._loop = loop

    def _handle(self, url: str) -> Database:
        return Database(url, loop=self._loop)

    @contextmanager
    def open(self) -> Iterator[Database]:
        """A fresh one for the block, for a fixture of a module or a session, say.

        Raises:
            HarnessError: in a thread that runs a loop.
        """
        clone = self._loop.run(self._pool.checkout)
        database = self._handle(clone.url)
        try:
            yield database
        finally:
            database.sync.close()
            self._loop.run(lambda: self._pool.drop(clone))

    def for_test(
        self, *, evidence: Evidence, failed: Callable[[], bool], tell: Callable[[str], None]
    ) -> AbstractContextManager[Database]:
        """The same for one test: kept when it has failed; see ``database_for_test`` of the core."""
        return database_for_test(
            self._loop,
            self._pool,
            evidence=evidence,
            failed=failed,
            tell=tell,
            handle=self._handle,
        )


@asynccontextmanager
async def open_databases(
    run: Run,
    server: PostgresService,
    template: Template,
    *,
    home: Path,
    where: Path | None,
    warm: int,
) -> AsyncIterator[Databases]:
    """Make the template, and databases ahead, for the block.

    Args:
        run: whose id is part of every name.
        server: where.
        template: see the fixture ``database_template``.
        home: what its paths are relative to.
        where: the file that may have named it, for errors.
        warm: databases made ahead.

    Raises:
        BadInput: a step that is none.
        HarnessError: a step failed.
    """
    if server.provider == "external":
        # Before one is made: whoever sweeps after this run must know where to look.
        run.ledger.record("database", server=server.address, run=run.id)
    steps = (
        [template] if isinstance(template, str) or not isinstance(template, Sequence) else template
    )
    found = [blueprint_of(step, home=home, where=where or "database_template") for step in steps]
    opening = open_pool(
        server.url, all_of(*found), run_id=run.id, in_memory=server.in_memory, warm=warm
    )
    async with opening as pool, this_loop("the databases") as loop:
        yield Databases(pool, loop)


def blueprint_of(step: Step, *, home: Path, where: str | Path) -> Blueprint:
    """How one step is done.

    Raises:
        BadInput: it is no step, or what it names is not there.
    """
    if isinstance(step, Blueprint):
        return step
    if isinstance(step, str) and ":" in step:
        return call_blueprint(
            function_of(step, where=where, key="tool.staging_harness.database.template")
        )
    if not isinstance(step, str | os.PathLike):
        return call_blueprint(step)
    path = home / step
    if path.is_dir():
        return alembic_blueprint(MigrationChain(name=path.name, directory=path))
    if path.is_file() and path.suffix == ".ini":
        return alembic_blueprint(_chain_of(path))
    if path.is_file() and path.suffix == ".sql":
        return sql_blueprint(path)
    raise BadInput(
        where,
        key="tool.staging_harness.database.template",
        found=os.fspath(step),
        expected="a folder of alembic revisions, an alembic.ini, an SQL file (.sql), or module:function",
    )


def _chain_of(ini: Path) -> MigrationChain:
    """The chain that an ``alembic.ini`` describes.

    Raises:
        BadInput: it cannot be read, or names no ``script_location``.
    """
    parser = ConfigParser(defaults={"here": str(ini.parent)})
    try:
        parser.read_string(read_text(ini, expected="an alembic.ini"))
        options = dict(parser["alembic"])
        location = options.pop("script_location")
    except (IniError, KeyError) as error:
        expected = "an [alembic] with a script_location"
        raise BadInput(ini, found=str(error), expected=expected) from error
    ours = ("here", "sqlalchemy.url", "version_locations", "path_separator")
    options = {key: value for key, value in options.items() if key not in ours}
    return MigrationChain(name=ini.name, directory=ini.parent / location, options=options)
