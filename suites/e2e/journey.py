"""A message's whole life, gathered from outside: what it left in which database, and what it cost.

``follow`` collects; the ``expect_*`` functions judge one link of the chain each. The chain is
judged link by link and not by its end: a message that reached the right table by the wrong way
has not been handled.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.errors import NotReady
from harness_core.llm import LedgerEntry
from harness_core.wait import deadline, until
from suites.e2e.ecosystem import Ecosystem, Sent

__all__ = [
    "FINAL_STATES",
    "Journey",
    "expect_accounted",
    "expect_inbox",
    "expect_journey",
    "expect_routing",
    "expect_sessions",
    "expect_trace",
    "follow",
]

#: ``message_inbox.lifecycle_state`` values after which nothing more happens (contract, Database).
FINAL_STATES: Final = frozenset({"completed", "errored"})

#: Tokens in a row and in the gateway's ledger are counted by the same counter.
_TOKEN_COLUMNS: Final = ("input_tokens", "output_tokens")

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """Everything one message left behind.

    Attributes:
        sent: the message.
        inbox: rows of ``message_inbox`` with its request id.
        routing: rows of ``routing_log`` written since it was sent.
        sessions: butler → rows of ``sessions`` started since it was sent, whatever their trace.
        calls: the gateway's ledger of model calls since it was sent.
        unfinished: why the wait for its final state ended without one; empty when it had one.
    """

    sent: Sent
    inbox: tuple[Row, ...]
    routing: tuple[Row, ...]
    sessions: Mapping[str, tuple[Row, ...]]
    calls: tuple[LedgerEntry, ...]
    unfinished: str = ""

    def of_message(self, butler: str) -> tuple[Row, ...]:
        """The sessions of one butler that this message can have caused."""
        return tuple(
            row
            for row in self.sessions.get(butler, ())
            if str(row["request_id"]) == self.sent.request_id
            or row["trace_id"] == self.sent.trace_id
            or row["trigger_source"] == "external"
        )

    def targets(self) -> tuple[str, ...]:
        """The butlers that the stored decomposition names, one per segment."""
        return tuple(
            segment["butler"]
            for segment in _segments(self.inbox[0]["decomposition"] if self.inbox else None)
        )

    def text(self) -> str:
        """The journey in a few lines, for failure messages."""
        lines = [f"message {self.sent.request_id} ({self.sent.text!r}), trace {self.sent.trace_id}"]
        if self.unfinished:
            lines.append(f"  unfinished: {self.unfinished}")
        lines.extend(
            f"  inbox: {row['lifecycle_state']}, decomposition {_short(row['decomposition'])}"
            for row in self.inbox
        )
        lines.extend(
            f"  routing: {row['source_butler']} -> {row['target_butler']} {row['tool_name']} "
            f"success={row['success']} error={row['error']!r} trace={row.get('trace_id')}"
            for row in self.routing
        )
        lines.extend(
            f"  session on {butler}: {row['trigger_source']} success={row['success']} "
            f"error={row['error']!r} trace={row['trace_id']} "
            f"tools={[call.get('name') for call in _calls(row)]}"
            for butler, rows in self.sessions.items()
            for row in rows
        )
        lines.append(f"  model calls in the ledger: {len(self.calls)}")
        return "\n".join(lines)


async def follow(
    ecosystem: Ecosystem, sent: Sent, *, seconds: float | None = None, call_mark: int = 0
) -> Journey:
    """Wait for the final state of a message, then gather everything it left.

    Args:
        ecosystem: where it was sent.
        sent: the message.
        seconds: how long it may take, the ecosystem's patience at most; a message without a final
            state by then is gathered as it is.
        call_mark: sequence number in the gateway's ledger before the message was sent.

    Raises:
        BudgetExceeded: the model refused a call for want of money; the journey says nothing then.
    """
    inbox = ecosystem.switchboard.database
    last = "no row in message_inbox"

    async def final() -> bool:
        nonlocal last
        rows = await inbox.rows(
            "SELECT lifecycle_state FROM message_inbox WHERE request_id::text = %s",
            (sent.request_id,),
        )
        states = [str(row["lifecycle_state"]) for row in rows]
        last = f"lifecycle_state {states}" if states else "no row in message_inbox"
        return bool(states) and all(state in FINAL_STATES for state in states)

    unfinished = ""
    patience_s = min(seconds or ecosystem.patience_s, ecosystem.patience_s)
    try:
        with deadline("see the message's final state", seconds=patience_s, observed=lambda: last):
            await until(final)
    except NotReady as error:
        unfinished = error.observed
    journey = Journey(
        sent=sent,
        inbox=await inbox.rows(
            "SELECT * FROM message_inbox WHERE request_id::text = %s", (sent.request_id,)
        ),
        routing=await inbox.rows(
            "SELECT * FROM routing_log WHERE created_at >= %s ORDER BY created_at", (sent.since,)
        ),
        sessions={
            name: await butler.database.rows(
                "SELECT * FROM sessions WHERE started_at >= %s ORDER BY started_at", (sent.since,)
            )
            for name, butler in ecosystem.butlers.items()
        },
        calls=await ecosystem.gateway.client.ledger(since=call_mark),
        unfinished=unfinished,
    )
    ecosystem.evidence.append_json("journeys.jsonl", journey)
    await ecosystem.check_budget()
    return journey


def expect_journey(journey: Journey, butlers: Sequence[str]) -> None:
    """Judge every link of the chain for a message that must reach exactly these butlers.

    Raises:
        AssertionError: the first broken link, and the whole journey.
    """
    expect_inbox(journey, butlers)
    expect_routing(journey, butlers)
    expect_sessions(journey, butlers)
    expect_trace(journey)
    expect_accounted(journey)


def expect_inbox(journey: Journey, butlers: Sequence[str]) -> None:
    """Exactly one inbox row, completed, decomposed to exactly these butlers without a fallback."""
    story = journey.text()

    assert len(journey.inbox) == 1, f"{len(journey.inbox)} inbox rows instead of one\n{story}"
    row = journey.inbox[0]

    assert not journey.unfinished, f"the message has no final state\n{story}"
    assert row["lifecycle_state"] == "completed", (
        f"the inbox row ended as {row['lifecycle_state']!r}, not 'completed'\n{story}"
    )
    assert set(journey.targets()) == set(butlers), (
        f"decomposed to {sorted(set(journey.targets()))}, expected {sorted(butlers)}\n{story}"
    )
    fallback = fallback_reason(row["decomposition"])

    assert fallback is None, f"classification fell back: {fallback}\n{story}"


def expect_routing(journey: Journey, butlers: Sequence[str]) -> None:
    """Exactly one successful ``routing_log`` row per dispatched segment, to its butler."""
    story = journey.text()
    hops = Counter(str(row["target_butler"]) for row in journey.routing)
    segments = Counter(journey.targets())

    assert hops == segments, (
        f"routing_log has hops {dict(hops)}, the decomposition asks for {dict(segments)}\n{story}"
    )
    assert set(hops) == set(butlers), f"routed to {sorted(hops)}, expected {butlers}\n{story}"
    for row in journey.routing:
        assert row["source_butler"] == "switchboard", f"unexpected source of a hop\n{story}"
        assert row["tool_name"] == "route.execute", f"unexpected tool of a hop\n{story}"
        assert row["success"] is True, f"the hop to {row['target_butler']} failed\n{story}"


def expect_sessions(journey: Journey, butlers: Sequence[str]) -> None:
    """One finished, successful session per segment on each expected butler; none on any other."""
    story = journey.text()
    segments = Counter(journey.targets())
    for butler in journey.sessions:
        if butler == "switchboard":
            continue
        found = journey.of_message(butler)
        wanted = segments[butler] if butler in butlers else 0

        assert len(found) == wanted, (
            f"{len(found)} sessions on {butler}, expected {wanted}\n{story}"
        )
        for row in found:
            expect_finished(row, butler=butler, story=story)
            assert row["success"] is True, f"the session on {butler} failed\n{story}"
    classified = journey.of_message("switchboard")

    assert len(classified) == 1, (
        f"{len(classified)} sessions on the switchboard, expected the one that classifies\n{story}"
    )
    assert classified[0]["success"] is True, f"the classifying session failed\n{story}"


def expect_finished(row: Row, *, butler: str, story: str) -> None:
    """A session row that tells the truth about its end: completed, timed, consistent."""
    assert row["completed_at"] is not None, f"the session on {butler} was left open\n{story}"
    assert row["completed_at"] >= row["started_at"], f"a session on {butler} ends early\n{story}"
    assert row["duration_ms"] is not None, f"a session on {butler} has no duration\n{story}"
    assert (row["error"] in {None, ""}) == bool(row["success"]), (
        f"a session on {butler} says success={row['success']} with error {row['error']!r}\n{story}"
    )


def expect_trace(journey: Journey) -> None:
    """The trace id that was sent joins the inbox row, every hop and every session."""
    story = journey.text()
    wanted = journey.sent.trace_id
    for row in journey.inbox:
        assert row["trace_id"] == wanted, f"the inbox row lost the trace\n{story}"
    for row in journey.routing:
        assert row["trace_id"] == wanted, (
            f"the hop to {row['target_butler']} lost the trace\n{story}"
        )
    for butler in journey.sessions:
        for row in journey.of_message(butler):
            assert row["trace_id"] == wanted, f"the session on {butler} lost the trace\n{story}"
            assert str(row["request_id"]) == journey.sent.request_id, (
                f"the session on {butler} belongs to request {row['request_id']}\n{story}"
            )


def expect_accounted(journey: Journey) -> None:
    """Every session paid for its model calls: rows and the gateway's ledger tell the same sums."""
    story = journey.text()
    calls = [call for call in journey.calls if call.kind == "messages" and call.status == 200]
    sessions = [row for butler in journey.sessions for row in journey.of_message(butler)]

    assert calls, f"the model was never called\n{story}"
    in_ledger = len({call.session for call in calls})

    assert in_ledger == len(sessions), (
        f"the ledger knows {in_ledger} sessions with model calls, the rows {len(sessions)}\n{story}"
    )
    for column in _TOKEN_COLUMNS:
        told = sum(row[column] or 0 for row in sessions)
        paid = sum(getattr(call, column) for call in calls)

        assert told == paid, f"{column}: rows say {told}, the gateway's ledger {paid}\n{story}"
    assert all(call.usd is not None for call in calls), f"a call has no price\n{story}"
    total_usd = sum(call.usd or 0 for call in calls)

    assert total_usd > 0, f"the message cost nothing\n{story}"
    told_usd = sum(_usd(row["cost"]) for row in sessions)

    assert abs(told_usd - float(total_usd)) <= max(1e-6, 0.01 * float(total_usd)), (
        f"cost: rows say {told_usd:.6f} USD, the gateway's ledger {total_usd:.6f} USD\n{story}"
    )


