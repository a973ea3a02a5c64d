"""What became of each row, told by the database itself: not how rows stand, but how they came to.

A look at a row when all is over cannot see that it was told too early, was changed after its end, or
was another's. So each database is given triggers, in a schema of their own, that keep what a
transaction of the product made of a row, as it stood when that was committed. What the harness writes
itself is left out. Every test that uses an ecosystem ends with :func:`broken_promises`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import trio

from harness_core.base.errors import NotReady, Unavailable
from harness_core.base.slowness import patience
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import COST, TOKEN_SUMS, TRACING, Ecosystem
from suites.e2e.ecosystem.subject_file import tables_of
from suites.e2e.observe.expect_journey import FAILED_OUTCOMES
from suites.e2e.observe.journey import FINAL_STATES, as_data, targets_of

__all__ = ["broken_promises", "place_witness"]

#: A database that a test has taken away is not waited for.
_LOOK_S: Final = 5.0

#: What comes back sooner than a process can start was never meant to be gone.
_AT_ONCE: Final = dt.timedelta(milliseconds=100)

#: Rows of changes that are read at a time, and those of their transactions.
_AT_A_TIME: Final = 1000

#: Of a row, in a sentence.
_SHOWN_CHARS: Final = 300

#: Column of an ended session → what a subject claims that fills it.
_CLAIMED: Final = {"cost": COST, "input_tokens": TOKEN_SUMS, "output_tokens": TOKEN_SUMS}

#: Causes of a session (contract, "Spawner and runtime").
_CAUSES: Final = frozenset({"tick", "external", "trigger"})

_SETUP: Final = """
CREATE SCHEMA IF NOT EXISTS harness;
CREATE TABLE IF NOT EXISTS harness.changes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    transaction bigint NOT NULL,
    place text NOT NULL,
    was jsonb,
    became jsonb,
    beside bigint
);
CREATE OR REPLACE FUNCTION harness.note() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    became jsonb;
    beside bigint;
BEGIN
    IF current_setting('application_name') = 'staging-harness' THEN
        RETURN NULL;
    END IF;
    -- Whatever goes wrong here must not be the product's trouble.
    BEGIN
        IF TG_OP <> 'DELETE' THEN
            IF TG_ARGV[0] = '' THEN
                became := to_jsonb(NEW);
            ELSE
                EXECUTE format(
                    'SELECT to_jsonb(t) FROM %s AS t WHERE t.%I = ($1).%I',
                    TG_RELID::regclass, TG_ARGV[0], TG_ARGV[0]
                ) INTO became USING NEW;
            END IF;
            IF TG_ARGV[1] <> '' THEN
                EXECUTE TG_ARGV[1] INTO beside USING NEW;
            END IF;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        beside := NULL;
    END;
    INSERT INTO harness.changes (transaction, place, was, became, beside) VALUES (
        txid_current(), TG_TABLE_NAME, CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END, became,
        beside
    );
    RETURN NULL;
END
$body$;
"""

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What one transaction of the product made of one row.

    Attributes:
        place: the table.
        name: of the row.
        at: when.
        was: the row before it; ``None`` when it was not there.
        became: the row when it was committed; ``None`` when it was removed.
        beside: how many rows of another table belonged to it then; ``None`` where that is unknown.
    """

    place: str
    name: Any
    at: dt.datetime
    was: Row | None
    became: Row | None
    beside: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Book:
    """A table whose rows are books.

    Attributes:
        key: the column that names a row; empty where the contract has none.
        beside: what counts the rows of another table that belong to a row.
        kept: columns that do not change once they have a value.
        ended: whether a row says that what it is about is over.
        closed: columns that do not change after that.
        whole: what a row that says so lacks.
        leaves: whether a row may be removed at all.
    """

    key: str
    ended: Callable[[Row], bool]
    closed: Sequence[str]
    whole: Callable[[Row, int | None], Iterator[str]]
    kept: Sequence[str] = ()
    beside: str = ""
    leaves: bool = False


def _message(row: Row, hops: int | None) -> Iterator[str]:
    if row["lifecycle_state"] != "completed":
        if not row.get("response_summary") and not row.get("dispatch_outcomes"):
            yield "a reason"
        return
    for column in ("decomposition", "dispatch_outcomes", "response_summary"):
        if not row.get(column):
            yield column
    segments = len(targets_of(row.get("decomposition")))
    if hops is not None and hops < segments:
        yield f"{segments - hops} of {segments} rows of routing_log"


