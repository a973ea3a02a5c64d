"""INT-031: a benchmark from its planner by way of CAD to its reviewer, and to the engineers who solve it."""

from __future__ import annotations

from typing import Any, Final

import pytest
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.episodes import Purpose
from workbench_contract.findings import Stage
from workbench_contract.flows import Flow, FlowRequest
from workbench_contract.handover import CONTEXT, GEOMETRY
from workbench_contract.review import ProofKind

from suites.integration.bundles import (
    ESTIMATE,
    OBJECTIVES,
    PLAN,
    TODO,
    Bundle,
    capped,
    caps_of,
)
from suites.integration.comparing import expect_same
from suites.integration.environments import (
    SIZES,
    digests_of,
    environment_kept,
    environment_of,
    expect_handed,
    geometry_of,
    hand_over,
    planned,
)
from suites.integration.episodes import Episodes
from suites.integration.flows import (
    FlowAtWork,
    TurnAtWork,
    block_of,
    design_handed,
    flow_at_work,
    plan_handed,
    plan_refused,
    planner_of,
    price_of_the_impossible,
    steps_of,
    told_to,
)
from suites.integration.messages import sent
from suites.integration.planners import expect_found, handover
from suites.integration.refusals import expect_refused
from suites.integration.reviews import REFUSAL, REVIEW, decided

pytestmark = [pytest.mark.covers("INT-031"), pytest.mark.integration_p1]

_PATHS: Final = (GEOMETRY, OBJECTIVES)


async def _objectives_handed(turn: TurnAtWork, number: int) -> Bundle:
    """Plan a benchmark, and hand that over."""
    planner = planner_of(turn, number)
    bundle = planner.sound()
    await planner.leave(planned(bundle.files()))
    answer = await planner.submit()
    expect_handed(answer, {PLAN, TODO, OBJECTIVES}, what=f"the objectives {number}")
    return bundle


async def _environment_handed(turn: TurnAtWork, number: int, *, more: set[str]) -> str:
    """Make the environment of a benchmark, and hand it over; its id."""
    files = environment_of(number)
    for path, text in files.items():
        await turn.session.write(path, text)
    names = {PLAN, TODO, OBJECTIVES, *files, *more}
    answer = await hand_over(turn.session)
    return expect_handed(answer, names, what=f"the environment {number}").handover_id


async def _engineers(episodes: Episodes, benchmark_id: str, *statuses: int) -> None:
    """Engineers are refused a benchmark, by name."""
    body = FlowRequest(task="Solve it.", benchmark_id=benchmark_id)
    answer = await episodes.controller.post("/flows", sent(body))
    expect_refused(answer, *statuses, says=benchmark_id)


async def _is_whole(episodes: Episodes, found: Flow, design: str, number: int) -> None:
    """The accepted object is complete, the one that was approved, and what the controller has of it."""
    expect_same(design, found.handover_id, what="what the benchmark has come to")
    kept = await handover(episodes.controller, design)
    expect_same(Purpose.BENCHMARK, kept.purpose, what="the purpose of the accepted object")
    solids = [each.model_dump() for each in kept.geometry]
    expect_same(geometry_of(number), solids, what="solids of the accepted object")
    recorded = await environment_kept(episodes.controller, design)
    expect_same(digests_of(environment_of(number)), recorded, what="digests of the environment")
    for each in kept.files:
        answer = await episodes.controller.get(f"/handovers/{design}/files/{each.path}")
        expect_same(each.size_bytes, len(answer.body), what=f"bytes of {each.path}")
    approval = found.decisions[-1]
    about = (Decision.APPROVED, design)
    expect_same(about, (approval.decision, approval.reviewed_id), what="the last decision")


async def test_int_031_rejected_then_approved_then_engineered(breakable: Episodes) -> None:
    """A benchmark goes round once more when it is rejected, and is nobody's before it is approved.

    Then engineers solve it: its environment and its objectives are theirs, as they were. Services are killed
    between. The model provider is a stand-in: the gateway holds the models.
    """
    episodes, stack = breakable, breakable.stack
    request: dict[str, Any] = {"seed": 31, "variant": "Prüfstand", "metadata": {"b": 31}}
    async with flow_at_work(episodes, "/benchmarks", **request) as flow:
        await _engineers(episodes, flow.id, 409)
        async with flow.turn("planner", 1) as turn:
            bundle = await _objectives_handed(turn, 311)
        async with flow.turn("coder", 1) as turn:
            await turn.session.write(GEOMETRY, "parts = {}\n")
            answer = await hand_over(turn.session)
            expect_found(answer, Stage.PRICE, {GEOMETRY}, what="an environment of nothing")
            one = await _environment_handed(turn, 311, more=set())
        await _engineers(episodes, flow.id, 409)
        async with flow.turn("reviewer", 1) as turn, stack.outage("controller-worker", "kill"):
            await decided(turn.session, Decision.REJECTED, "Die Wand ist zu hoch.", paths=_PATHS)
        async with flow.turn("coder", 2) as turn:
            assert "zu hoch" in await told_to(turn), "a coder who is not told of its rejection"
            left = (await turn.session.read(SIZES)).json()["content"]
            expect_same(environment_of(311)[SIZES], left, what="what round 2 goes on from")
            await _engineers(episodes, flow.id, 409)
            two = await _environment_handed(turn, 310, more={f"{CONTEXT}/{REVIEW}"})
        async with flow.turn("reviewer", 2) as turn, stack.outage("controller", "kill"):
            await decided(turn.session, Decision.APPROVED, paths=_PATHS)
        found = await flow.until("completed")
    given = {key: getattr(found, key) for key in request}
    expect_same(request, given, what="what the benchmark was submitted with")
    answer = await episodes.controller.get(f"/benchmarks/{flow.id}")
    expect_same(found, Flow.model_validate_json(answer.body), what="the benchmark by its own path")
    await _is_whole(episodes, found, two, 310)
    expect_same(
        [one, two], [each.reviewed_id for each in found.decisions], what="what was reviewed"
    )
    turns = [(role, number) for _, role, number in steps_of(found) if role]
    roles = ["planner", "coder", "reviewer", "coder", "reviewer"]
    expect_same(list(zip(roles, (1, 1, 1, 2, 2), strict=True)), turns, what="turns of the flow")
    await _engineered(episodes, flow, bundle)


