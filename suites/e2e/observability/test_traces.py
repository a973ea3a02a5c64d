"""One trace over all processes: what the butlers export of a message, collected over OTLP.

The session that fails is refused by the gateway, a stand-in for the model provider, which does not
refuse on request.
"""

from __future__ import annotations

import secrets

import pytest
import trio

from harness_core.doubles.http import Answer, Rule
from harness_core.doubles.model import Fault
from harness_core.doubles.telemetry import Span, Trace
from suites.e2e.ecosystem.handle import Ecosystem, Sent
from suites.e2e.observe.expect_broken_journey import expect_one_session
from suites.e2e.observe.expect_journey import expect_journey
from suites.e2e.observe.journey import Journey, follow, recorded_calls
from suites.e2e.worlds.chaos import expect_soon, refuses

pytestmark = [pytest.mark.covers("E2E-TRACING"), pytest.mark.capability("tracing")]

#: Exporters send in batches; the usual interval between two is 5 s, and the end of a session and
#: its last span lie apart.
ARRIVE_S = 12.0

#: By which a butler is told where its spans are wanted (contract, "Tracing").
COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"

#: Until a session asks its model, and from SIGTERM to the first refusal.
ASKS_S = 30.0

#: Clocks of one machine agree; the start of a span and that of its parent are read moments apart.
CLOCK_NS = 5_000_000

#: The Claude Code CLI gives up at once on this status; others it retries for minutes.
REFUSED = 403


async def send(ecosystem: Ecosystem, text: str) -> tuple[Sent, str]:
    """Send a message as a caller who has a span open; returns that span's id too."""
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    context = {"traceparent": f"00-{trace_id}-{span_id}-01"}
    sent = await ecosystem.send(text, trace_id=trace_id, control={"trace_context": context})
    return sent, span_id


def of_butler(trace: Trace, butler: str) -> tuple[Span, ...]:
    """The spans of a butler's process: its service is called after it, whatever stands around."""
    return tuple(span for span in trace.spans if butler in span.service)


def of_tool(trace: Trace, butler: str, tool: str) -> tuple[Span, ...]:
    """The spans of one tool call: the tool's name is a word of theirs, or one of their attributes."""
    return tuple(
        span
        for span in of_butler(trace, butler)
        if tool in span.name.replace("/", " ").split() or tool in span.attributes.values()
    )


def has_all(journey: Journey, caller: str, *butlers: str):
    """Whether a trace has come as far as a message left it: its tools, and nothing hangs loose."""

    def whole(trace: Trace) -> bool:
        tools = all(
            of_tool(trace, butler, call["name"])
            for butler in butlers
            for row in journey.of_message(butler)
            for call in recorded_calls(row)
        )
        present = all(of_butler(trace, butler) for butler in ("switchboard", *butlers))
        return tools and present and not trace.loose(below=caller)

    return whole


def errors_of(trace: Trace, butler: str) -> list[Span]:
    """The spans of a butler that record a failure."""
    return [span for span in of_butler(trace, butler) if span.status == "error"]


def expect_connected(trace: Trace, caller: str, *butlers: str) -> None:
    """Every span hangs below the caller's; those of targets below one of the switchboard's."""
    story = trace.text()

    assert not trace.loose(below=caller), f"spans hang nowhere (caller {caller})\n{story}"
    assert not trace.repeated(), f"spans were exported more than once\n{story}"
    for span in trace.spans:
        above = list(trace.above(span))
        top = above[-1] if above else span

        assert top.parent_id == caller, f"{span.text()} does not hang below the caller\n{story}"
        if above:
            assert span.start_ns >= above[0].start_ns - CLOCK_NS, (
                f"{span.text()} begins before its parent\n{story}"
            )
        assert span.end_ns >= span.start_ns, f"{span.text()} ends before it begins\n{story}"
    for butler in butlers:
        spans = of_butler(trace, butler)

        assert spans, f"no span of {butler}\n{story}"
        for span in spans:
            assert any("switchboard" in above.service for above in trace.above(span)), (
                f"{span.text()} has no span of the switchboard above it\n{story}"
            )


