"""Templates, clones and provisioned databases: made once, handed out fast, dropped exactly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

import harness_core
from harness_core.base.bridge import blocking
from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.base.wait import deadline, until
from harness_core.infrastructure.databases import (
    Blueprint,
    Database,
    MigrationChain,
    alembic_blueprint,
    create_database,
    drop_run_databases,
    open_pool,
)
from harness_core.infrastructure.services import PostgresService, open_postgres
from harness_core.process import Run, open_run

pytestmark = pytest.mark.real


async def databases(postgres: PostgresService) -> set[str]:
    """Names of all databases of the server."""
    async with Database(postgres.url()) as admin:
        return {row["datname"] for row in await admin.rows("select datname from pg_database")}


class Counted:
    """A blueprint that counts how often it was built."""

    def __init__(self, key: str) -> None:
        self.built = 0
        self.blueprint = Blueprint(key=key, build=self._build)

    async def _build(self, url: str) -> None:
        self.built += 1
        async with Database(url) as database:
            await database.execute("create table t (word text)")
            await database.execute("insert into t values ('from the template')")


async def test_a_pool_outlives_an_outage_of_its_server(evidence: Evidence) -> None:
    """While the server is away a database is refused, and afterwards there are new ones, made ahead."""
    async with (
        open_run(evidence=evidence) as run,
        open_postgres(run, evidence=evidence) as server,
        open_pool(server.url, Counted("outage").blueprint, run_id="outage", warm=1) as pool,
    ):

        async def one_is_ready() -> bool:
            return pool.warm == 1

        with deadline("see a database made ahead", seconds=60):
            await until(one_is_ready)
        await server.stop()
        await pool.checkout()  # from memory; the next one is made ahead, and cannot be
        with pytest.raises(Unavailable):
            await pool.checkout()
        await server.start()

        async with Database((await pool.checkout()).url) as database:
            await database.expect_count("t", count=1)
        with deadline("see another one made ahead", seconds=60):
            await until(one_is_ready)


async def test_clones_are_whole_and_apart(postgres: PostgresService) -> None:
    """Every clone holds what the template holds, and none sees another's rows."""
    counted = Counted("whole")
    async with open_pool(postgres.url, counted.blueprint, run_id="whole", in_memory=True) as pool:
        first, second = await pool.checkout(), await pool.checkout()
        async with Database(first.url) as one, Database(second.url) as two:
            await one.execute("insert into t values ('mine')")

            await one.expect_count("t", count=2)
            await two.expect_row("t", where={"word": "from the template"})
            await two.expect_count("t", count=1)

    assert 1 == counted.built
    assert first.name != second.name


async def test_nothing_is_left_behind(postgres: PostgresService) -> None:
    """When the pool closes, clones (handed out or not) and template are gone."""
    before = await databases(postgres)
    async with open_pool(postgres.url, Counted("left").blueprint, run_id="left") as pool:
        await pool.checkout()
        during = await databases(postgres)

    assert pool.template in during
    assert before == await databases(postgres)


async def test_a_warm_checkout_asks_the_server_nothing(postgres: PostgresService) -> None:
    """A clone made ahead of time is handed out while the server hangs."""
    async with open_pool(postgres.url, Counted("warm").blueprint, run_id="warm", warm=2) as pool:
        await filled(pool, 2)
        with trio.fail_after(5):
            first, second = await pool.checkout(), await pool.checkout()
        await filled(pool, 2)

        assert 4 == len({first.name, second.name, *(c.name for c in pool._ready)})


async def filled(pool: object, count: int) -> None:
    """Wait until the pool has that many clones ready."""

    async def probe() -> bool:
        return pool.warm == count

    with deadline(f"see {count} warm clones", seconds=10):
        await until(probe)


async def test_the_pool_is_bounded(postgres: PostgresService) -> None:
    """No more clones are made ahead of time than asked for."""
    counted = Counted("bounded")
    async with open_pool(postgres.url, counted.blueprint, run_id="bounded", warm=3) as pool:
        await filled(pool, 3)
        await trio.testing.wait_all_tasks_blocked()
        names = await databases(postgres)

    assert 3 == len(
        [name for name in names if name.startswith("hs_bounded_") and "_t_" not in name]
    )


