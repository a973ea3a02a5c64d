"""A message's whole life, gathered from outside: what it left in which database, and what it cost.

Several messages may be under way, and other tests may work beside this one: what carries the trace
or request id of another message belongs to that one. What carries none belongs to the message
whose token it repeats, so that work that lost its trace is still attributed.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness_core.assertions import tokens_in
from harness_core.base.errors import NotReady
from harness_core.base.evidence import tell
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import LedgerEntry, expect_rehearsed
from harness_core.doubles.turns import as_read
from suites.e2e.ecosystem.handle import Ecosystem, Sent
from suites.e2e.observe.story import Chain
from suites.e2e.waits import ENDS

__all__ = [
    "FINAL_STATES",
    "SHORT_PATIENCE_S",
    "Journey",
    "Row",
    "as_data",
    "follow",
    "gather",
    "parts_of",
    "recorded_calls",
    "targets_of",
    "tool_calls",
]

#: ``message_inbox.lifecycle_state`` values after which nothing more happens (contract, Database).
FINAL_STATES: Final = frozenset({"completed", "errored"})

#: A bound below every other, for a run whose messages are known to stay without an end: a planted
#: fault need not be waited for as long as a busy machine.
SHORT_PATIENCE_S: Final = float(os.environ.get("HARNESS_E2E_PATIENCE_S", "inf"))

#: Of what the model was asked and answered, in a story.
_SHOWN_CHARS: Final = 160

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """Everything one message left behind.

    Attributes:
        sent: the message.
        inbox: rows of ``message_inbox`` with its request id.
        routing: its rows of ``routing_log``, and those that no message can claim.
        sessions: butler → rows of ``sessions`` started since it was sent, other messages' too.
        calls: its model calls in the gateway's ledger.
        others: request ids and trace ids of all other messages.
        unfinished: why the wait for its final state ended without one; empty when it had one.
    """

    sent: Sent
    inbox: tuple[Row, ...]
    routing: tuple[Row, ...]
    sessions: Mapping[str, tuple[Row, ...]]
    calls: tuple[LedgerEntry, ...]
    others: frozenset[str] = frozenset()
    unfinished: str = ""

    def of_message(self, butler: str) -> tuple[Row, ...]:
        """The sessions of one butler that this message can have caused."""
        return tuple(row for row in self.sessions.get(butler, ()) if self._caused(row))

    def _caused(self, row: Row) -> bool:
        claim = _claim(row, ours=_names(self.sent), others=self.others)
        if claim is not None:
            return claim
        # Also of a name, which begins with a capital letter.
        tokens = tokens_in(self.sent.text.casefold())
        repeats = any(token in str(row["prompt"]).casefold() for token in tokens)
        return row["trigger_source"] == "external" and (repeats or not tokens)

    def targets(self) -> tuple[str, ...]:
        """The butlers that the stored decomposition names, one per segment."""
        return targets_of(self.inbox[0]["decomposition"] if self.inbox else None)

    def chain(self) -> Chain:
        """The same for a report."""
        sessions = {butler: self.of_message(butler) for butler in self.sessions}
        return Chain(
            sent=self.sent,
            inbox=self.inbox,
            routing=self.routing,
            sessions=sessions,
            tools={
                str(row["id"]): [str(call["name"]) for call in recorded_calls(row)]
                for rows in sessions.values()
                for row in rows
            },
            calls=self.calls,
            targets=self.targets(),
            unfinished=self.unfinished,
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
            f"tools={[call.get('name') for call in recorded_calls(row)]}"
            for butler in self.sessions
            for row in self.of_message(butler)
        )
        lines.append(f"  model calls in the ledger: {len(self.calls)}")
        lines.extend(f"  {line}" for call in self.calls for line in _asked(call))
        return "\n".join(lines)


async def follow(
    ecosystem: Ecosystem, sent: Sent, *, seconds: float | None = None, rehearsed: bool = True
) -> Journey:
    """Wait for the final state of a message, then gather everything it left.

    Args:
        ecosystem: where it was sent.
        sent: the message.
        seconds: how long it may take, the ecosystem's patience at most; a message without a final
            state by then, or when a part has died, is gathered as it is.
        rehearsed: each call of the model must have had its turns; else whoever is asked says that
            he does not know what to do.

    Raises:
        AssertionError: a prompt for the message did not hold it.
        HarnessError: the model had no turns for it, or its prompt is not understood.
        BudgetExceeded: the model refused a call for want of money; the journey says nothing then.
    """
    inbox = ecosystem.switchboard.database
    last = "no row in message_inbox"
    died = ""

    async def final() -> bool:
        nonlocal last, died
        rows = await inbox.rows(
            "SELECT lifecycle_state FROM message_inbox WHERE request_id::text = %s",
            (sent.request_id,),
        )
        states = [str(row["lifecycle_state"]) for row in rows]
        last = f"lifecycle_state {states}" if states else "no row in message_inbox"
        ended = bool(states) and all(state in FINAL_STATES for state in states)
        died = "" if ended else "; ".join(ecosystem.parts.deaths())
        return ended or bool(died)

    unfinished = ""
    patience_s = min(seconds or ecosystem.patience_s, ecosystem.patience_s, SHORT_PATIENCE_S)
    action = "see the message's final state"
    try:
        with (
            ENDS.waiting(seconds=patience_s) as wait,
            deadline(action, seconds=wait.seconds, observed=lambda: last + wait.note),
        ):
            await until(final)
            wait.came = not died
        unfinished = f"{died}: {last}" if died else ""
    except NotReady as error:
        unfinished = error.observed
    journey = await gather(ecosystem, sent, unfinished=unfinished)
    ecosystem.evidence.append_json("journeys.jsonl", journey)
    tell(lambda: journey.chain().story())
    await ecosystem.check_budget()
    astray = [call for call in journey.calls if call.unrehearsed and _is_astray(call, sent)]

    assert not astray, (
        f"the model was asked about {astray[0].prompt!r} instead of the message\n{journey.text()}"
    )
    if rehearsed:
        expect_rehearsed(journey.calls)
    return journey


async def gather(ecosystem: Ecosystem, sent: Sent, *, unfinished: str = "") -> Journey:
    """What a message has left so far.

    Args:
        ecosystem: where it was sent.
        sent: the message.
        unfinished: why it has no final state; empty when it has one.
    """
    inbox = ecosystem.switchboard.database
    routing = await inbox.rows(
        "SELECT * FROM routing_log WHERE created_at >= %s ORDER BY created_at", (sent.since,)
    )
    calls = await ecosystem.gateway.client.ledger(since=sent.mark)
    sessions = {
        name: await butler.database.rows(
            "SELECT * FROM sessions WHERE started_at >= %s ORDER BY started_at", (sent.since,)
        )
        for name, butler in ecosystem.butlers.items()
    }
    # Last: whatever another message has caused so far, that message stands in the inbox by now.
    others = await _other_messages(ecosystem, sent)
    return Journey(
        sent=sent,
        inbox=await inbox.rows(
            "SELECT * FROM message_inbox WHERE request_id::text = %s", (sent.request_id,)
        ),
        routing=tuple(
            row for row in routing if _claim(row, ours=_names(sent), others=others) is not False
        ),
        sessions=sessions,
        calls=_calls_of(sent, calls, others=others),
        others=others,
        unfinished=unfinished,
    )


def _is_astray(call: LedgerEntry, sent: Sent) -> bool:
    """Whether a call that is by its trace about a message with turns did not hold the message."""
    asked, text = as_read(call.prompt)[:_SHOWN_CHARS], as_read(sent.text)
    return (
        sent.rehearsed
        and sent.trace_id != ""
        and sent.trace_id in call.traceparent
        and asked not in text
    )


def _names(sent: Sent) -> frozenset[str]:
    return frozenset({sent.request_id, sent.trace_id} - {""})


def _claim(row: Row, *, ours: frozenset[str], others: frozenset[str]) -> bool | None:
    """Whether a row carries a name of this message or of another one; ``None``: of neither."""
    carried = {str(row.get(column) or "") for column in ("request_id", "trace_id")}
    if carried & ours:
        return True
    return False if carried & others else None


async def _other_messages(ecosystem: Ecosystem, sent: Sent) -> frozenset[str]:
    # Through jsonb, since the column with the trace id is not promised to every product.
    rows = await ecosystem.switchboard.database.rows(
        "SELECT request_id::text AS request_id, to_jsonb(message_inbox) ->> 'trace_id' AS trace_id "
        "FROM message_inbox WHERE request_id::text <> %s",
        (sent.request_id,),
    )
    names = {str(name) for row in rows for name in row.values() if name}
    return frozenset(names - _names(sent))


def _calls_of(
    sent: Sent, calls: Sequence[LedgerEntry], *, others: frozenset[str]
) -> tuple[LedgerEntry, ...]:
    """The model calls of one message, also of a product that does not pass its trace to the model.

    Such a product's calls are those that no other message can claim.
    """

    def has_ours(call: LedgerEntry) -> bool:
        return sent.trace_id != "" and sent.trace_id in call.traceparent

    traced = any(has_ours(call) for call in calls)
    tokens = tokens_in(sent.text.casefold())

    def ours(call: LedgerEntry) -> bool:
        if has_ours(call):
            return True
        if any(name in call.traceparent for name in others):
            return False
        return not traced or any(token in call.prompt.casefold() for token in tokens)

    return tuple(call for call in calls if ours(call))


def tool_calls(journey: Journey, butlers: Sequence[str]) -> dict[str, list[Row]]:
    """Butler → the tool calls its sessions of this message recorded."""
    return {
        butler: [call for row in journey.of_message(butler) for call in recorded_calls(row)]
        for butler in butlers
    }


def targets_of(decomposition: Any) -> tuple[str, ...]:
    """The butlers that a stored decomposition names, one per segment."""
    return tuple(segment["butler"] for segment in _segments(decomposition))


def _segments(decomposition: Any) -> list[Mapping[str, Any]]:
    """Every object with a ``butler`` in a stored decomposition, whatever it is wrapped in."""
    value = as_data(decomposition)
    if isinstance(value, Mapping):
        if isinstance(value.get("butler"), str):
            return [value]
        return [segment for child in value.values() for segment in _segments(child)]
    if isinstance(value, list):
        return [segment for child in value for segment in _segments(child)]
    return []


def recorded_calls(row: Row) -> list[Row]:
    """The tool calls a session recorded, each with its ``name``, whatever the product calls it."""
    value = as_data(row["tool_calls"])
    calls = [call for call in value if isinstance(call, Mapping)] if isinstance(value, list) else []
    return [
        {**call, "name": call.get("name") or call.get("tool_name") or call.get("tool")}
        for call in calls
    ]


def as_data(value: Any) -> Any:
    """A jsonb column as data, also where a product stored JSON as text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def parts_of(value: Any) -> Iterator[Any]:
    """Some data, and everything inside it."""
    yield value
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from parts_of(inner)


def _asked(call: LedgerEntry) -> list[str]:
    """What the model was asked, what it answered, and what it lacked."""
    offered = f" ({len(call.tools)} tools)" if call.tools else ""
    answer = call.answer or ", ".join(call.called) or f"status {call.status} {call.error}".rstrip()
    lines = [f"  asked{offered}: {_line(call.prompt)}", f"    it answered: {_line(answer)}"]
    return [*lines, f"    since {call.missing}"] if call.missing else lines


def _line(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _SHOWN_CHARS else f"{plain[:_SHOWN_CHARS]}…"


def _short(value: Any) -> str:
    text = json.dumps(as_data(value), default=str)
    return text if len(text) <= 400 else f"{text[:400]}…"
