"""PostgreSQL ready, and a migrated database per test: ours beside what others do."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from benchmarks._peers import PEERS, Peers, open_peers
from benchmarks._table import Table
from harness_core.base.bridge import blocking
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence, open_evidence
from harness_core.base.wait import deadline, until
from harness_core.infrastructure.databases import (
    Database,
    DatabasePool,
    MigrationChain,
    alembic_blueprint,
    open_pool,
    upgrade,
)
from harness_core.infrastructure.services import (
    PostgresService,
    open_postgres,
    server_account,
    usable_binaries,
)
from harness_core.process import open_run

if TYPE_CHECKING:
    from harness_core.process import Run

__all__ = ["bench_postgres", "filled", "variable", "write_chain"]

_CACHED = "ours, data directory cached"
_FIRST = "ours, first start ever"

_WARM = "ours, pool with a warm clone"
_COLD = "ours, pool empty"
_TEMPLATE = "CREATE DATABASE … TEMPLATE"
_MIGRATE = "CREATE DATABASE, 20 revisions"

_REVISIONS = 20

#: More clones ahead than rounds need would be fair too; one shows that the refill keeps up.
_AHEAD = 2


def bench_postgres(*, rounds: int) -> tuple[Table, ...]:
    """Measure both subjects; peers run on the same binaries and in the same kind of directory."""
    ready = Table(
        "PostgreSQL ready: from nothing to a server that answers",
        ours=_CACHED,
        contenders=(_CACHED, _FIRST, *PEERS),
    )
    per_test = Table(
        f"a database per test: {_REVISIONS} revisions applied, until its URL is in hand",
        ours=_WARM,
        contenders=(_WARM, _COLD, _TEMPLATE, _MIGRATE),
    )
    uid, gid = server_account() or (None, None)
    # Forked first: from here on there are threads.
    with open_peers(uid=uid, gid=gid) as peers, tempfile.TemporaryDirectory() as scratch:
        trio.run(_bench, ready, per_test, peers, Path(scratch), rounds)
    return ready, per_test


async def _bench(ready: Table, per_test: Table, peers: Peers, scratch: Path, rounds: int) -> None:
    evidence = open_evidence(scratch / "evidence")
    async with open_run(evidence=evidence) as run:
        async with open_postgres(run, evidence=evidence):
            pass  # so that the first cached start finds its cache
        for number in range(rounds):
            sys.stderr.write(f"round {number + 1} of {rounds}: servers\n")
            await _ready_round(run, ready, peers, evidence, scratch / f"cache-{number}")
        async with open_postgres(run, evidence=evidence) as postgres:
            await _per_test(run, postgres, per_test, scratch / "chain", rounds)


async def _ready_round(
    run: Run, table: Table, peers: Peers, evidence: Evidence, empty_cache: Path
) -> None:
    for name, cache in ((_CACHED, None), (_FIRST, str(empty_cache))):
        with variable("XDG_CACHE_HOME", cache):
            opener = open_postgres(run, evidence=evidence)
            try:
                with table.measure(name):
                    await opener.__aenter__()
            except HarnessError as error:
                table.fail(name, str(error))
            else:
                await opener.__aexit__(None, None, None)
    binaries = await blocking(usable_binaries)
    account = server_account()
    for name in PEERS:
        place = run.directory("peer", in_memory=True)
        if account is not None:
            os.chown(place, *account)
        try:
            taken_s = await blocking(peers.measure, name, binaries=binaries.directory, place=place)
        except HarnessError as error:
            table.fail(name, str(error))
        else:
            table.add(name, taken_s)
        await blocking(shutil.rmtree, place, ignore_errors=True)


@contextmanager
def variable(name: str, value: str | None) -> Iterator[None]:
    """An environment variable for the length of a block; ``None`` leaves it as it is."""
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        if before is not None:
            os.environ[name] = before
        else:
            os.environ.pop(name, None)


async def _per_test(
    run: Run, postgres: PostgresService, table: Table, directory: Path, rounds: int
) -> None:
    write_chain(directory)
    chain = MigrationChain(name="bench", directory=directory)
    blueprint = alembic_blueprint(chain)
    async with (
        open_pool(
            postgres.url, blueprint, run_id=run.id, in_memory=postgres.in_memory, warm=_AHEAD
        ) as warm,
        open_pool(
            postgres.url, blueprint, run_id=run.id, in_memory=postgres.in_memory, warm=0
        ) as cold,
        Database(postgres.url()) as admin,
    ):
        await admin.rows("select 1")  # its connection is open
        for number in range(rounds):
            sys.stderr.write(f"round {number + 1} of {rounds}: databases\n")
            await _warm_checkout(warm, table)
            with table.measure(_COLD):
                clone = await cold.checkout()
            await cold.drop(clone)
            name = f"bench_{number}"
            with table.measure(_TEMPLATE):
                await admin.execute(f'create database {name} template "{warm.template}"')
            await admin.execute(f"drop database {name}")
            with table.measure(_MIGRATE):
                await admin.execute(f"create database {name}")
                await upgrade(postgres.url(name), chain)
            await admin.execute(f"drop database {name} with (force)")


async def _warm_checkout(pool: DatabasePool, table: Table) -> None:
    """One checkout when a clone is ready; then wait for the refill, which would disturb others."""
    await filled(pool, warm=_AHEAD)
    with table.measure(_WARM):
        clone = await pool.checkout()
    await filled(pool, warm=_AHEAD)
    await pool.drop(clone)


async def filled(pool: DatabasePool, *, warm: int) -> None:
    """Wait until the pool has as many clones ahead as it keeps."""

    async def probe() -> bool:
        return pool.warm == warm

    with deadline("fill the pool", seconds=60):
        await until(probe)


def write_chain(directory: Path) -> None:
    """A chain such as a product of some age has: every revision makes a table and an index."""
    directory.mkdir()
    for number in range(1, _REVISIONS + 1):
        down = repr(f"r{number - 1:03}") if number > 1 else "None"
        (directory / f"r{number:03}.py").write_text(
            "from alembic import op\n"
            "import sqlalchemy as sa\n"
            f"revision = 'r{number:03}'\n"
            f"down_revision = {down}\n\n\n"
            "def upgrade():\n"
            f"    op.create_table('t{number:03}', sa.Column('id', sa.Integer, primary_key=True),\n"
            "                    sa.Column('word', sa.Text, nullable=False))\n"
            f"    op.create_index('i{number:03}', 't{number:03}', ['word'])\n"
        )