async def test_one_trace_over_all_processes(ecosystem: Ecosystem, token: str) -> None:
    """A message for two butlers leaves one trace: connected, with every tool call and no other butler."""
    sent, caller = await send(
        ecosystem,
        f"I have a headache, severity 3 ({token}). Also remind me to call Bob about {token}",
    )
    journey = await follow(ecosystem, sent)
    targets = ("health", "relationship")

    assert set(targets) == set(journey.targets()), (
        f"it goes to the two butlers it is for\n{journey.text()}"
    )
    trace = await ecosystem.collector.settled(
        sent.trace_id, where=has_all(journey, caller, *targets), seconds=ARRIVE_S
    )
    story = f"{trace.text()}\n{journey.text()}"

    expect_connected(trace, caller, *targets)
    for butler in targets:
        for row in journey.of_message(butler):
            assert recorded_calls(row), f"{butler} called no tool\n{story}"
            for call in recorded_calls(row):
                spans = of_tool(trace, butler, call["name"])

                assert spans, f"no span of the call of {call['name']} on {butler}\n{story}"
                assert any(butler in above.service for above in trace.above(spans[0])), (
                    f"the call of {call['name']} hangs below no session of {butler}\n{story}"
                )
    uninvolved = set(ecosystem.butlers) - {"switchboard", *targets}
    strangers = [name for name in sorted(uninvolved) if of_butler(trace, name)]

    assert [] == strangers, f"no other butler has a span in it; found {strangers}\n{story}"
    assert [] == [span.text() for span in trace.spans if span.status == "error"], (
        f"nothing failed, and no span says so\n{story}"
    )
    assert () == ecosystem.collector.refused, (
        f"the collector refused no export; found {ecosystem.collector.refused}"
    )


async def test_a_failure_is_an_error_in_the_trace(ecosystem: Ecosystem, token: str) -> None:
    """A session that fails says so in a span of its butler, and the hop to it in one of the switchboard."""
    tellers = ("health", "switchboard")
    refused = Fault(
        kind="status", status=REFUSED, times=20, contains=token, offers=("symptom_log",)
    )
    async with ecosystem.gateway.client.fault(refused):
        sent, caller = await send(ecosystem, f"I have a headache, severity 2 ({token})")
        journey = await follow(ecosystem, sent)

    assert [False] == [row["success"] for row in journey.of_message("health")], (
        f"the refused session has failed\n{journey.text()}"
    )
    whole = has_all(journey, caller, "health")
    trace = await ecosystem.collector.settled(
        sent.trace_id,
        where=lambda trace: whole(trace) and all(errors_of(trace, name) for name in tellers),
        seconds=ARRIVE_S,
    )
    story = f"{trace.text()}\n{journey.text()}"
    expect_connected(trace, caller, "health")
    for butler in tellers:
        errors = errors_of(trace, butler)

        assert errors, f"no span of {butler} tells of the failure\n{story}"
        assert any(span.status_message for span in errors), f"no reason is given\n{story}"


@pytest.mark.capability("notify")
async def test_a_delivery_that_fails_is_an_error_in_the_trace(
    ecosystem: Ecosystem, token: str
) -> None:
    """A notification that nobody delivers says so in the trace, on every butler that it went through."""
    trace_id, caller = secrets.token_hex(16), secrets.token_hex(8)
    answer = await ecosystem["health"].try_call(
        "notify",
        {"channel": "telegram", "message": f"in vain {token}"},
        headers={"traceparent": f"00-{trace_id}-{caller}-01"},
    )

    assert answer.is_error, f"without credentials nothing is delivered; found {answer.text}"
    through = ("health", "switchboard")
    trace = await ecosystem.collector.settled(
        trace_id,
        where=lambda trace: all(errors_of(trace, name) for name in through),
        seconds=ARRIVE_S,
    )

    assert of_butler(trace, "health"), f"no span of the call\n{trace.text()}"
    for butler in through:
        if of_butler(trace, butler):  # a product may have another way
            assert errors_of(trace, butler), (
                f"a hop that failed is an error: no span of {butler} tells of it\n{trace.text()}"
            )


@pytest.mark.slow
@pytest.mark.parametrize("given", ["none", "unsampled"])
async def test_every_message_has_a_trace(ecosystem: Ecosystem, token: str, given: str) -> None:
    """One that came without a trace has one of its own; one that is not sampled keeps its own."""
    trace_id = secrets.token_hex(16)
    context = {
        "traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-00",
        "tracestate": "vendor=a1,other=b2",
    }
    control = {"trace_context": context} if given == "unsampled" else {}
    sent = await ecosystem.send(
        f"I have a headache, severity 3 ({token})", trace_id=trace_id, control=control
    )
    journey = await follow(ecosystem, sent)
    carried = {
        "inbox": {row["trace_id"] for row in journey.inbox},
        "routing_log": {row["trace_id"] for row in journey.routing},
        "sessions of health": {
            row["trace_id"]
            for row in await ecosystem["health"].database.rows(
                "SELECT trace_id FROM sessions WHERE request_id::text = %s", (sent.request_id,)
            )
        },
        "sessions of the switchboard": {
            row["trace_id"]
            for row in await ecosystem.switchboard.database.rows(
                "SELECT trace_id FROM sessions WHERE request_id::text = %s", (sent.request_id,)
            )
        },
    }
    ids = set().union(*carried.values())

    assert len(ids) == 1, f"one trace joins all rows of a message; found {carried}"
    assert all(carried.values()), f"each of its rows carries it; found {carried}"
    (found,) = ids

    assert found, f"a message without a trace gets one; found {carried}"
    assert (found == trace_id) == (given == "unsampled"), (
        f"the caller's trace is kept when it gives one ({given}: {trace_id}); found {found}"
    )


