"""Backups of a stack: asked for, followed to their end, taken apart and restored."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio
from workbench_contract.backups import Backup

from harness_core.base.errors import HarnessError
from harness_core.base.machine import find_postgres_binaries
from harness_core.doubles.http import Response
from harness_core.front.skips import not_run
from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.services import S3Object
from suites.integration.episodes import Episodes
from suites.integration.patience import EPISODE_S, SOON_S, eventually

__all__ = ["Backups", "Rows", "expect_one_moment", "rows_of"]

#: Table → primary key → row, both as JSON.
Rows = Mapping[str, Mapping[str, str]]

_SHOWN_ROWS: Final = 3


class Backups:
    """The backups of one stack."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes
        self._stack = episodes.stack

    async def ask(self) -> Response:
        """Ask for a backup; the answer, whatever it is."""
        return await self._episodes.controller.post("/ops/backup")

    async def begin(self) -> Backup:
        """Ask for a backup, which must be accepted."""
        answer = await self.ask()

        assert 202 == answer.status, f"expected the backup to be accepted, found {answer}"
        return Backup.model_validate_json(answer.body)

    async def get(self, backup_id: str) -> Backup:
        """The record of a backup as it is now."""
        answer = await self._episodes.controller.get(f"/ops/backups/{backup_id}")

        assert 200 == answer.status, f"expected the record of a backup, found {answer}"
        return Backup.model_validate_json(answer.body)

    async def until(self, backup_id: str, wanted: str = "completed") -> Backup:
        """The record of a backup that has ended, as it should.

        Raises:
            AssertionError: it ends otherwise, or does not end.
        """
        last: list[Backup] = []

        async def ended() -> Backup | None:
            last[:] = [await self.get(backup_id)]
            return last[0] if last[0].status.final else None

        expected = f"backup {backup_id} to be {wanted}"
        found: Backup = await eventually(
            ended, seconds=EPISODE_S, expected=expected, seen=lambda: last
        )
        assert wanted == found.status, f"expected {expected}, found {found.status}: {found.reason}"
        return found

    async def take(self) -> Backup:
        """A backup, completed."""
        return await self.until((await self.begin()).backup_id)

    async def keys(self, backup: Backup) -> list[str]:
        """The keys of all that the store has of a backup."""
        listed = await self._stack.objects(backup.prefix, bucket=backup.bucket)
        return [each.key for each in listed]

    async def objects(self, backup: Backup) -> dict[str, S3Object]:
        """All that the store has of a backup, by the part of the key behind its prefix."""
        return {
            key.removeprefix(backup.prefix): await self._stack.object(key, bucket=backup.bucket)
            for key in await self.keys(backup)
        }

    async def copies(self, backup: Backup) -> dict[str, S3Object]:
        """The copy of each object, by the key of what it is a copy of."""
        own = {each.key for each in (backup.database, backup.manifest) if each is not None}
        found = {}
        for name, each in (await self.objects(backup)).items():
            if each.key not in own:
                _, within, source = name.partition("/")
                assert within, f"a copy has the key of its object behind a folder: found {each.key}"
                found[source] = each
        return found

    @asynccontextmanager
    async def restored(self, backup: Backup) -> AsyncIterator[Database]:
        """The database of a backup, restored into an empty one, which goes afterwards.

        Raises:
            HarnessError: this machine has no ``pg_restore``.
            AssertionError: what the backup has cannot be restored.
        """
        assert backup.database is not None, f"a completed backup has a dump: found {backup}"
        body = (await self._stack.object(backup.database.key, bucket=backup.bucket)).body
        binaries = find_postgres_binaries()
        [row] = await self._stack.rows(
            "select current_setting('server_version_num')::int as number"
        )
        if binaries.major > row["number"] // 10_000:
            reason = f"its PostgreSQL is older than pg_restore {binaries.version}, and refuses its settings"
            not_run("options", reason)
        program = binaries.directory / "pg_restore"
        if not program.is_file():
            raise HarnessError(
                "restore a backup",
                observed=f"there is no {program}",
                next_step="Set HARNESS_POSTGRES_BIN to a directory that has it",
            )
        url, name = self._stack.access.database_url, f"restored_{secrets.token_hex(6)}"
        async with Database(url) as server:
            await server.execute(  # lint: allow writes-rows: a database of our own
                f"create database {name}"
            )
            try:
                into = f"{url.rpartition('/')[0]}/{name}"
                argv = [str(program), "--exit-on-error", f"--dbname={into}"]
                run = await trio.run_process(argv, stdin=body, capture_stderr=True, check=False)
                said = run.stderr.decode(errors="replace")
                assert 0 == run.returncode, f"a dump can be restored: pg_restore said {said}"
                async with Database(into) as database:
                    yield database
            finally:
                with trio.CancelScope(shield=True):
                    await server.execute(  # lint: allow writes-rows: a database of our own
                        f"drop database {name} with (force)"
                    )

    @asynccontextmanager
    async def held(self) -> AsyncIterator[str]:
        """Whoever dumps the database waits for as long as this lasts; a table's name to wait for."""
        table = f"held_{secrets.token_hex(6)}"
        async with Database(self._stack.access.database_url) as other:
            await other.execute(  # lint: allow writes-rows: a table of our own
                f"create table {table} ()"
            )
            try:
                await other.execute("begin")
                await other.execute(  # lint: allow writes-rows: a lock, no row
                    f"lock table {table} in access exclusive mode"
                )
                yield table
            finally:
                with trio.CancelScope(shield=True):
                    await other.execute("rollback")
                    await other.execute(  # lint: allow writes-rows: a table of our own
                        f"drop table {table}"
                    )

    async def until_dumping(self, table: str) -> None:
        """Wait until somebody dumps the database, and waits in :meth:`held`."""

        async def waits() -> bool:
            ask = (
                "select 1 from pg_locks l join pg_class c on c.oid = l.relation"
                " where not l.granted and c.relname = %s"
            )
            return bool(await self._stack.rows(ask, (table,)))

        await eventually(waits, seconds=SOON_S, expected="the database to be dumped")


