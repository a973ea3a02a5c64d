"""Twenty tests of a shop, each with an empty book of orders.

They ask for two fixtures: ``shop``, the URL of the web process, and ``dsn``, that of its database.
"""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest

ITEMS = ["tea", "a kettle", "Brötchen", "'; drop table orders; --"]


def call(url, method="GET", order=None):
    body = json.dumps(order).encode() if order else None
    try:
        with urlopen(Request(f"{url}/orders", data=body, method=method)) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def book(dsn):
    with psycopg.connect(dsn) as connection:
        return connection.execute("select item, count from orders order by id").fetchall()


@pytest.mark.parametrize("item", ITEMS)
def test_an_order_is_kept(shop, dsn, item):
    assert call(shop, "POST", {"item": item, "count": 2})[0] == 201
    assert book(dsn) == [(item, 2)]


@pytest.mark.parametrize("item", ITEMS)
def test_what_another_wrote_is_shown(shop, dsn, item):
    with psycopg.connect(dsn) as connection:
        connection.execute("insert into orders (item, count) values (%s, 1)", [item])
    assert call(shop) == (200, [[item, 1]])


@pytest.mark.parametrize("count", [0, -1, -7, -1000])
def test_a_count_below_one_is_refused(shop, dsn, count):
    assert call(shop, "POST", {"item": "tea", "count": count})[0] == 422
    assert book(dsn) == []


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_orders_come_in_their_order(shop, dsn, count):
    for number in range(1, count + 1):
        call(shop, "POST", {"item": "tea", "count": number})
    assert call(shop)[1] == [["tea", number] for number in range(1, count + 1)]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_all_are_deleted(shop, dsn, count):
    for number in range(1, count + 1):
        call(shop, "POST", {"item": "tea", "count": number})
    assert call(shop, "DELETE") == (200, count)
    assert book(dsn) == []