def _session(row: Row, _: int | None) -> Iterator[str]:
    if row.get("success") is None:
        yield "success"
    if bool(row.get("error")) is bool(row.get("success")):
        yield f"agreement of success={row.get('success')} and error={row.get('error')!r}"
    if not isinstance(as_data(row.get("tool_calls")), list):
        yield "tool_calls"
    for column in ("result", "duration_ms", "cost", "model", "input_tokens", "output_tokens"):
        if row.get("success") and row.get(column) is None:
            yield column


def _cause(row: Row) -> Iterator[str]:
    source = str(row.get("trigger_source"))
    if source not in _CAUSES and not source.startswith("schedule:"):
        yield f"a cause that the contract knows (it says {source!r})"


def _hop(row: Row, _: int | None) -> Iterator[str]:
    for column in ("source_butler", "target_butler", "tool_name", "duration_ms"):
        if row.get(column) in {None, ""}:
            yield column
    if not row["success"] and row.get("error_class") not in FAILED_OUTCOMES:
        yield f"an outcome of the contract (it says {row.get('error_class')!r})"
    if bool(row.get("error")) is bool(row["success"]):
        yield f"agreement of success={row['success']} and error={row.get('error')!r}"


def _delivery(row: Row, receipts: int | None) -> Iterator[str]:
    if row["status"] == "delivered" and receipts == 0:
        yield "a receipt"


def _attempt(row: Row, _: int | None) -> Iterator[str]:
    if not row["success"] and not row.get("error"):
        yield "an error"


_BOOKS: Final[Mapping[str, _Book]] = {
    "message_inbox": _Book(
        key="request_id",
        beside="SELECT count(*) FROM routing_log WHERE trace_id = ($1).trace_id",
        kept=("channel", "payload", "normalized_text", "trace_id"),
        ended=lambda row: row["lifecycle_state"] in FINAL_STATES,
        closed=("lifecycle_state", "decomposition", "dispatch_outcomes", "response_summary"),
        whole=_message,
    ),
    "sessions": _Book(
        key="id",
        kept=("prompt", "trigger_source", "trace_id", "request_id"),
        ended=lambda row: row["completed_at"] is not None,
        closed=(
            *("result", "tool_calls", "duration_ms", "cost", "completed_at", "success", "error"),
            *("model", "input_tokens", "output_tokens"),
        ),
        whole=_session,
    ),
    "routing_log": _Book(
        key="",
        ended=lambda row: row["success"] is not None,
        closed=(
            *("source_butler", "target_butler", "tool_name", "success", "duration_ms", "error"),
            *("error_class", "created_at"),
        ),
        whole=_hop,
    ),
    "delivery_requests": _Book(
        key="id",
        beside="SELECT count(*) FROM delivery_receipts WHERE delivery_id = ($1).id",
        kept=("channel", "message", "origin_butler", "request_id", "trace_id"),
        ended=lambda row: row.get("status") == "delivered",
        closed=("status", "recipient", "error"),
        whole=_delivery,
    ),
    "delivery_attempts": _Book(
        key="id",
        ended=lambda row: row.get("success") is not None,
        closed=("success", "error"),
        whole=_attempt,
    ),
    "delivery_receipts": _Book(
        key="id",
        ended=lambda _row: True,
        closed=("recipient", "delivery_id"),
        whole=lambda _row, _: iter(()),
    ),
    "butler_registry": _Book(
        key="name",
        # Who comes back from there is brought back by an operator, which is the harness here.
        ended=lambda row: row["eligibility_state"] == "quarantined",
        closed=("eligibility_state",),
        whole=lambda _row, _: iter(()),
        leaves=True,
    ),
}


async def place_witness(ecosystem: Ecosystem) -> None:
    """From now on every change of a book is kept; to be called once all butlers have migrated.

    What a product keeps in another form is not watched: a transaction of it may be half a row.
    """
    elsewhere = tables_of(ecosystem.subject).tables
    books = {table: book for table, book in _BOOKS.items() if table not in elsewhere}
    for butler in ecosystem.butlers.values():
        known = [each for each in books if await _has_table(butler, each)]
        if known:
            await butler.database.execute(_SETUP)
            ecosystem.witnessed = True
        for table in known:
            book = books[table]
            beside = book.beside.replace("'", "''")
            await butler.database.execute(  # lint: allow writes-rows: looks on, and changes no row
                f"CREATE CONSTRAINT TRIGGER harness_note AFTER INSERT OR UPDATE OR DELETE ON {table}"
                " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
                f" EXECUTE FUNCTION harness.note('{book.key}', '{beside}')"
            )