async def rows_of(database: Database) -> dict[str, dict[str, str]]:
    """All rows of all tables of a database, by their primary keys."""
    tables = await database.rows(
        "select c.relname as name, array_agg(a.attname::text order by a.attnum) as key"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'"
        " left join pg_index i on i.indrelid = c.oid and i.indisprimary"
        " left join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)"
        " where c.relkind = 'r' group by c.relname"
    )
    return {
        each["name"]: {
            row["key"]: row["row"]
            for row in await database.rows(
                f"select {_key_of(each['key'])} as key, to_jsonb(t)::text as row"
                f' from "{each["name"]}" t'
            )
        }
        for each in tables
    }


def _key_of(columns: Sequence[str | None]) -> str:
    """What a row is told from others by, in SQL: its primary key, or all of it."""
    names = [f't."{name}"' for name in columns if name is not None]
    return f"jsonb_build_array({', '.join(names)})::text" if names else "to_jsonb(t)::text"


def expect_one_moment(before: Rows, restored: Rows, after: Rows, *, but: str) -> None:
    """A restored database is what its source was at one moment between two looks.

    What changed between them may be as it was at any time; what did not is as it was.

    Args:
        before: a look at the source.
        restored: a look at what was restored.
        after: a later look at the source.
        but: rows that hold this text are left out: of the backup itself.

    Raises:
        AssertionError: a table or a row is missing, was never there, or is another.
    """
    tables = (sorted(before), sorted(restored))
    assert tables[0] == tables[1], f"restored tables: expected {tables[0]}, found {tables[1]}"
    for table, rows in restored.items():
        old, new = before[table], after[table]
        lost = [old[key] for key in old.keys() & new.keys() - rows.keys()]
        invented = [rows[key] for key in rows.keys() - old.keys() - new.keys()]
        changed = [
            f"expected {old[key]}, found {rows[key]}"
            for key in rows.keys() & old.keys()
            if old[key] == new.get(key) != rows[key]
        ]
        for what, found in (
            ("all rows restored", lost),
            ("no row that was never there", invented),
            ("every row as it was", changed),
        ):
            told = [row for row in found if but not in row]
            assert not told, f"{table}: expected {what}, found {len(told)}: {_some(told)}"


def _some(rows: Sequence[str]) -> str:
    return "; ".join(rows[:_SHOWN_ROWS])
