"""A product's own tables, read under a contract's names."""

from __future__ import annotations

import pytest

from harness_core.base.errors import BadInput
from harness_core.infrastructure.databases import Database, Relation

pytestmark = pytest.mark.real

_WHERE = "my-product.toml"
_INBOX = Relation(
    columns={"request_id": "number", "lifecycle_state": "", "normalized_text": ""},
    select="select id as request_id, doc->>'state' as lifecycle_state, doc->>'text' as normalized_text"
    " from mail.items where kind = 'in';",
    values={"lifecycle_state": {"done": "completed", "broken": "errored"}},
)


@pytest.fixture
async def product(database: Database) -> Database:
    """A product that has a table of the contract's name for something else."""
    await database.execute("create schema mail")
    await database.execute("create table mail.items (id int, kind text, doc jsonb)")
    await database.execute("create table message_inbox (request_id text, secret int)")
    for number, state in enumerate(("done", "new", "broken")):
        await database.execute(
            "insert into mail.items values (%s, 'in', jsonb_build_object('state', %s::text, 'text', 'hi'))",
            (number, state),
        )
    await database.execute("insert into mail.items values (9, 'out', '{}')")
    return database


async def test_rows_are_those_of_the_contract(product: Database) -> None:
    """Names, columns and states, in queries and in assertions, whatever else has that name."""
    await product.read_as({"message_inbox": _INBOX}, where=_WHERE)

    rows = await product.rows("select * from message_inbox order by request_id")
    assert ["completed", "new", "errored"] == [row["lifecycle_state"] for row in rows]
    assert {"request_id", "lifecycle_state", "normalized_text"} == set(rows[0])
    row = await product.expect_row("message_inbox", where={"lifecycle_state": "errored"})
    assert 2 == row["request_id"]
    with pytest.raises(AssertionError, match="expected a column 'secret' in table 'message_inbox'"):
        await product.expect_columns("message_inbox", ["secret"])


async def test_a_number_is_one_to_count_with(product: Database) -> None:
    """Of whatever type the product's is: a test subtracts it from what it has measured itself."""
    select = "select 1500::numeric / 2 as duration_ms, id as tokens from mail.items where id = 2"
    relation = Relation(columns={"duration_ms": "number", "tokens": "number"}, select=select)
    await product.read_as({"sessions": relation}, where=_WHERE)

    [row] = await product.rows("select * from sessions")
    assert 0.5 == 750.5 - row["duration_ms"]
    assert "2" == str(row["tokens"])


async def test_the_product_sees_nothing_of_it(product: Database) -> None:
    """Another connection has its own table still, and the database nothing that it had not."""
    await product.read_as({"message_inbox": _INBOX}, where=_WHERE)
    assert 3 == len(await product.rows("select from message_inbox"))

    async with Database(product.url) as other:
        assert [] == await other.rows("select secret from message_inbox")
        await other.execute("drop table message_inbox")


async def test_a_connection_that_was_lost_reads_the_same(product: Database) -> None:
    """As after a restart of the server, and after close."""
    await product.read_as({"message_inbox": _INBOX}, where=_WHERE)
    [row] = await product.rows("select pg_backend_pid() as pid")
    async with Database(product.url) as other:
        await other.execute("select pg_terminate_backend(%s)", (row["pid"],))

    assert 3 == len(await product.rows("select lifecycle_state from message_inbox"))
    await product.close()
    assert 3 == len(await product.rows("select lifecycle_state from message_inbox"))


@pytest.mark.parametrize(
    ("relation", "says"),
    [
        (
            Relation(
                columns={"id": "number", "at": "time", "why": "", "doc": "truth"},
                select="select id, doc from mail.items",
            ),
            r"tables.message_inbox.select.*no at; no why; doc is jsonb.*; why; doc as boolean",
        ),
        (
            Relation(columns={"id": ""}, select="select id from post.items"),
            r'tables.message_inbox.select.*relation "post.items" does not exist',
        ),
        (
            Relation(columns={"id": ""}, select="delete from mail.items"),
            r"tables.message_inbox.select.*syntax error",
        ),
        (
            Relation(columns={"id": ""}, select="select id from mail.items", values={"state": {}}),
            r"tables.message_inbox.values.*state.*a column of message_inbox: id",
        ),
    ],
)
async def test_a_mistake_is_told_by_file_and_key(
    product: Database, relation: Relation, says: str
) -> None:
    """Before anything is read by it; afterwards the database reads as before."""
    with pytest.raises(BadInput, match=says) as caught:
        await product.read_as({"message_inbox": relation}, where=_WHERE)

    assert _WHERE in str(caught.value)
    assert [] == await product.rows("select secret from message_inbox")