@pytest.mark.disturbs
@pytest.mark.capability("own-process", "ingest.v1")
async def test_without_a_collector_a_message_keeps_its_trace(
    ecosystem: Ecosystem, token: str
) -> None:
    """Where no spans are wanted none are sent, and all rows of a message are joined by its trace all the same."""
    butlers = [ecosystem[name] for name in ("switchboard", "health")]
    before = {butler.name: dict(butler.environment) for butler in butlers}
    try:
        for butler in butlers:
            butler.environment.pop(COLLECTOR, None)
            await butler.restart()
        sent, _ = await send(ecosystem, f"I have a headache, severity 7 ({token})")
        journey = await follow(ecosystem, sent)
    finally:
        for butler in butlers:
            butler.environment.update(before[butler.name])
            await butler.restart()

    expect_journey(journey, ["health"])
    spans = ecosystem.collector.trace(sent.trace_id).spans

    assert not spans, (
        f"spans go to {COLLECTOR} when that is set: it was not, and {len(spans)} arrived\n"
        f"{journey.text()}"
    )


@pytest.mark.disturbs
async def test_spans_are_not_lost_when_a_butler_stops(ecosystem: Ecosystem, token: str) -> None:
    """A butler that is asked to stop in the middle of its work still sends the spans of it.

    Its session ends in the time it has for that, and the process right after.
    """
    health = ecosystem["health"]
    client = ecosystem.gateway.client
    hold = Fault(kind="hold", contains=token, also="symptom_log", times=20)
    try:
        async with trio.open_nursery() as nursery:
            async with client.fault(hold) as number:
                sent, caller = await send(ecosystem, f"I have a headache, severity 1 ({token})")

                async def held() -> bool:
                    return await client.fault_met(number) > 0

                await expect_soon("the session asks the model", held, seconds=ASKS_S)
                nursery.start_soon(health.stop)
                await expect_soon(
                    "a butler that shuts down refuses work", lambda: refuses(health), seconds=ASKS_S
                )
            journey = await follow(ecosystem, sent)
        session = expect_one_session(journey, "health")

        assert session["success"] is True, (
            f"a session that ends in time is drained\n{journey.text()}"
        )
        assert recorded_calls(session), f"the session called its tool\n{journey.text()}"
        trace = await ecosystem.collector.settled(
            sent.trace_id, where=has_all(journey, caller, "health"), seconds=ARRIVE_S
        )
    finally:
        await health.restart()

    expect_connected(trace, caller, "health")
    for call in recorded_calls(session):
        assert of_tool(trace, "health", call["name"]), (
            f"the span of {call['name']} was lost\n{trace.text()}"
        )


@pytest.mark.corpus
@pytest.mark.disturbs
@pytest.mark.parametrize("trouble", ["unanswered", "silent"])
async def test_a_collector_that_is_down_disturbs_no_butler(
    ecosystem: Ecosystem, token: str, trouble: str
) -> None:
    """Messages are handled and butlers stop as ever; once it is back, spans arrive again."""
    recorder = ecosystem.collector.recorder
    down = Rule(path="/v1/traces", answer=Answer(drop=trouble), name=trouble)
    health = ecosystem["health"]
    mark = recorder.mark()
    recorder.add_rule(down)
    try:
        sent, _ = await send(ecosystem, f"I have a headache, severity 8 ({token})")
        journey = await follow(ecosystem, sent)
        await recorder.wait_for("/v1/traces", since=mark, seconds=ARRIVE_S)
        await health.stop()
        ended = health.child.stop_report
        await health.start()
    finally:
        recorder.remove_rule(down)

    expect_journey(journey, ["health"])
    assert ended is not None, "a butler that is stopped ends"
    assert (0, False) == (ended.returncode, ended.killed), (
        f"it ends by itself, in order\n{health.child.tail()}"
    )
    sent, caller = await send(ecosystem, f"I have a headache, severity 9 ({token})")
    journey = await follow(ecosystem, sent)
    trace = await ecosystem.collector.settled(
        sent.trace_id, where=has_all(journey, caller, "health"), seconds=2 * ARRIVE_S
    )

    expect_connected(trace, caller, "health")
