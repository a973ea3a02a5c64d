"""The shop, whole: its web process, its worker, PostgreSQL and S3, all of them real."""

import httpx
import pytest


@pytest.fixture
def web(process):
    return process.sync.start("web")


@pytest.fixture
def worker(process):
    return process.sync.start("worker")


def place(web, item):
    return httpx.post(f"{web.url}/orders", json={"item": item}, timeout=30)


def test_an_order_is_kept(web, database):
    assert place(web, "a kettle").status_code == 201

    assert database.sync.one("select item from orders") == {"item": "a kettle"}


def test_another_test_does_not_see_it(web, database):
    assert database.sync.rows("select * from orders") == []


def test_an_order_gets_its_invoice(web, worker, database, s3_bucket):
    number = place(web, "a kettle").json()["id"]

    key = f"invoices/{number}.txt"
    database.sync.expect_row("orders", where={"id": number}, columns={"invoice": key})
    assert s3_bucket.sync.get(key).body == b"1 x a kettle"


def test_orders_survive_a_crash_of_the_database(web, worker, database, outage):
    place(web, "a kettle")

    with outage("postgres", "kill"):
        assert place(web, "a pot").status_code == 503

    assert place(web, "a pan").status_code == 201
    rows = database.sync.rows("select item from orders order by id")
    assert [row["item"] for row in rows] == ["a kettle", "a pan"]


def test_orders_wait_for_a_worker_that_was_killed(web, worker, database, s3_bucket):
    worker.sync.kill()
    number = place(web, "a pot").json()["id"]
    assert s3_bucket.sync.keys() == ()

    worker.sync.start()

    database.sync.expect_row("orders", where={"id": number, "invoice": f"invoices/{number}.txt"})
