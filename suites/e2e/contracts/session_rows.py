"""Sessions of a butler, as its rows and its own tools tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.doubles.model import LedgerEntry
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.expect_journey import cost_usd, within_usd
from suites.e2e.observe.journey import Row, recorded_calls
from suites.e2e.observe.sentences import expect_moment, expect_same

__all__ = [
    "REFUSED",
    "SESSION_S",
    "SHOWN",
    "TIMES",
    "expect_cost_counted",
    "expect_failed",
    "expect_paid",
    "expect_shown",
    "id_argument",
    "listed_of",
    "prompt_of",
    "session_of",
    "summary_of",
    "triggered",
]

#: The Claude Code CLI gives up at once on this status; others it retries for minutes.
REFUSED: Final = 403

#: A session from its call to its answer, on a loaded machine.
SESSION_S: Final = 90.0

#: Columns of a session (contract, "Database") that a tool shows as they stand in the row.
SHOWN: Final = (
    *("prompt", "trigger_source", "result", "duration_ms", "trace_id", "success", "error"),
    *("model", "input_tokens", "output_tokens", "request_id"),
)

TIMES: Final = ("started_at", "completed_at")


def expect_cost_counted(
    before: Mapping[str, Any], after: Mapping[str, Any], spent: float, *, sessions: int
) -> None:
    """A summary that says what sessions cost adds up these."""
    for key in [key for key in after if "cost" in key or "usd" in key][:1]:
        assert abs(after[key] - before[key] - spent) <= within_usd(sessions), (
            f"the summary adds up what sessions cost: they cost {spent}, {key} went from "
            f"{before[key]} to {after[key]}"
        )


async def expect_shown(butler: Butler, row: Row) -> None:
    """``sessions_get`` shows the row, and ``sessions_list`` lists it, column by column."""
    shown = await butler.call("sessions_get", **{await id_argument(butler): str(row["id"])})
    listed = {str(entry["id"]): entry for entry in await listed_of(butler)}

    assert str(row["id"]) in listed, f"{butler.name} does not list its latest session {row['id']}"
    for where, entry in (("get", shown), ("list", listed[str(row["id"])])):
        for column in (*SHOWN, *TIMES):
            if where == "list" and column not in entry:
                continue  # what a list leaves out is the product's choice

            assert column in entry, f"sessions_{where} shows no {column}: {sorted(entry)}"
            found = entry[column]
            if column in TIMES and found is not None:
                found = expect_moment(f"{column} of a session", found)
            expect_same(
                f"sessions_{where} of {butler.name} agrees with the row ({column})",
                expected=row[column],
                found=found,
            )
    expect_same(
        "sessions_get shows the tool calls of the row",
        expected=[dict(call) for call in recorded_calls(row)],
        found=[dict(call) for call in recorded_calls(shown)],
    )
    assert cost_usd(shown["cost"]) == cost_usd(row["cost"]), (
        f"sessions_get shows the cost {shown['cost']}, the row has {row['cost']}"
    )


def expect_failed(answer: ToolResult) -> None:
    """A trigger whose session failed is answered as that, with a reason."""
    value = answer.value if isinstance(answer.value, dict) else {}

    assert answer.is_error or value.get("success") is False, (
        f"a session that failed is answered as a failure; found {answer.text}"
    )
    assert answer.is_error or value.get("error"), f"the answer has no reason: {answer.text}"


def expect_paid(row: Row, paid: Sequence[LedgerEntry], story: str) -> None:
    """A session that broke off has spent what its calls of the model were answered for, at their prices."""
    cached = sum(call.cache_read_tokens + call.cache_write_tokens for call in paid)
    for column, beside in (("input_tokens", {0, cached}), ("output_tokens", {0})):
        spent = sum(getattr(call, column) for call in paid)

        # Whether what was cached counts as input is the product's choice.
        assert row[column] - spent in beside, (
            f"a session that broke off has spent what was answered to it ({column}): expected {spent}, "
            f"found {row[column]}\n{story}"
        )
    owed = sum(call.usd or 0 for call in paid)

    assert abs(owed - cost_usd(row["cost"])) <= within_usd(1), (
        f"a session that broke off has cost {owed:.6f} USD, its row says {row['cost']}\n{story}"
    )


def prompt_of(token: str) -> str:
    """What a person with a headache says, in words that hold the token."""
    return f"I have a headache, severity 4 ({token})"


async def triggered(butler: Butler, token: str) -> ToolResult:
    """A session of the butler about that headache, however it is answered."""
    return await butler.try_call("trigger", {"prompt": prompt_of(token)}, seconds=SESSION_S)


async def session_of(butler: Butler, token: str) -> Row:
    """The one session whose prompt holds the token."""
    rows = await butler.database.rows(
        "SELECT * FROM sessions WHERE prompt LIKE %s", (f"%{token}%",)
    )

    assert 1 == len(rows), f"{len(rows)} sessions on {butler.name} hold {token!r}, expected one"
    return rows[0]


async def listed_of(butler: Butler, **arguments: Any) -> list[Mapping[str, Any]]:
    """What ``sessions_list`` shows."""
    answer = await butler.call("sessions_list", **arguments)
    return list(answer.get("sessions", answer) if isinstance(answer, dict) else answer)


async def summary_of(butler: Butler, **arguments: Any) -> Mapping[str, Any]:
    """What ``sessions_summary`` shows."""
    answer: Mapping[str, Any] = await butler.call("sessions_summary", **arguments)
    return answer


async def id_argument(butler: Butler) -> str:
    """What this product calls the argument that names a session."""
    properties = (await butler.tools())["sessions_get"]["properties"]
    return next(name for name in properties if name == "id" or name.endswith("_id"))
