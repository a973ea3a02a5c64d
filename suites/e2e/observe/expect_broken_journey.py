"""What is on record after something broke: the truth, in the contract's words, and no more.

The counterpart of :mod:`suites.e2e.observe.expect_journey`, for messages whose chain was cut.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from suites.e2e.ecosystem.handle import Butler, Ecosystem, Sent
from suites.e2e.observe.expect_journey import FAILED_OUTCOMES, expect_finished, words_of
from suites.e2e.observe.journey import Journey, Row, as_data, follow

__all__ = [
    "expect_carried_out",
    "expect_failed_session",
    "expect_no_open_session",
    "expect_one_session",
    "expect_outcome",
]

#: Every outcome of a dispatch.
_OUTCOMES: Final = FAILED_OUTCOMES | {"success"}


def expect_outcome(journey: Journey, butler: str, expected: Collection[str]) -> str:
    """One segment for ``butler`` ended in one of these outcomes, and every record says the same.

    Returns:
        The outcome.
    """
    story = journey.text()

    assert not journey.unfinished, f"the message has no final state\n{story}"
    hops = [row for row in journey.routing if row["target_butler"] == butler]

    assert len(hops) == 1, f"{len(hops)} hops to {butler} on record, expected one\n{story}"
    (hop,) = hops
    outcome = _outcome(hop)

    assert outcome in _OUTCOMES, f"{outcome!r} is no outcome of the contract\n{story}"
    assert outcome in expected, (
        f"the hop to {butler} ended as {outcome!r}, expected {' or '.join(sorted(expected))}\n{story}"
    )
    assert bool(hop["error"]) == (outcome != "success"), (
        f"the hop to {butler} ended as {outcome} with error {hop['error']!r}\n{story}"
    )
    assert hop["duration_ms"] is not None, f"the hop to {butler} has no duration\n{story}"
    recorded = as_data(journey.inbox[0]["dispatch_outcomes"])
    words = set(words_of(recorded))

    assert {butler, outcome} <= words, (
        f"dispatch_outcomes do not say that {butler} ended as {outcome}: {recorded}\n{story}"
    )
    stray = (_OUTCOMES & words) - {_outcome(row) for row in journey.routing}

    assert not stray, f"dispatch_outcomes speak of {sorted(stray)} too: {recorded}\n{story}"
    return outcome


def _outcome(hop: Row) -> str:
    return "success" if hop["success"] else str(hop["error_class"])


async def expect_carried_out(ecosystem: Ecosystem, sent: Sent, butler: str) -> Journey:
    """The message reached exactly this butler, by one successful hop and one successful session."""
    journey = await follow(ecosystem, sent)
    story = journey.text()
    expect_outcome(journey, butler, {"success"})

    assert journey.inbox[0]["lifecycle_state"] == "completed", (
        f"the message ended as {journey.inbox[0]['lifecycle_state']!r}\n{story}"
    )
    assert [butler] == [row["target_butler"] for row in journey.routing], (
        f"the message went elsewhere too\n{story}"
    )
    sessions = journey.of_message(butler)

    assert len(sessions) == 1, f"{len(sessions)} sessions on {butler}, expected one\n{story}"
    expect_finished(sessions[0], butler=butler, story=story)
    assert sessions[0]["success"] is True, f"the session on {butler} failed\n{story}"
    return journey


def expect_failed_session(row: Row, *, butler: str, story: str) -> None:
    """A session that did not get to its end is closed, as a failure, with the reason."""
    assert row["completed_at"] is not None, f"the session on {butler} was left open\n{story}"
    assert row["success"] is False, f"a failed session on {butler} is no failure on record\n{story}"
    assert row["error"], f"the failed session on {butler} has no reason\n{story}"


def expect_one_session(journey: Journey, butler: str) -> Row:
    """The one session that a message caused on a butler."""
    rows = journey.of_message(butler)

    assert len(rows) == 1, (
        f"a message is dispatched once: {len(rows)} sessions on {butler}, expected one\n"
        f"{journey.text()}"
    )
    return rows[0]


async def expect_no_open_session(butler: Butler) -> None:
    """No row of the butler's log of sessions says that one still runs."""
    rows = await butler.database.rows(
        "SELECT id, prompt, started_at FROM sessions WHERE completed_at IS NULL"
    )

    assert not rows, f"sessions on {butler.name} were left open: {[dict(row) for row in rows]}"
