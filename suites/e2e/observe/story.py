"""The chain of a message as links, for a report: each held, broken, or missing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_core.assertions import tokens_in
from harness_core.base.evidence import Link, Message, Moment, Told
from harness_core.doubles.model import LedgerEntry
from suites.e2e.ecosystem.handle import Sent

__all__ = ["Chain", "astray"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What a message left, as a report wants it.

    Attributes:
        sent: the message.
        inbox: its rows.
        routing: its hops.
        sessions: butler → those of the message.
        tools: id of a session → names of the tools that it called.
        calls: of the model.
        targets: butlers that the decomposition names.
        unfinished: why it has no final state; empty when it has one.
    """

    sent: Sent
    inbox: Sequence[Row]
    routing: Sequence[Row]
    sessions: Mapping[str, Sequence[Row]]
    tools: Mapping[str, Sequence[str]]
    calls: Sequence[LedgerEntry]
    targets: Sequence[str]
    unfinished: str

    def story(self) -> Iterator[Told]:
        """The rows of a story."""
        names = {self.sent.request_id, self.sent.trace_id, *tokens_in(self.sent.text.casefold())}
        names |= {call.session for call in self.calls} | set(self.tools)
        yield Message(
            id=self.sent.request_id,
            text=self.sent.text,
            at=_s(self.sent.since),
            names=tuple(sorted(names - {""})),
        )
        yield from _links(self)
        yield from _moments(self)


def astray(request: str, expected: Collection[str], ran: Collection[str]) -> Iterator[Link]:
    """Where a message went and was not expected, and where it was expected and did not go."""
    wrong = [(name, "broken", "nothing was expected here") for name in set(ran) - set(expected)]
    lost = [(name, "missing", "expected, and nothing ran") for name in set(expected) - set(ran)]
    for name, state, said in [*sorted(wrong), *sorted(lost)]:
        yield _link(request, "switchboard", name, "routing", state, said)


def _link(request: str, source: str, target: str, label: str, state: Any, said: str = "") -> Link:
    return Link(message=request, source=source, target=target, label=label, state=state, said=said)


def _links(chain: Chain) -> Iterator[Link]:
    request = chain.sent.request_id
    count = len(chain.inbox)
    held = "held" if count == 1 else "broken" if count else "missing"
    said = "" if count == 1 else f"{count} inbox rows"
    yield _link(request, "test", "switchboard", "ingest", held, said)
    classifying = chain.sessions.get("switchboard", ())
    for row in classifying:
        state, said = _ended(row)
        yield _link(request, "switchboard", "classification", "session", state, said)
    if not classifying:
        said = "no session on the switchboard"
        yield _link(request, "switchboard", "classification", "session", "missing", said)
    hops = {str(row["target_butler"]): row for row in chain.routing}
    for butler in dict.fromkeys([*chain.targets, *hops]):
        row = hops.get(butler)
        state = "missing" if row is None else "held" if row["success"] is True else "broken"
        said = "no row in routing_log" if row is None else str(row["error"] or "")
        yield _link(request, "switchboard", butler, "routing", state, said)
    for butler, rows in chain.sessions.items():
        for row in rows if butler != "switchboard" else ():
            state, said = _ended(row)
            yield _link(request, butler, f"session on {butler}", "session", state, said)
            for tool in chain.tools.get(str(row["id"]), ()):
                yield _link(request, f"session on {butler}", tool, "tool call", "held")
    yield from _lacks(chain)
    states = ", ".join(str(row["lifecycle_state"]) for row in chain.inbox)
    state = "held" if states == "completed" else "broken" if states else "missing"
    final = states or "no final state"
    yield _link(request, "switchboard", final, "inbox", state, chain.unfinished)


def _lacks(chain: Chain) -> Iterator[Link]:
    """What prompts lacked, at the session that asked."""
    owners = {str(row["id"]): butler for butler, rows in chain.sessions.items() for row in rows}
    others = [butler for butler in owners.values() if butler != "switchboard"]
    for call in (each for each in chain.calls if each.missing):
        butler = owners.get(call.session) or (others[0] if others else "")
        classifies = butler in {"", "switchboard"} or "classifying prompt" in call.missing
        source = "classification" if classifies else f"session on {butler}"
        yield _link(chain.sent.request_id, source, "model", "prompt", "broken", call.missing)


def _ended(row: Row) -> tuple[str, str]:
    """Whether a session held, and what it says otherwise."""
    left_open = "left open" if row["completed_at"] is None else ""
    return "held" if row["success"] is True else "broken", str(row["error"] or left_open)


def _moments(chain: Chain) -> Iterator[Moment]:
    for row in chain.inbox:
        text = f"message_inbox {row['lifecycle_state']}"
        yield _moment(row, row["created_at"], row.get("updated_at"), "switchboard", text)
    for row in chain.routing:
        way = f"{row['source_butler']} → {row['target_butler']}"
        text = f"routing_log {way} success={row['success']}"
        yield _moment(row, row["created_at"], None, "switchboard", text)
    for butler, rows in chain.sessions.items():
        for row in rows:
            tools = ", ".join(chain.tools.get(str(row["id"]), ())) or "no tool"
            text = f"session success={row['success']}, {tools}"
            yield _moment(row, row["started_at"], row["completed_at"], butler, text)


def _moment(row: Any, at: dt.datetime, end: dt.datetime | None, lane: str, text: str) -> Moment:
    took_s = max(0.0, (end - at).total_seconds()) if end is not None else 0.0
    return Moment(at=_s(at), took_s=took_s, lane=lane, what="row", text=text, data=dict(row))


def _s(at: Any) -> float:
    return at.timestamp() if isinstance(at, dt.datetime) else 0.0
