"""Assertions on rows: what they accept, how soon, and what they say when they fail."""

from __future__ import annotations

import datetime as dt
import enum
import re
import uuid

import psycopg
import pytest
import trio

from harness_core.base.errors import BadInput, Unavailable
from harness_core.infrastructure.databases import Contains, Database, Regex

pytestmark = pytest.mark.real

SOON_S = 0.2


class Severity(enum.Enum):
    """An enum as tests use them: a member stands for its value."""

    MILD = 1
    BAD = 7


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a message says of the time does not depend on the machine's load."""
    monkeypatch.setattr("harness_core.infrastructure.databases._database.patience", float)


@pytest.fixture
async def symptoms(database: Database) -> Database:
    """A table with one row of every type the matchers know."""
    await database.execute(
        'create table symptoms (id uuid primary key, "Name" text, severity int, weight numeric, '
        "ok boolean, noted_at timestamptz, tags text[], data jsonb, gone text)"
    )
    await database.execute(
        "insert into symptoms values ('00000000-0000-0000-0000-000000000001', 'Bad  Headache ', 7, "
        "61.5, true, '2026-03-02T10:00:00Z', '{red,blue}', "
        """'{"plan": [{"butler": "health", "n": 3}], "note": "took Aspirin"}', null)"""
    )
    return database


