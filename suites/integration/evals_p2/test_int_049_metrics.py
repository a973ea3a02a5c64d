"""Each metric is computed from what is stored, or says what is missing; it is never 0 in its place."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
import yaml
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.metrics import Metric, MetricName, Metrics
from workbench_contract.review import ProofKind

from harness_core.doubles.http import Response
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import fail, use
from suites.integration.batching import ended_batch, submitted_batch
from suites.integration.bundles import TODO, Bundle, milled, sound
from suites.integration.comparing import expect_same, utc
from suites.integration.episodes import FINAL, Episodes, new_token
from suites.integration.flows import block_of
from suites.integration.messages import answered
from suites.integration.patience import SOON_S, eventually
from suites.integration.planners import Planner, coder_at_work, expect_accepted, handover
from suites.integration.refusals import expect_refused
from suites.integration.reviews import REFUSAL, decided, refusal
from suites.integration.sessions import Session
from suites.integration.simulating import EMPTY_SCENE, goals

pytestmark = [pytest.mark.covers("INT-049"), pytest.mark.integration_p2]

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000049"

#: A message of a model that does not say how many tokens it took.
_UNCOUNTED: Final = {
    "id": "msg_049",
    "type": "message",
    "role": "assistant",
    "model": "uncounted",
    "content": [{"type": "text", "text": "Done."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
}

_SCENE: Final = (
    '<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 .2"><freejoint/>'
    '<geom type="box" size=".05 .05 .05"/></body></worldbody></mujoco>'
)


async def test_int_049_metrics_of_a_batch(episodes: Episodes) -> None:
    """Every metric of four runs is what they did, to the last digit, beside another batch that did otherwise.

    What none of them has done is missing, and said so; so is what one of several turns does not say. The model provider is a stand-in: the gateway does the
    turns, and its own record says what they took.
    """
    act, lost = use("execute", command="true"), use("fs_read", path="nowhere.md")
    simulate = use("simulate", model="scene.xml", duration_s=0.1, runs=3)
    # A ball falls into its goal, and into what it has to keep away from.
    goal = goals()
    away = {**goal["goal_zone"], "min_mm": [90, -13, 100], "max_mm": [120, 13, 120]}
    pit = goals(goal_zone=away, forbid_zones=[{"name": "pit", **goal["goal_zone"]}])
    left = (
        use("fs_write", path="empty.xml", content=EMPTY_SCENE),
        use("fs_write", path="goal.yaml", content=yaml.safe_dump(goal)),
        use("fs_write", path="pit.yaml", content=yaml.safe_dump(pit)),
    )
    hit, fell = (
        use("simulate", model="empty.xml", objectives=f"{name}.yaml", duration_s=0.5)
        for name in ("goal", "pit")
    )
    batch, found, tokens = await ended_batch(
        episodes,
        [
            (
                {"seed": 1},
                (
                    use("fs_write", path="scene.xml", content=_SCENE),
                    *(lost, simulate, left, hit, fell),
                ),
            ),
            ({"seed": 2}, (act, fail(400))),
            ({"seed": 3}, ()),
            (
                {"seed": 4, "role": "planner"},
                (
                    use("search_catalogue", q="bearing"),
                    use("search_catalogue", q="screw"),
                    use("search_catalogue", q="no part is called like this"),
                ),
            ),
        ],
    )
    word = new_token()
    uncounted = Fault(kind="malformed", contains=word, body=json.dumps(_UNCOUNTED))
    async with episodes.stack.gateway.client.fault(uncounted):
        other, rest, [_, unsaid] = await ended_batch(
            episodes,
            [
                ({"seed": 9}, (act, act, act)),
                ({"seed": 10}, (use("execute", command=f"echo {word}"),)),
            ],
        )
    statuses = [each["status"] for each in found]
    expect_same(["completed", "failed", "completed", "completed"], statuses, what="how they ended")

    ledger = await episodes.stack.gateway.client.ledger()
    spent = [
        sum(
            e.input_tokens + e.output_tokens
            for e in ledger
            if token in e.prompt and e.status == 200
        )
        for token in tokens
    ]
    await _are(
        episodes,
        batch,
        {
            MetricName.SUCCESS_RATE: (3 / 4, 4),
            MetricName.TURNS_PER_EPISODE: (_mean([_turns(each) for each in found]), 4),
            MetricName.TOKENS_PER_EPISODE: (_mean(spent), 4),
            MetricName.TOOL_ERROR_RATE: (1 / 12, 12),
            MetricName.GOAL_RATE: (1 / 5, 5),
            MetricName.CATALOGUE_HIT_RATE: (2 / 3, 3),
            MetricName.SECONDS_PER_EPISODE: (_mean([_seconds(each) for each in found]), 4),
        },
    )
    # Who asks again when a message counts no tokens has an answer that does.
    retried = await episodes.asked(unsaid) > 2
    await _are(
        episodes,
        other,
        ({MetricName.TOKENS_PER_EPISODE: None} if retried else {})
        | {
            MetricName.SUCCESS_RATE: (1.0, 2),
            MetricName.TURNS_PER_EPISODE: (_mean([_turns(each) for each in rest]), 2),
            MetricName.TOOL_ERROR_RATE: (0.0, 4),
            MetricName.SECONDS_PER_EPISODE: (_mean([_seconds(each) for each in rest]), 2),
        },
    )
    await _are_of_all(episodes)
    expect_refused(
        await episodes.controller.get("/metrics/evaluations", params={"batch_id": _UNKNOWN}), 404
    )


async def _are_of_all(episodes: Episodes) -> None:
    """Without a batch metrics are of every episode that has ended, in a batch or not."""
    await episodes.run(new_token(), use("execute", command="true"))

    async def by_status() -> dict[str, int]:
        totals = {}
        for status in FINAL:
            asked = {"status": status, "limit": 1}
            answer = await episodes.controller.get("/episodes", params=asked)
            assert 200 == answer.status, f"expected the {status} episodes, found {answer}"
            totals[status] = answer.json()["total"]
        return totals

    async def of_one_moment() -> tuple[dict[str, int], Response] | None:
        """Between two looks with the same end: what another test left may end meanwhile."""
        before = await by_status()
        answer = await episodes.controller.get("/metrics/evaluations")
        return (before, answer) if before == await by_status() else None

    totals, answer = await eventually(
        of_one_moment, seconds=SOON_S, expected="a moment in which no episode ends"
    )
    assert 200 == answer.status, f"expected the metrics of all, found {answer}"
    found = answered(answer, Metrics)
    expect_same(sum(totals.values()), found.episodes, what="episodes that metrics of all are of")
    rate = next(each for each in found.metrics if each.name is MetricName.SUCCESS_RATE)
    share = totals["completed"] / sum(totals.values())
    assert rate.value is not None, f"expected the success rate of all, found {rate}"
    assert math.isclose(share, rate.value), f"expected {share} of all completed, found {rate}"


async def test_int_049_nothing_is_made_of_nothing(episodes: Episodes) -> None:
    """While no episode of a batch has ended every metric is missing; of a hand-over the first attempt counts.

    Of three planners one is refused at first; a reviewer rejects twice, and then approves. Another decides about
    the refusal of a plan, whose confirmation approves nothing. The model provider is a stand-in.
    """
    design, refused = await _design(episodes)
    members: list[dict[str, Any]] = [{"seed": seed, "role": "planner"} for seed in (5, 6, 7)]
    members += [
        {"seed": 8, "role": "reviewer", "handover_id": design},
        {"seed": 9, "role": "reviewer", "handover_id": refused},
    ]
    gateway = episodes.stack.gateway.client
    async with gateway.fault(Fault(kind="hold", times=50)):
        accepted, _ = await submitted_batch(episodes, [(each, ()) for each in members])
        await _are(episodes, accepted.batch_id, {})
        *plan, review, second = accepted.episodes
        planners = [
            await _planner(episodes, member.episode_id, number=491 + place)
            for place, member in enumerate(plan)
        ]
        expect_refused(await planners[0].submit(), 422)
        for planner in planners:
            answer = await planner.judged(planner.sound())
            expect_accepted(answer, f"the sound plan {planner.number}")
        _, session, _ = await _begun(episodes, review.episode_id)
        for decision, words in (
            (Decision.REJECTED, ["Too thick."]),
            (Decision.REJECTED, ["Too thin."]),
            (Decision.APPROVED, []),
        ):
            await decided(session, decision, *words, paths=["model.py"])
        _, session, _ = await _begun(episodes, second.episode_id)
        for decision in (Decision.REJECT_PLAN_REFUSAL, Decision.CONFIRM_PLAN_REFUSAL):
            await decided(session, decision, "Look once more.", paths=[REFUSAL])
    ended = [await episodes.until(each.episode_id, "completed") for each in accepted.episodes]
    await _are(
        episodes,
        accepted.batch_id,
        {
            MetricName.SUCCESS_RATE: (1.0, 5),
            MetricName.TURNS_PER_EPISODE: (_mean([_turns(each) for each in ended]), 5),
            MetricName.TOKENS_PER_EPISODE: None,
            MetricName.FIRST_HANDOVER_RATE: (2 / 3, 3),
            MetricName.APPROVAL_RATE: (1 / 5, 5),
            MetricName.SECONDS_PER_EPISODE: (_mean([_seconds(each) for each in ended]), 5),
        },
    )


async def _design(episodes: Episodes) -> tuple[str, str]:
    """A design that was handed over, and then a refusal of its plan: their ids."""

    def plan(planner: Planner) -> Bundle:
        made = [milled(f"block-{planner.number}", 12_000, (42, 32, 12), units=100)]
        return sound(planner.issued, number=planner.number, made=made, units=100)

    async with coder_at_work(episodes, number=494, plan=plan) as coder:
        judged = await coder.judged(block_of(494))
        assert judged.passed, f"expected the design to pass, found {judged.findings}"
        answer = await coder.submit()
        assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
        heavy = await coder.judged(block_of(494).replace("40, 30, 10", "70, 40, 60"))
        assert not heavy.passed, f"expected a design over the caps not to pass, found {heavy}"
        words = refusal("It is too heavy.", (ProofKind.PRICE, heavy.price_id))
        await coder.session.write(REFUSAL, words)
        refused = await coder.submit()
        assert 200 == refused.status, f"expected the refusal to be handed over, found {refused}"
    design, refusing = [
        await handover(episodes.controller, each.json()["handover_id"])
        for each in (answer, refused)
    ]
    assert refusing.refuses_plan, f"expected a refusal of the plan, found {refusing}"
    return design.handover_id, refusing.handover_id


async def _begun(episodes: Episodes, episode_id: str) -> tuple[str, Session, str]:
    """An agent that has begun, its model held: its episode, its session, the list in it."""
    session = episodes.session((await episodes.get(episode_id))["session_id"])

    async def begun() -> str | None:
        answer = await session.read(TODO)
        return answer.json()["content"] if answer.status == 200 else None

    issued = await eventually(begun, seconds=SOON_S, expected="the agent's list in its session")
    return episode_id, session, issued


async def _planner(episodes: Episodes, episode_id: str, *, number: int) -> Planner:
    """A planner at work, its model held."""
    _, session, issued = await _begun(episodes, episode_id)
    return Planner(episode_id=episode_id, session=session, issued=issued, number=number)


async def _are(
    episodes: Episodes, batch_id: str, expected: Mapping[MetricName, tuple[float, int] | None]
) -> None:
    """The metrics of a batch: value and count of those that are named, or any value; all others missing."""
    answer = await episodes.controller.get("/metrics/evaluations", params={"batch_id": batch_id})

    assert 200 == answer.status, f"expected metrics of the batch, found {answer}"
    found = {metric.name: metric for metric in answered(answer, Metrics).metrics}
    expect_same(sorted(MetricName), sorted(found), what="the metrics, each once")
    for name, metric in found.items():
        if name not in expected:
            _is_missing(metric)
            continue
        wanted = expected[name]
        assert metric.value is not None, f"expected a value of {name}, found {metric}"
        assert not metric.missing, f"a metric with a value lacks nothing: found {metric}"
        if wanted is not None:
            assert math.isclose(wanted[0], metric.value, rel_tol=1e-6, abs_tol=1e-6), (
                f"expected {wanted[0]} as {name} of batch {batch_id}, found {metric}"
            )
            expect_same(wanted[1], metric.over, what=f"of how many {name} is")


def _is_missing(metric: Metric) -> None:
    assert metric.value is None, f"what cannot be computed has no value, not 0: found {metric}"
    assert metric.missing.strip(), f"what cannot be computed says what is missing: found {metric}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _turns(episode: Mapping[str, Any]) -> int:
    return len([trace for trace in episode["traces"] if trace["kind"] == "model"])


def _seconds(episode: Mapping[str, Any]) -> float:
    at = {s["to_status"]: utc(s["at"], what="a transition") for s in episode["transitions"]}
    return (at[episode["status"]] - at["running"]).total_seconds()
