"""Golden outcomes: the same in each run, and different whenever the product is."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from harness_core.assertions import GOLDEN, E2EScenario, Mask, check_scenarios, golden, new_token
from harness_core.base.errors import BadInput

TODAY = dt.date(2026, 11, 20)
TOOK = Mask(field="sessions.*.duration_ms", reason="how long it took is the machine's doing")


def outcome(token: str, one: UUID, two: UUID, *, now: dt.datetime, took_ms: int) -> dict:
    """What a message may leave, with values of one run."""
    return {
        "request": one,
        "text": f"headache ({token})",
        "at": now,
        "due": (now + dt.timedelta(days=1)).date(),
        "sessions": [
            {"id": str(two), "of": str(one), "duration_ms": took_ms, "says": f"done at {now}"}
        ],
        "weight": Decimal("72.50"),
        "born": "1990-03-14",
        f"key of {token}": None,
    }


def test_two_runs_are_one_outcome() -> None:
    """Tokens, ids, times, near dates and masked fields differ; the outcome does not."""
    runs = []
    for day, took_ms in ((20, 812), (23, 1400)):
        token = new_token()
        now = dt.datetime(2026, 11, day, 9, 30, 1, 5000, tzinfo=dt.UTC)
        value = outcome(token, uuid4(), uuid4(), now=now, took_ms=took_ms)
        runs.append(golden(value, names={token: "token"}, masks=[TOOK], today=now.date()))

    assert runs[0] == runs[1]
    assert {
        "request": "<id-1>",
        "text": "headache (<token>)",
        "at": "<time>",
        "due": "<today+1>",
        "sessions": [
            {"id": "<id-2>", "of": "<id-1>", "duration_ms": "<number>", "says": "done at <time>"}
        ],
        "weight": 72.5,
        "born": "1990-03-14",
        "key of <token>": None,
    } == runs[0]


@pytest.mark.parametrize(
    "change",
    [
        {"duration_ms": None},
        {"duration_ms": "812"},
        {"of": str(uuid4())},
        {"says": "done"},
        {"more": 1},
    ],
    ids=["masked-missing", "masked-other-type", "other-id", "other-text", "other-field"],
)
def test_what_the_product_changes_is_seen(change) -> None:
    """A mask hides a value, never its absence or its type; an id that differs is another id."""
    one, two = uuid4(), uuid4()
    now = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
    before = outcome("zx22222222", one, two, now=now, took_ms=812)
    after = outcome("zx22222222", one, two, now=now, took_ms=812)
    after["sessions"][0] |= change

    assert golden(before, names={}, masks=[TOOK], today=TODAY) != golden(
        after, names={}, masks=[TOOK], today=TODAY
    )


def test_order_is_part_of_the_outcome() -> None:
    """Two segments in another order are another outcome."""
    segments = [{"butler": "health"}, {"butler": "general"}]

    assert golden(segments, names={}) != golden(segments[::-1], names={})


def test_dataclasses_are_read_by_field() -> None:
    """A dataclass counts as a mapping of its fields."""

    @dataclasses.dataclass
    class Row:
        name: str
        found: tuple[int, ...]

    assert {"name": "x", "found": [1, 2]} == golden(Row("x", (1, 2)), names={})


@pytest.mark.parametrize(("field", "reason"), [("", "because"), ("*.*", "because"), ("a.b", " ")])
def test_a_mask_needs_a_field_and_a_reason(field, reason) -> None:
    """A mask over everything, or one that nobody explained, is refused."""
    with pytest.raises(BadInput):
        Mask(field=field, reason=reason)


def test_a_row_may_ask_for_a_golden_run() -> None:
    """GOLDEN is accepted as an expected output; a number is not."""
    row = E2EScenario(
        id="a",
        description="d",
        input_prompt="p",
        expected_butler="health",
        expected_tool_calls=["t"],
        expected_output=GOLDEN,
    )

    assert (row,) == check_scenarios([row], where="here", butlers=["health"])
    with pytest.raises(BadInput, match="expected_output"):
        check_scenarios(
            [dataclasses.replace(row, expected_output=7)], where="here", butlers=["health"]
        )