@pytest.mark.parametrize(
    ("column", "meets", "misses"),
    [
        pytest.param("Name", "Bad  Headache ", "Bad Headache", id="text"),
        pytest.param("Name", Contains("headache"), Contains("tooth"), id="contains"),
        pytest.param("Name", Contains("BAD"), Contains("%"), id="contains-percent"),
        pytest.param("Name", Regex(r"^Bad\s+"), Regex(r"^bad"), id="regex"),
        pytest.param("severity", 7, 8, id="number"),
        pytest.param("severity", "7", "8", id="number-as-text"),
        pytest.param("severity", Contains("7"), Contains("8"), id="number-contains"),
        pytest.param("weight", 61.5, 61.4, id="numeric"),
        pytest.param("ok", True, False, id="boolean"),
        pytest.param("id", "00000000-0000-0000-0000-000000000001", str(uuid.uuid4()), id="uuid"),
        pytest.param("id", uuid.UUID(int=1), uuid.UUID(int=2), id="uuid-object"),
        pytest.param(
            "noted_at",
            dt.datetime(2026, 3, 2, 11, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            "2026-03-02T11:00:00Z",
            id="timestamp",
        ),
        pytest.param("tags", ["red", "blue"], [], id="array"),
        pytest.param("tags", Contains("red"), Contains("green"), id="array-contains"),
        pytest.param("data", Contains("aspirin"), Contains("ibuprofen"), id="json-text"),
        pytest.param("data", Regex('"n": 3'), Regex('"n": 4'), id="json-regex"),
        pytest.param(
            "data",
            {"note": "took Aspirin", "plan": [{"n": 3, "butler": "health"}]},
            {"note": "took Aspirin"},
            id="json-whole",
        ),
        pytest.param("gone", None, "x", id="null"),
        pytest.param("severity", 7, None, id="not-null"),
        pytest.param("severity", Severity.BAD, Severity.MILD, id="enum"),
    ],
)
async def test_each_matcher_finds_its_rows(
    symptoms: Database, column: str, meets: object, misses: object
) -> None:
    """A row that meets the condition is found, and one that does not is not."""
    row = await symptoms.expect_row("symptoms", where={column: meets})
    await symptoms.expect_no_row("symptoms", where={column: misses})
    await symptoms.expect_count("symptoms", where={column: misses}, count=0)

    assert 7 == row["severity"]


async def write_late(database: Database) -> None:
    """Add a row after a while, from another client."""
    async with Database(database.url) as writer:
        await writer.rows("select pg_sleep(0.2)")
        await writer.execute("insert into symptoms (id, severity) values (gen_random_uuid(), 9)")


async def test_a_late_row_is_found_at_once(symptoms: Database) -> None:
    """The wait ends when the row is there, long before its deadline."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_late, symptoms)
        began = trio.current_time()
        row = await symptoms.expect_row("symptoms", where={"severity": 9}, within_s=20)
        waited_s = trio.current_time() - began

    assert 9 == row["severity"]
    assert waited_s < 10


async def test_the_newest_of_several_rows_is_returned(symptoms: Database) -> None:
    """Among rows that meet the conditions the one written last comes back."""
    for severity in (8, 9):
        await symptoms.execute(
            "insert into symptoms (id, severity) values (gen_random_uuid(), %s)", (severity,)
        )
    row = await symptoms.expect_row("symptoms", where={"severity": Regex("[789]")})

    assert 9 == row["severity"]


async def test_a_failure_shows_the_nearest_rows(symptoms: Database) -> None:
    """The message names conditions, wait, number of rows, the nearest row and what it misses."""
    for _ in range(8):
        await symptoms.execute(
            "insert into symptoms (id, \"Name\", severity) values (gen_random_uuid(), 'cough', 1)"
        )
    with pytest.raises(AssertionError) as caught:
        await symptoms.expect_row(
            "symptoms",
            where={"Name": Contains("headache")},
            columns={"severity": 3, "ok": True},
            within_s=SOON_S,
        )

    lines = str(caught.value).splitlines()
    assert "expected at least one row in table 'symptoms', found none within 0.2 s" == lines[0]
    assert "  where: Name = Contains(part='headache')" == lines[1]
    assert "  columns: severity = 3" == lines[2]
    assert "the table has 9 row(s), 1 of them meet every `where`" == lines[4]
    assert "Bad  Headache" in lines[6]
    assert "     misses severity: expected 3, found 7" == lines[7]
    assert 5 == len([line for line in lines if re.match(r"  \d\. ", line)])
    assert lines[-1].startswith("database: postgresql://postgres:***@127.0.0.1:")


async def test_an_empty_table_is_reported_as_empty(symptoms: Database) -> None:
    """Nothing written at all is another finding than something else written."""
    await symptoms.execute("truncate symptoms")
    with pytest.raises(AssertionError, match="the table is empty"):
        await symptoms.expect_row("symptoms", where={"severity": 7}, within_s=SOON_S)


async def test_where_and_columns_must_meet_in_one_row(symptoms: Database) -> None:
    """Two rows that each meet a half are no row that meets the whole."""
    await symptoms.execute("insert into symptoms (id, severity) values (gen_random_uuid(), 1)")
    with pytest.raises(AssertionError):
        await symptoms.expect_row(
            "symptoms", where={"ok": True}, columns={"severity": 1}, within_s=SOON_S
        )


async def test_an_unwanted_row_is_shown(symptoms: Database) -> None:
    """A row that must not be there fails the assertion and is in the message."""
    with pytest.raises(AssertionError, match=r"(?s)expected no row .* found 1.*Bad  Headache"):
        await symptoms.expect_no_row("symptoms", where={"severity": 7})


async def test_an_unwanted_row_is_watched_for(symptoms: Database) -> None:
    """A row written while the assertion watches fails it."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_late, symptoms)
        with pytest.raises(AssertionError, match="found 1"):
            await symptoms.expect_no_row("symptoms", where={"severity": 9}, during_s=20)


@pytest.mark.parametrize("count", [0, 2])
async def test_a_count_is_exact(symptoms: Database, count: int) -> None:
    """One row is neither none nor two."""
    await symptoms.expect_count("symptoms", count=1)
    with pytest.raises(AssertionError, match=rf"exactly {count} row\(s\) .* found 1 after"):
        await symptoms.expect_count("symptoms", count=count, within_s=SOON_S)


async def test_a_view_can_be_asserted_on(symptoms: Database) -> None:
    """Views have no row age; the assertion works on them all the same."""
    await symptoms.execute("create view bad as select * from symptoms where severity > 5")
    row = await symptoms.expect_row("bad", where={"severity": 7})
    with pytest.raises(AssertionError, match="nearest rows"):
        await symptoms.expect_row("bad", where={"severity": 1}, within_s=SOON_S)

    assert 7 == row["severity"]


async def test_hostile_names_are_quoted(database: Database) -> None:
    """Identifiers and values reach the server as what they are."""
    await database.execute('create schema "s p"')
    await database.execute('create table "s p"."drop; table" ("a""b" text)')
    await database.execute("insert into \"s p\".\"drop; table\" values ('it''s 100%% \\')", ())
    row = await database.expect_row("s p.drop; table", where={'a"b': "it's 100% \\"})

    assert {'a"b': "it's 100% \\"} == row


async def test_an_unknown_table_names_those_that_exist(symptoms: Database) -> None:
    """The product lacks a table: at once, with what it has and a guess."""
    with pytest.raises(AssertionError) as caught:
        await symptoms.expect_row("symptom", where={})

    assert "expected a table 'symptom', found the tables symptoms; did you mean 'symptoms'?" == str(
        caught.value
    )


async def test_an_unknown_column_names_those_that_exist(symptoms: Database) -> None:
    """The product lacks a column: at once, with what it has and a guess."""
    with pytest.raises(AssertionError, match=r"'severty'.* the columns id, Name.*'severity'\?"):
        await symptoms.expect_row("symptoms", where={}, columns={"severty": 7})


async def test_exact_columns(symptoms: Database) -> None:
    """Names alone, or names with types; a wrong type is named."""
    await symptoms.expect_columns("symptoms", frozenset({"id", "data"}))
    await symptoms.expect_columns("symptoms", {"data": "jsonb", "tags": "text[]"})
    await symptoms.expect_table("symptoms")
    with pytest.raises(AssertionError, match="data: expected json, found jsonb"):
        await symptoms.expect_columns("symptoms", {"id": "uuid", "data": "json"})
    with pytest.raises(AssertionError, match="expected a table 'nope'"):
        await symptoms.expect_table("symptoms", "nope")


@pytest.mark.parametrize(
    ("wanted", "key"),
    [
        pytest.param({"severity": "many"}, "symptoms.severity", id="text-for-a-number"),
        pytest.param({"ok": 5}, "symptoms.ok", id="number-for-a-boolean"),
    ],
)
async def test_a_condition_that_does_not_fit_its_column(
    symptoms: Database, wanted: dict[str, object], key: str
) -> None:
    """A value the server cannot compare is the test's mistake and is named as such."""
    with pytest.raises(BadInput) as caught:
        await symptoms.expect_row("symptoms", where={"gone": None, **wanted})

    assert key == caught.value.key


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Contains(""), id="contains-nothing"),
        pytest.param(lambda: Contains(5), id="contains-of-a-number"),
        pytest.param(lambda: Regex("("), id="regex"),
        pytest.param(lambda: Regex(5), id="regex-of-a-number"),
    ],
)
def test_a_malformed_matcher_is_refused_when_it_is_written(make: object) -> None:
    """A scenario row with such a matcher fails at collection, not in a run."""
    with pytest.raises(BadInput):
        make()


