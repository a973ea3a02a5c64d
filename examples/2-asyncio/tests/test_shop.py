"""The shop, whole, tested on asyncio: each method of a fixture is awaited."""

import httpx
import pytest_asyncio


@pytest_asyncio.fixture
async def web(process):
    shop = await process.start("web")
    async with httpx.AsyncClient(base_url=shop.url, timeout=30) as client:
        yield client


async def place(web, item):
    return await web.post("/orders", json={"item": item})


async def test_an_order_is_kept(web, database):
    assert (await place(web, "a kettle")).status_code == 201
    async with database.asyncpg_pool() as pool:
        assert await pool.fetchval("select item from orders") == "a kettle"


async def test_another_test_does_not_see_it(web, database):
    async with database.asyncpg_pool() as pool:
        assert await pool.fetch("select * from orders") == []


async def test_an_order_gets_its_invoice(web, process, database, s3_bucket):
    await process.start("worker")
    number = (await place(web, "a kettle")).json()["id"]

    key = f"invoices/{number}.txt"
    await database.expect_row("orders", where={"id": number}, columns={"invoice": key})
    assert (await s3_bucket.get(key)).body == b"1 x a kettle"


async def test_orders_survive_a_crash_of_the_database(web, database, outage):
    await place(web, "a kettle")
    async with outage("postgres", "kill"):
        assert (await place(web, "a pot")).status_code == 503

    assert (await place(web, "a pan")).status_code == 201
    rows = await database.rows("select item from orders order by id")
    assert [row["item"] for row in rows] == ["a kettle", "a pan"]


async def test_orders_wait_for_a_worker_that_was_killed(web, process, database, s3_bucket):
    worker = await process.start("worker")
    await worker.kill()
    number = (await place(web, "a pot")).json()["id"]
    assert await s3_bucket.keys() == ()
    await worker.start()
    await database.expect_row("orders", where={"id": number, "invoice": f"invoices/{number}.txt"})