async def _engineered(episodes: Episodes, benchmark: FlowAtWork, bundle: Bundle) -> None:
    """Engineers plan, plan once more, make and approve a design in the environment of a benchmark."""
    async with flow_at_work(episodes, benchmark_id=benchmark.id) as flow:
        async with flow.turn("planner", 1) as turn:
            for path, text in environment_of(310).items():
                found = (await turn.session.read(path)).json().get("content")
                expect_same(text, found, what=f"{path} of the engineers")
            given = (await turn.session.read(OBJECTIVES)).json()["content"]
            expect_same(bundle.files()[OBJECTIVES], given, what="objectives of the engineers")
            plan = await plan_handed(turn, 312, bundle.objectives)
        async with flow.turn("coder", 1) as turn:
            proof = (ProofKind.PRICE, await price_of_the_impossible(turn, plan, 312))
            await plan_refused(turn, plan, "The wall leaves no room for it.", proof)
        async with flow.turn("reviewer", 1) as turn:
            why = "It cannot be done so."
            await decided(turn.session, Decision.CONFIRM_PLAN_REFUSAL, why, paths=[REFUSAL])
        async with flow.turn("planner", 2) as turn:
            for path, text in environment_of(310).items():
                found = (await turn.session.read(path)).json().get("content")
                expect_same(text, found, what=f"{path} of engineers who plan once more")
            again = planner_of(turn, 316, bundle.objectives)
            cost, weight = caps_of(again.sound())
            answer = await again.judged(capped(again.sound(), cost + 5, weight))
            what = "caps of a benchmark, raised by a second plan"
            expect_found(answer, Stage.AGREE, {OBJECTIVES, ESTIMATE}, what=what)
            plan = await plan_handed(turn, 316, bundle.objectives)
        async with flow.turn("coder", 2) as turn:
            design = await design_handed(turn, plan, block_of(316))
        async with flow.turn("reviewer", 2) as turn:
            await decided(turn.session, Decision.APPROVED, paths=["model.py", GEOMETRY])
        solved = await flow.until("completed")
        # An engineering flow is no benchmark.
        await _engineers(episodes, flow.id, 404)
        expect_refused(await episodes.controller.get(f"/benchmarks/{flow.id}"), 404)
    ids = (benchmark.id, (await benchmark.get()).handover_id, design)
    expect_same(
        ids, (solved.benchmark_id, solved.given_id, solved.handover_id), what="where it comes from"
    )
    recorded = await environment_kept(episodes.controller, design)
    expect_same(digests_of(environment_of(310)), recorded, what="the environment of the design")


async def test_int_031_two_benchmarks_at_once(episodes: Episodes) -> None:
    """Two benchmarks have objectives, geometry and engineers of their own; one that fails is nobody's.

    Its reviews are as often as may be. The model provider is a stand-in: the gateway holds the models.
    """
    async with (
        flow_at_work(episodes, "/benchmarks", seed=1) as one,
        flow_at_work(episodes, "/benchmarks", seed=2) as two,
    ):
        flows = {313: one, 314: two}
        designs, bundles = {}, {}
        for number, flow in flows.items():
            async with flow.turn("planner", 1) as turn:
                bundles[number] = await _objectives_handed(turn, number)
        async with one.turn("coder", 1) as left, two.turn("coder", 1) as right:
            for number, turn in ((313, left), (314, right)):
                designs[number] = await _environment_handed(turn, number, more=set())
        for number, flow in flows.items():
            async with flow.turn("reviewer", 1) as turn:
                await decided(turn.session, Decision.APPROVED, paths=_PATHS)
            await _is_whole(episodes, await flow.until("completed"), designs[number], number)
    # The earlier one, after the later one was approved.
    async with flow_at_work(episodes, benchmark_id=one.id) as flow:
        async with flow.turn("planner", 1) as turn:
            given = (await turn.session.read(OBJECTIVES)).json()["content"]
            expect_same(bundles[313].files()[OBJECTIVES], given, what="objectives of its engineers")
            sizes = (await turn.session.read(SIZES)).json()["content"]
            expect_same(environment_of(313)[SIZES], sizes, what="environment of its engineers")
        failed = await flow.until("failed")
    assert failed.handover_id is None, f"expected no result of a failed flow, found {failed}"
    async with flow_at_work(episodes, "/benchmarks") as flow:
        async with flow.turn("planner", 1) as turn:
            await _objectives_handed(turn, 315)
        for number in (1, 2, 3):
            async with flow.turn("coder", number) as turn:
                more = {f"{CONTEXT}/{REVIEW}"} if number > 1 else set()
                await _environment_handed(turn, 315, more=more)
            async with flow.turn("reviewer", number) as turn:
                await decided(turn.session, Decision.REJECTED, "Nein.", paths=_PATHS)
        failed = await flow.until("failed")
    assert "3 times" in failed.reason, (
        f"expected how often it was rejected, found {failed.reason!r}"
    )
    await _engineers(episodes, flow.id, 409)
    await _engineers(episodes, "00000000-0000-4000-8000-000000000031", 404)