@pytest.mark.parametrize("table", ["", ".", "a.b.c", "a."])
async def test_a_malformed_table_name_is_refused(database: Database, table: str) -> None:
    """A table is ``name`` or ``schema.name``."""
    with pytest.raises(BadInput):
        await database.expect_row(table, where={})


async def test_one_wants_exactly_one_row(symptoms: Database) -> None:
    """None and several are both failures."""
    assert {"n": 1} == await symptoms.one("select count(*) as n from symptoms")
    with pytest.raises(AssertionError, match="expected one row, found 0"):
        await symptoms.one("select 1 from symptoms where severity = %s", (1,))
    with pytest.raises(AssertionError, match="expected one row, found 2"):
        await symptoms.one("select generate_series(1, 2)")


async def test_a_statement_the_server_refuses_is_the_callers(database: Database) -> None:
    """SQL errors come as they are, and the handle goes on working."""
    with pytest.raises(psycopg.errors.UndefinedTable):
        await database.rows("select * from nowhere")

    assert [{"n": 1}] == await database.rows("select 1 as n")


async def test_a_database_that_is_not_there_is_one_clear_error(database: Database) -> None:
    """The error names the URL without its password."""
    async with Database(database.url + "x") as missing:
        with pytest.raises(Unavailable) as caught:
            await missing.rows("select 1")

    assert "does not exist" in caught.value.observed
    assert database.url.split(":")[2].partition("@")[0] not in str(caught.value)
    assert "***" in repr(missing)


async def test_no_url_of_postgresql_is_refused() -> None:
    """Another scheme is a mistake of the caller."""
    async with Database("sqlite:///x") as wrong:
        with pytest.raises(BadInput):
            await wrong.rows("select 1")


async def test_a_driver_in_the_scheme_is_accepted(database: Database) -> None:
    """URLs as SQLAlchemy writes them work."""
    async with Database(database.url.replace("postgresql:", "postgresql+psycopg:")) as same:
        assert [{"n": 1}] == await same.rows("select 1 as n")


async def test_callers_take_turns_on_one_handle(database: Database) -> None:
    """Many queries at once on one handle all get their own answer."""
    answers: dict[int, object] = {}

    async def ask(number: int) -> None:
        answers[number] = (await database.one("select %s::int as n", (number,)))["n"]

    async with trio.open_nursery() as nursery:
        for number in range(40):
            nursery.start_soon(ask, number)

    assert {number: number for number in range(40)} == answers
