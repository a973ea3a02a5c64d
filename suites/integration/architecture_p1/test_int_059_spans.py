"""The work on an episode is one trace over controller, workers and Temporal, and no other episode's."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from workbench_contract.batches import BatchAccepted

from harness_core.doubles.turns import fail, use
from suites.integration.comparing import expect_same, utc
from suites.integration.episodes import Episodes, new_token
from suites.integration.messages import answered
from suites.integration.observed import linked
from suites.integration.patience import SOON_S, eventually
from suites.integration.spans import Spans, of_service

pytestmark = [pytest.mark.covers("INT-059"), pytest.mark.integration_p1]


async def test_int_059_spans_of_an_episode_are_its_trace(episodes: Episodes, spans: Spans) -> None:
    """Spans of controller, workers and Temporal have the trace of the episode's row and of Langfuse, and hang together.

    Three run at once, two of them as a batch; one fails. The model provider and Langfuse are stand-ins.
    """
    tokens = [new_token() for _ in range(3)]
    for token, ends in zip(tokens, ((), (), (fail(400),)), strict=True):
        report = use("fs_write", path="assets/report.md", content=token)
        await episodes.rehearse(token, report, use("execute", command="true"), *ends)
    alone = await episodes.submit(tokens[0])
    answer = await episodes.ask_batch({token: {} for token in tokens[1:]})
    assert 202 == answer.status, f"expected the batch to be accepted with 202, found {answer}"
    batch = answered(answer, BatchAccepted)
    ids = [alone["episode_id"], *(each.episode_id for each in batch.episodes)]
    for episode_id, end in zip(ids, ("completed", "completed", "failed"), strict=True):
        await episodes.until(episode_id, end)
    known = [await linked(episodes, episode_id) for episode_id in ids]

    traces = [episode["trace_id"] for episode in known]
    expect_same(3, len(set(traces)), what="traces of three episodes at once")
    for episode in known:
        at_langfuse = {trace["langfuse_trace_id"] for trace in episode["traces"]}
        expect_same({episode["trace_id"]}, at_langfuse, what="its trace at Langfuse")
    for episode in known:
        trace = await spans.expect_whole(episode)
        others = [each for each in ids if each != episode["episode_id"]]
        mixed = [span.text() for span in trace.spans if _names(span.attributes, others)]
        assert [] == mixed, f"the spans of an episode tell of no other: found {mixed}"


@pytest.mark.parametrize("service", ["controller-worker", "worker"])
async def test_int_059_spans_after_a_kill(breakable: Episodes, spans: Spans, service: str) -> None:
    """Who carries out again what was lost tells of it in the same trace as one does who is not disturbed.

    What was under way in a process that is killed has no span, so what hung below it has no parent. The model
    provider is a stand-in.
    """
    token, other = new_token(), new_token()
    await breakable.rehearse(token, breakable.waiting())
    await breakable.rehearse(other, use("execute", command="true"))
    accepted = await breakable.submit(token)
    await breakable.begun(accepted["session_id"])
    # Spans are sent in the order of their ends: when these have come, so have the first one's that have ended.
    undisturbed = await breakable.run_submitted(other)
    await spans.expect_whole(undisturbed)
    again = await _told_from_its_call_on(spans, undisturbed)
    killed_ns = time.time_ns()
    async with breakable.stack.outage(service, "kill"):
        pass
    await breakable.release(accepted["session_id"])
    episode = await breakable.until(accepted["episode_id"], "completed")

    await spans.expect_whole(episode, killed_ns=killed_ns, again=again)


@pytest.mark.parametrize("trouble", ["unanswered", "silent"])
async def test_int_059_spans_wait_for_nobody(
    breakable: Episodes, spans: Spans, trouble: str
) -> None:
    """While the collector is away episodes run and services stop as ever; once it is back, it is told again.

    The model provider is a stand-in.
    """
    tokens = [new_token() for _ in range(3)]
    for token in tokens:
        await breakable.rehearse(token, use("execute", command="true"))
    with spans.away(drop=trouble) as mark:
        lost = await breakable.run_submitted(tokens[0])
        await spans.until_asked(mark)
        async with breakable.stack.outage("worker", "stop"):
            pass
        again = await breakable.run_submitted(tokens[1])
    expect_same(
        [3, 3],
        [len(each["traces"]) for each in (lost, again)],
        what="turns and calls on record, while nobody takes spans",
    )
    later = await breakable.run_submitted(tokens[2])
    trace = await spans.expect_whole(later)
    assert of_service(trace, "worker"), f"expected the worker to tell again, found {trace.text()}"


async def _told_from_its_call_on(spans: Spans, episode: Mapping[str, Any]) -> frozenset[str]:
    """Names of the worker's spans from the first tool call of an episode on."""
    call = next(each for each in episode["traces"] if each["kind"] == "tool")
    began_ns = round(utc(call["started_at"], what="a tool call").timestamp() * 1e9)

    async def there() -> frozenset[str] | None:
        told = of_service(spans.trace(episode["trace_id"]), "worker")
        return frozenset(span.name for span in told if span.start_ns >= began_ns) or None

    found: frozenset[str] = await eventually(
        there, seconds=SOON_S, expected="a span of the worker for a tool call"
    )
    return found


def _names(attributes: Any, others: list[str]) -> bool:
    return any(other in str(dict(attributes)) for other in others)