async def test_checkout_works_from_another_loop(postgres: PostgresService) -> None:
    """A session holds the pool in one loop while tests check out in others."""
    async with open_pool(postgres.url, Counted("loop").blueprint, run_id="loop", warm=1) as pool:
        await filled(pool, 1)
        clones = [await blocking(trio.run, pool.checkout) for _ in range(3)]
        await filled(pool, 1)
        holders = await blocking(trio.run, pool.drop, clones[0])

    assert 3 == len({clone.name for clone in clones})
    assert () == holders


async def test_processes_share_a_template(postgres: PostgresService, tmp_path: Path) -> None:
    """Pools that open at once, as the workers of a run do, share one build: all they share is the server."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import sys, trio\n"
        "from harness_core.infrastructure.databases import Blueprint, Database, open_pool\n"
        "async def build(url):\n"
        "    async with Database(url) as database:\n"
        "        await database.execute('create table t (n int)')\n"
        "    print('built', flush=True)\n"
        "async def main():\n"
        "    url_of = lambda name: sys.argv[1].rpartition('/')[0] + '/' + name\n"
        "    blueprint = Blueprint(key='k', build=build)\n"
        "    async with open_pool(url_of, blueprint, run_id='procs') as pool:\n"
        "        clone = await pool.checkout()\n"
        "        print('ready', flush=True)\n"
        "        sys.stdin.read()\n"
        "trio.run(main)\n"
    )
    root = str(Path(harness_core.__file__).parents[1])
    workers = [
        subprocess.Popen(
            [sys.executable, str(script), postgres.url()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": root},
        )
        for _ in range(2)
    ]
    try:
        printed = [await blocking(until_ready, worker) for worker in workers]
    finally:
        for worker in workers:
            await blocking(worker.communicate, "")

    assert ["built", "ready", "ready"] == sorted(word for words in printed for word in words)
    assert [0, 0] == [worker.returncode for worker in workers]
    assert not [name for name in await databases(postgres) if name.startswith("hs_procs_")]


def until_ready(worker: subprocess.Popen[str]) -> list[str]:
    """What a worker prints until it is ready or gone."""
    lines = []
    while not lines or lines[-1] not in {"ready", ""}:
        lines.append(worker.stdout.readline().strip())
    return lines


async def test_half_a_template_is_none(postgres: PostgresService) -> None:
    """What a builder that died left is built again."""
    counted = Counted("half")
    async with open_pool(postgres.url, counted.blueprint, run_id="half", warm=0) as pool:
        template = pool.template
    async with Database(postgres.url()) as admin:
        await admin.execute(f'create database "{template}"')
    async with (
        open_pool(postgres.url, counted.blueprint, run_id="half", warm=0) as pool,
        Database((await pool.checkout()).url) as database,
    ):
        await database.expect_count("t", count=1)

    assert 2 == counted.built


async def test_a_failed_build_leaves_nothing(postgres: PostgresService) -> None:
    """The error of the build comes through, and half a template does not stay."""
    before = await databases(postgres)

    async def fail(url: str) -> None:
        async with Database(url) as database:
            await database.execute("create table t (n int)")
        raise HarnessError("build it", observed="it is broken")

    with pytest.raises(HarnessError, match="it is broken"):
        async with open_pool(postgres.url, Blueprint(key="x", build=fail), run_id="fails"):
            pass

    assert before == await databases(postgres)


async def test_alembic_makes_the_template(postgres: PostgresService, chain_directory: Path) -> None:
    """A blueprint of chains is keyed by their files and applies all of them."""
    chain = MigrationChain(name="core", directory=chain_directory)
    blueprint = alembic_blueprint(chain)
    async with (
        open_pool(postgres.url, blueprint, run_id="alembic", warm=1) as pool,
        Database((await pool.checkout()).url) as database,
    ):
        await database.expect_migration_head(chain)
    (chain_directory / "r001.py").write_text((chain_directory / "r001.py").read_text() + "\n")

    assert blueprint.key != alembic_blueprint(chain).key


async def test_who_held_a_clone_is_reported(postgres: PostgresService) -> None:
    """A connection left open does not stop the drop, and its holder is a finding."""
    async with open_pool(postgres.url, Counted("held").blueprint, run_id="held") as pool:
        clone = await pool.checkout()
        async with Database(clone.url + "?application_name=leaky") as leaky:
            await leaky.rows("select 1 as leak")
            holders = await pool.drop(clone)
            names = await databases(postgres)

    assert clone.name not in names
    assert 1 == len(holders)
    assert "select 1 as leak" in holders[0]


async def test_only_our_own_databases_are_dropped(postgres: PostgresService) -> None:
    """A foreign database is refused, also when its name looks like ours."""
    from harness_core.infrastructure.databases import Clone

    async with Database(postgres.url()) as admin:
        await admin.execute("create database hs_own_stranger")
        async with open_pool(postgres.url, Counted("own").blueprint, run_id="own") as pool:
            for name in ("postgres", "hs_own_stranger", "no_such_database"):
                with pytest.raises(HarnessError, match="was not made by the run own"):
                    await pool.drop(Clone(name=name, url=postgres.url(name)))
        left = await drop_run_databases(postgres.url, run_id="own")
        names = await databases(postgres)
        await admin.execute("drop database hs_own_stranger")

    assert () == left
    assert {"postgres", "hs_own_stranger"} <= names


async def test_a_kept_clone_stays_with_its_rows(postgres: PostgresService) -> None:
    """What a failed test leaves is there after the pool closed, until the run is swept."""
    async with open_pool(postgres.url, Counted("kept").blueprint, run_id="kept") as pool:
        clone = await pool.checkout()
        shown = await pool.keep(clone)
    async with Database(clone.url) as database:
        await database.expect_count("t", count=1)
    dropped = await drop_run_databases(postgres.url, run_id="kept")

    assert (clone.name,) == dropped
    assert shown.endswith(f"/{clone.name}")
    assert ":***@" in shown


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        pytest.param({"run_id": "Robert'); --"}, "run_id", id="run-id"),
        pytest.param({"run_id": "x", "warm": -1}, "warm", id="warm-below"),
        pytest.param({"run_id": "x", "warm": 1000}, "warm", id="warm-above"),
    ],
)
async def test_malformed_arguments_are_refused(
    postgres: PostgresService, arguments: dict[str, object], key: str
) -> None:
    """Names and sizes are checked before the server is asked."""
    with pytest.raises(BadInput) as caught:
        async with open_pool(postgres.url, Counted("bad").blueprint, **arguments):
            pass

    assert key == caught.value.key


async def test_an_empty_database_on_our_own_server(postgres: PostgresService, run: Run) -> None:
    """It has the name that was asked for, and nothing in it."""
    async with create_database(postgres, "butler_x", run=run) as database:
        assert database.url.endswith("/butler_x")
        with pytest.raises(AssertionError, match="found no tables at all"):
            await database.expect_table("anything")
        with pytest.raises(HarnessError, match="has one of that name"):
            async with create_database(postgres, "butler_x", run=run):
                pass


async def test_an_empty_database_on_an_external_server(postgres: PostgresService, run: Run) -> None:
    """It carries the run in its name, and is dropped at the end with those who hold it."""
    external = PostgresService(
        postgres._service, postgres._url, provider="external", in_memory=False
    )
    async with create_database(external, "butler_x", run=run) as database:
        name = (await database.one("select current_database() as name"))["name"]
        holder = Database(database.url)
        await holder.rows("select 1")
    await holder.close()

    assert f"hs_{run.id}_butler_x" == name
    assert name not in await databases(postgres)


@pytest.mark.parametrize("name", ["", "n" * 64])
async def test_a_name_the_server_would_change_is_refused(
    postgres: PostgresService, run: Run, name: str
) -> None:
    """PostgreSQL cuts long names silently; we do not."""
    with pytest.raises(BadInput):
        async with create_database(postgres, name, run=run):
            pass