def tool_calls(journey: Journey, butlers: Sequence[str]) -> dict[str, list[Row]]:
    """Butler → the tool calls its sessions of this message recorded."""
    return {
        butler: [call for row in journey.of_message(butler) for call in _calls(row)]
        for butler in butlers
    }


def fallback_reason(decomposition: Any) -> str | None:
    """Why the classification fell back to ``general``; ``None`` when it did not."""
    found = _find_flag(_data(decomposition))
    if found is None or not found[0]:
        return None
    return found[1] or "no reason given"


def _find_flag(value: Any) -> tuple[bool, str] | None:
    if isinstance(value, Mapping):
        if "fallback" in value:
            flag = value["fallback"]
            reason = value.get("reason") or value.get("fallback_reason") or ""
            return bool(flag), str(reason or (flag if isinstance(flag, str) else ""))
        children: Sequence[Any] = tuple(value.values())
    elif isinstance(value, list):
        children = value
    else:
        return None
    return next((found for child in children if (found := _find_flag(child)) is not None), None)


def _segments(decomposition: Any) -> list[Mapping[str, Any]]:
    """Every object with a ``butler`` in a stored decomposition, whatever it is wrapped in."""
    value = _data(decomposition)
    if isinstance(value, Mapping):
        if isinstance(value.get("butler"), str):
            return [value]
        return [segment for child in value.values() for segment in _segments(child)]
    if isinstance(value, list):
        return [segment for child in value for segment in _segments(child)]
    return []


def _calls(row: Row) -> list[Row]:
    """The tool calls a session recorded, each with its ``name``, whatever the product calls it."""
    value = _data(row["tool_calls"])
    calls = [call for call in value if isinstance(call, Mapping)] if isinstance(value, list) else []
    return [
        {**call, "name": call.get("name") or call.get("tool_name") or call.get("tool")}
        for call in calls
    ]


def _usd(cost: Any) -> float:
    """The price a session recorded: the contract says that it is kept, not under which key."""
    value = _data(cost)
    if isinstance(value, Mapping):
        keys = [key for key in ("usd", "cost_usd", "total_usd", "total_cost_usd") if key in value]
        value = value[keys[0]] if keys else None
    return float(value) if isinstance(value, int | float) else 0.0


def _data(value: Any) -> Any:
    """A jsonb column as data, also where a product stored JSON as text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _short(value: Any) -> str:
    text = json.dumps(_data(value), default=str)
    return text if len(text) <= 400 else f"{text[:400]}…"
