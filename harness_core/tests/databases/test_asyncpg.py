"""A pool of asyncpg on a database of the harness: on asyncio, on that very database, for a block."""

from __future__ import annotations

import asyncio
from functools import partial

import anyio
import pytest
import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.wait import deadline, until
from harness_core.infrastructure.databases import Database

pytestmark = pytest.mark.real


@pytest.fixture
def none_connected(database: Database, postgres):
    """Waits until the database has no client."""
    name = database.url.rpartition("/")[2]
    query = "select count(*) as n from pg_stat_activity where datname = %s"

    async def none() -> None:
        async with Database(postgres.url()) as admin:

            async def gone() -> bool:
                return 0 == (await admin.one(query, (name,)))["n"]

            with deadline("see every connection closed", seconds=5):
                await until(gone)

    return none


@pytest.fixture(params=["asyncio", "anyio"])
def run_in(request):
    """Each library that runs on asyncio."""
    if request.param == "anyio":
        return partial(anyio.run, backend="asyncio")
    return lambda body: asyncio.run(body())


async def test_a_test_on_asyncio_speaks_to_the_database(run_in, database, none_connected):
    """What asyncpg writes the handle reads; after the block no connection is left."""
    await database.execute("create table t (n int)")
    await database.close()

    async def body() -> None:
        async with database.asyncpg_pool() as pool:
            await pool.execute("insert into t values (7)")
            async with pool.acquire() as connection, connection.transaction():
                assert 7 == await connection.fetchval("select n from t")

    await blocking(run_in, body)
    await none_connected()
    await database.expect_row("t", where={"n": 7})


@pytest.mark.parametrize("run", [trio.run, partial(anyio.run, backend="trio")])
async def test_on_trio_it_is_refused(database, run):
    """The error says what to use there."""

    async def body() -> None:
        async with database.asyncpg_pool():
            pass

    with pytest.raises(HarnessError, match="in a task of trio") as refused:
        await blocking(run, body)

    assert "rows, one, execute" in refused.value.next_step


@pytest.mark.parametrize("how", ["error", "held"])
async def test_no_connection_outlives_the_block(run_in, database, none_connected, how):
    """Neither when the test fails in it, nor when one is not given back, which is an error."""

    async def body() -> None:
        async with database.asyncpg_pool(connections=2) as pool:
            await pool.acquire()
            if how == "error":
                raise ValueError("the test's own")

    expected = ValueError if how == "error" else HarnessError
    with pytest.raises(expected, match=r"the test's own|1 connection\(s\) were not given back"):
        await blocking(run_in, body)

    await none_connected()


async def test_a_database_that_is_not_there_is_one_clear_error(run_in, database):
    """The error names the URL without its password, in the server's words."""

    async def body() -> None:
        async with Database(f"{database.url}x") as missing, missing.asyncpg_pool():
            pass

    with pytest.raises(Unavailable, match="does not exist") as caught:
        await blocking(run_in, body)

    assert "postgres:***@" in caught.value.action
