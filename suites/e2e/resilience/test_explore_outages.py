"""Outages at random points of a small ecosystem's life, and the books afterwards.

Hypothesis chooses what happens: messages, changes, kills, stops, freezes, a database that goes, a
model provider that refuses (the gateway stands in for it, since a real one does so on no request).
The model is what was answered: acknowledged, refused, or no answer. In the end everything is given
back, and then what was acknowledged is there, once; what was refused left nothing; inbox, hops,
sessions, rows and the provider's ledger agree.
"""

from __future__ import annotations

import dataclasses
import secrets
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from harness_core.assertions.exploring import Explore, Machine
from harness_core.doubles.model import Fault
from suites.e2e.ecosystem.handle import Butler, Ecosystem, Sent, envelope
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.journey import as_data, follow, targets_of
from suites.e2e.worlds.canned import (
    TOOL_OF,
    Message,
    to_general,
    to_health,
    to_relationship,
    to_two,
)
from suites.e2e.worlds.chaos import Chaos, expect_soon

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: Each costs a boot or a session: an example is a handful of them.
STEPS = 6

#: A call that a part which is away may never answer.
CALL_S = 8.0

#: From everything given back to sessions that are closed on record.
CLOSED_S = 60.0

MESSAGES = (to_health, to_relationship, to_general, to_two)
TARGETS = st.sampled_from(["general", "health", "relationship"])
ANY = st.sampled_from(["switchboard", "general", "health", "relationship"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    st.lists(st.integers(0, 9), max_size=3),
    st.just("x" * 70_000),
)


@dataclasses.dataclass(slots=True, kw_only=True)
class Said:
    """What a message was answered with.

    Attributes:
        message: what was sent.
        arguments: of ``ingest``.
        requests: the ids that were given to it.
        fresh: answers that called it new.
        refused: answers that refused it.
        unknown: times it was sent without an answer.
    """

    message: Message
    arguments: dict[str, Any]
    requests: set[str] = dataclasses.field(default_factory=set)
    fresh: int = 0
    refused: int = 0
    unknown: int = 0


class Outages(Machine):
    """An ecosystem that is broken and mended in any order."""

    def __init__(self, ecosystem: Ecosystem, chaos: Chaos) -> None:
        super().__init__()
        self.ecosystem = ecosystem
        self.chaos = chaos
        self.wait_for(chaos.begin)
        self.mark = self.wait_for(ecosystem.gateway.client.mark)
        row = self.wait_for(ecosystem.switchboard.database.one, "SELECT clock_timestamp() AS now")
        self.since = row["now"]
        self.sent: list[Said] = []
        #: butler, key → the values it may have: the last one acknowledged, and those unanswered since.
        self.state: dict[tuple[str, str], list[Any]] = {}
        self.lost: list[tuple[str, str, Any]] = []
        self.dead: set[str] = set()
        self.frozen: set[str] = set()
        self.database = True

    @rule(make=st.sampled_from(MESSAGES))
    def send(self, make: Any) -> None:
        """A message that nobody has sent before."""
        message = make()
        event = f"event-{secrets.token_hex(8)}"
        said = Said(
            message=message,
            arguments=envelope(message.text, event_id=event, trace_id=secrets.token_hex(16)),
        )
        self.sent.append(said)
        self.wait_for(self.ecosystem.rehearse, message.text)
        self._ingest(said)

    @precondition(lambda self: self.sent)
    @rule(number=st.integers(0, 7))
    def send_again(self, number: int) -> None:
        """One of the messages so far, with the same event id."""
        self._ingest(self.sent[number % len(self.sent)])

    @rule(butler=ANY, key=st.sampled_from("ab"), value=VALUES)
    def set_state(self, butler: str, key: str, value: Any) -> None:
        """A change whose acknowledgement is a promise."""
        name = f"outage-{self.mark}-{key}"
        answer = self._call(butler, "state_set", key=name, value=value)
        if answer is None:
            self.state.setdefault((butler, name), ["absent"]).append(("value", value))
        elif not answer.is_error:
            self.state[butler, name] = [("value", value)]

    @rule(butler=ANY)
    def kill(self, butler: str) -> None:
        """SIGKILL; nothing that it had started goes on without it."""
        if butler not in self.dead | self.frozen:
            self.wait_for(self.chaos.kill, butler)
            self.dead.add(butler)

    @rule(butler=TARGETS)
    def stop(self, butler: str) -> None:
        """SIGTERM, with whatever it is doing."""
        if self.database and butler not in self.dead | self.frozen:
            self.wait_for(self.chaos.stop_well, butler)
            self.dead.add(butler)

    @rule(butler=ANY)
    def start(self, butler: str) -> None:
        """What is down comes back, if it can."""
        if self.database and butler in self.dead:
            self.wait_for(self.chaos.start, butler)
            self.dead.discard(butler)

    @rule(butler=TARGETS)
    def freeze_or_thaw(self, butler: str) -> None:
        """SIGSTOP, or SIGCONT."""
        if butler in self.frozen:
            self.wait_for(self.chaos.resume, butler)
            self.frozen.discard(butler)
        elif butler not in self.dead:
            self.wait_for(self.chaos.pause, butler)
            self.frozen.add(butler)

    @rule()
    def database_goes_or_comes(self) -> None:
        """PostgreSQL crashes, or is started again."""
        if self.database:
            self.wait_for(self.chaos.kill_database)
        else:
            self.wait_for(self.chaos.start_database)
        self.database = not self.database

    @precondition(lambda self: self.database)
    @rule()
    def connections_drop(self) -> None:
        """Every butler loses its connections to the database."""
        self.wait_for(self.chaos.drop_connections)

    @rule(
        status=st.sampled_from([429, 500, 529, 401]),
        times=st.integers(1, 8),
        tool=st.sampled_from(sorted(TOOL_OF.values())),
    )
    def provider_refuses(self, status: int, times: int, tool: str) -> None:
        """The next model calls of a butler's sessions are refused."""
        fault = Fault(kind="status", status=status, times=times, retry_after_s=0, contains=tool)
        self.wait_for(self.chaos.provider, fault)

    def teardown(self) -> None:
        """Give everything back, then hold the records against what was answered."""
        self.wait_for(self.chaos.restore)
        self.wait_for(self._expect_books)

    def _ingest(self, said: Said) -> None:
        answer = self._call("switchboard", "ingest", **said.arguments)
        if answer is None:
            said.unknown += 1
        elif answer.is_error or answer.value.get("status") != "accepted":
            said.refused += 1
        else:
            said.requests.add(str(answer.value["request_id"]))
            said.fresh += not answer.value["duplicate"]
            self.ecosystem.sent_ids.append(str(answer.value["request_id"]))

    def _call(self, butler: str, tool: str, **arguments: Any) -> Any:
        """The answer; ``None`` when there was none."""
        if butler in self.frozen:
            return None  # it would wait for a deadline of ours, and be carried out later
        return self.wait_for(self._ask, butler, tool, arguments)

    async def _ask(self, butler: str, tool: str, arguments: dict[str, Any]) -> Any:
        try:
            return await self.ecosystem[butler].try_call(tool, arguments, seconds=CALL_S)
        except CannotReach:
            return None

    async def _expect_books(self) -> None:
        for said in self.sent:
            await self._expect_message(said)
        for (butler, key), allowed in self.state.items():
            await self._expect_state(butler, key, allowed)
        for butler in self.ecosystem.butlers.values():
            await expect_soon(
                f"every session of {butler.name} is closed on record",
                lambda butler=butler: is_closed(butler),
                seconds=CLOSED_S,
            )
        await self._expect_calls_agree()

    async def _expect_message(self, said: Said) -> None:
        event = said.arguments["event"]["external_event_id"]
        rows = await self.ecosystem.switchboard.database.rows(
            "SELECT request_id::text AS request_id FROM message_inbox WHERE payload::text LIKE %s",
            (f"%{event}%",),
        )
        known = {row["request_id"] for row in rows}
        what = f"{said.message.text!r}: {said}"

        assert len(said.requests) <= 1, f"one event is one message, found several ids: {what}"
        assert len(rows) <= 1, f"one event is one message, found {len(rows)} rows: {what}"
        assert said.fresh <= 1, f"one event is new once: {what}"
        assert said.requests <= known, f"acknowledged means kept, and it is not there: {what}"
        if not said.requests and not said.unknown:
            assert not rows, f"a message that was refused is in the inbox: {what}"
        for request in known:
            await self._expect_end(said, request)
        if not known:
            for butler in said.message.butlers:
                assert not await said.message.left_its_row(self.ecosystem, butler), (
                    f"a message that is not in the inbox was carried out by {butler}: {what}"
                )

    async def _expect_end(self, said: Said, request: str) -> None:
        sent = Sent(
            request_id=request,
            trace_id="",
            text=said.message.text,
            channel="api",
            answer={},
            since=self.since,
            mark=self.mark,
        )
        journey = await follow(self.ecosystem, sent)
        story = journey.text()

        assert not journey.unfinished, f"an accepted message has no final state\n{story}"
        assert len(journey.inbox) == 1, f"{len(journey.inbox)} inbox rows of one message\n{story}"
        row = journey.inbox[0]
        hops = [hop for hop in journey.routing if str(hop["request_id"]) == request]
        good = {hop["target_butler"] for hop in hops if hop["success"]}
        for name, butler in self.ecosystem.butlers.items():
            sessions = await butler.database.rows(
                "SELECT success, error, completed_at FROM sessions WHERE request_id::text = %s",
                (request,),
            )
            if name != "switchboard":
                assert len(sessions) <= 1, f"{name} was given one message twice\n{story}"
            if name in good:
                assert [True] == [each["success"] for each in sessions], (
                    f"the hop to {name} is a success, and its session is none\n{story}"
                )
            for each in sessions:
                assert bool(each["success"]) != bool(each["error"]), (
                    f"a session on {name} is a success or has a reason: {dict(each)}\n{story}"
                )
                if each["success"] and name in said.message.butlers:
                    assert await said.message.left_its_row(self.ecosystem, name), (
                        f"a session on {name} succeeded and left no row\n{story}"
                    )
        if row["lifecycle_state"] == "completed":
            assert good, f"completed, and no hop succeeded\n{story}"
            assert good <= set(targets_of(row["decomposition"])), (
                f"hops to butlers that the decomposition does not name\n{story}"
            )
        else:
            assert row["response_summary"] or row["dispatch_outcomes"], (
                f"a message that failed does not say why\n{story}"
            )

    async def _expect_state(self, butler: str, key: str, allowed: list[Any]) -> None:
        answer = await self.ecosystem[butler].call("state_get", key=key)
        found = ("value", as_json(answer["value"])) if answer["found"] else "absent"
        may = [each if each == "absent" else ("value", as_json(each[1])) for each in allowed]

        assert found in may, (
            f"{butler} has {str(found)[:200]} at {key}, expected what was acknowledged last, or "
            f"what got no answer since: {str(may)[:400]}"
        )

    async def _expect_calls_agree(self) -> None:
        """Sessions that succeeded have recorded the tokens that the provider counted for them."""
        calls = await self.ecosystem.gateway.client.ledger(since=self.mark)
        by_trace: dict[str, int] = {}
        for call in calls:
            parts = call.traceparent.split("-")
            if len(parts) == 4:
                by_trace[parts[1]] = by_trace.get(parts[1], 0) + call.output_tokens
        recorded: dict[str, int] = {}
        failed: set[str] = set()
        for butler in self.ecosystem.butlers.values():
            rows = await butler.database.rows(
                "SELECT trace_id, success, output_tokens FROM sessions WHERE started_at >= %s",
                (self.since,),
            )
            for row in rows:
                recorded[row["trace_id"]] = recorded.get(row["trace_id"], 0) + (
                    row["output_tokens"] or 0
                )
                if not row["success"]:
                    failed.add(row["trace_id"])
        for trace, tokens in recorded.items():
            # A session that was killed cannot write down its last call.
            if trace not in failed:
                assert tokens == by_trace.get(trace, 0), (
                    f"books balance: the sessions of trace {trace} have {tokens} output tokens on "
                    f"record, the provider counted {by_trace.get(trace, 0)}"
                )


async def is_closed(butler: Butler) -> bool:
    """Whether no session of a butler is open on record."""
    rows = await butler.database.rows("SELECT 1 FROM sessions WHERE completed_at IS NULL")
    return not rows


def as_json(value: Any) -> Any:
    """As a JSON value that can be compared: 1 is not true."""
    return (type(value).__name__, as_data(value) if isinstance(value, dict) else value)


@pytest.mark.explore
async def test_the_books_balance_after_any_outages(
    explore: Explore, fragile: Ecosystem, chaos: Chaos
) -> None:
    """What was acknowledged is there once, what was refused never happened, nothing outlives its owner."""
    await explore(lambda: Outages(fragile, Chaos(fragile)), steps=STEPS)
