"""The shop of compose.yaml, from outside, with the database that it has in production."""

import httpx
import pytest


@pytest.fixture
def shop(stack):
    """The running services, without the orders of another test."""
    stack.sync.rows("truncate shop_order")
    return stack


def order(shop, item, count):
    """POST an order; returns the status."""
    asked = {"item": item, "count": count}
    return httpx.post(f"{shop.url('web')}/orders", json=asked, timeout=30).status_code


def kept(shop):
    """The rows of its table."""
    return [(row["item"], row["count"]) for row in shop.sync.rows("select * from shop_order")]


def test_an_order_is_kept_and_what_is_refused_is_not(shop):
    """What was answered with 201 is a row."""
    assert (201, 422) == (order(shop, "bolt", 3), order(shop, "nut", 0))
    assert [("bolt", 3)] == kept(shop)


def test_without_its_database_it_says_so(shop, outage):
    """503 while that is away; then it goes on, and what was promised is there."""
    assert 201 == order(shop, "bolt", 3)
    with outage("db", "kill"):
        assert 503 == order(shop, "nut", 1)

    assert 201 == order(shop, "nut", 2)
    assert [("bolt", 3), ("nut", 2)] == kept(shop)