async def _has_table(butler: Butler, table: str) -> bool:
    known = await butler.database.one("SELECT to_regclass(%s) AS found", (table,))
    return known["found"] is not None


async def broken_promises(ecosystem: Ecosystem) -> tuple[str, ...]:
    """What rows went through since the last look that none may, a sentence each.

    A database that does not answer is looked at another time.
    """
    found: list[str] = []

    claimed = ecosystem.subject.capabilities
    traced = TRACING in claimed
    unkept = frozenset(column for column, name in _CLAIMED.items() if name not in claimed)

    async def look(butler: Butler) -> None:
        with suppress(Unavailable, NotReady):
            while changes := await _changes(butler):
                sentences = [
                    each
                    for change in changes
                    for each in _judged(change, traced=traced, unkept=unkept)
                ]
                found.extend(f"{butler.name}: {each}" for each in (*sentences, *_missing(changes)))

    with trio.move_on_after(patience(_LOOK_S)):
        async with trio.open_nursery() as nursery:
            for butler in ecosystem.butlers.values():
                nursery.start_soon(look, butler)
    return tuple(found)


async def _changes(butler: Butler) -> list[_Change]:
    """What each of some transactions made of each row, oldest first; they are forgotten then.

    Each transaction is told whole; a long run has more of them than are read at a time.
    """
    rows = await butler.database.rows(  # lint: allow writes-rows: a table of the harness's own
        "DELETE FROM harness.changes WHERE transaction <= (SELECT max(transaction) FROM"
        " (SELECT transaction FROM harness.changes ORDER BY number LIMIT %s) AS oldest) RETURNING *",
        (_AT_A_TIME,),
    )
    merged: dict[tuple[Any, ...], _Change] = {}
    for row in sorted(rows, key=lambda row: row["number"]):
        key = _BOOKS[row["place"]].key
        name = (row["became"] or row["was"] or {}).get(key) if key else row["number"]
        change = _Change(
            place=row["place"],
            name=name,
            at=row["at"],
            was=row["was"],
            became=row["became"],
            beside=row["beside"],
        )
        # Of several statements in one transaction the first saw how the row was before it.
        first = merged.setdefault((row["transaction"], row["place"], name), change)
        merged[row["transaction"], row["place"], name] = dataclasses.replace(change, was=first.was)
    return list(merged.values())


def _judged(change: _Change, *, traced: bool, unkept: Collection[str]) -> Iterator[str]:
    book, place = _BOOKS[change.place], change.place
    was, became = change.was, change.became
    if became is None:
        if was is not None and not book.leaves:
            yield f"books are kept: a row of {place} was removed, {_shown(was)}"
        return
    if place == "sessions":
        for lack in _cause(became):
            yield f"a session says what caused it: it lacks {lack}, {_shown(became)}"
    if was is not None:
        told = [column for column in book.kept if was.get(column) is not None]
        yield from _altered("what was accepted stays as it was", told, change)
    if was is not None and book.ended(was):
        yield from _altered("what is over does not change any more", book.closed, change)
    elif book.ended(became):
        # By its trace a message finds its hops.
        beside = change.beside if traced or place != "message_inbox" else None
        for lack in set(book.whole(became, beside)).difference(unkept):
            yield (
                f"a row is complete only when all of it is recorded: when a row of {place} said "
                f"that it was over, it lacked {lack}, {_shown(became)}"
            )


def _missing(changes: Sequence[_Change]) -> Iterator[str]:
    """Rows that were removed, to be there again at once: a reader in between found none."""
    gone: dict[tuple[str, Any], dt.datetime] = {}
    for change in changes:
        key = change.place, change.name
        if change.became is None:
            gone[key] = change.at
        elif change.was is None and key in gone and change.at - gone[key] < _AT_ONCE:
            yield (
                f"concurrent readers see the old or the new, never neither: the row of {change.name} "
                f"in {change.place} was removed and made anew, {change.at - gone[key]} apart"
            )


def _altered(clause: str, columns: Sequence[str], change: _Change) -> Iterator[str]:
    """Which of these columns of a row are others than they were."""
    was, became = change.was or {}, change.became or {}
    for column in columns:
        if was.get(column) != became.get(column):
            yield (
                f"{clause}: {column} of a row of {change.place} was {_shown(was.get(column))} and "
                f"became {_shown(became.get(column))}, in {_shown(became)}"
            )


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
