"""INT-033: planner, coder and reviewer one after another, until the reviewer approves or rounds are used up."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import pytest
import trio
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.findings import Stage
from workbench_contract.flows import Flow, FlowList, FlowRefused, FlowRequest, FlowSummary
from workbench_contract.handover import CONTEXT
from workbench_contract.review import ProofKind

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import use
from harness_core.infrastructure.databases import Database
from suites.integration.bundles import ESTIMATE, OBJECTIVES, PLAN, TODO, Bundle, milled, sound
from suites.integration.comparing import consecutive, expect_same, expect_unchanged, in_order, utc
from suites.integration.environments import is_made
from suites.integration.episodes import Episodes, calls
from suites.integration.flows import (
    FlowAtWork,
    TurnAtWork,
    block_of,
    coder_of,
    decisions,
    design_handed,
    flow_at_work,
    plan_handed,
    plan_refused,
    price_of_the_impossible,
    steps_of,
    told_to,
)
from suites.integration.messages import sent
from suites.integration.patience import SOON_S, eventually
from suites.integration.planners import expect_found, handover
from suites.integration.refusals import expect_refused
from suites.integration.reviews import REFUSAL, REVIEW, decided, front, review
from suites.integration.temporal_view import closed_workflow, end_workflow

pytestmark = [pytest.mark.covers("INT-033"), pytest.mark.integration_p1]

_MODEL: Final = "model.py"
#: More flows than a run makes; the most that one page holds.
_MANY: Final = 500


async def test_int_033_rejected_twice_then_approved(episodes: Episodes) -> None:
    """Each rejection returns to the coder with its comments; the approved design is what the flow comes to.

    A coder that hands over twice in one turn is reviewed by what it handed over last.

    Caps of the plan hold in every round. Steps are rows and events, in order. The model provider is a
    stand-in: the gateway holds the models.
    """
    said = ["It stands 2 mm too far left; Größe stimmt.", "Zu weit hinten: 日本 😀"]
    places = ("28, 0, 5", "30, 1, 5", "30, 0, 5")
    request: dict[str, Any] = {"seed": 33, "variant": "π/33", "metadata": {"größe": [1]}}
    designs, reviews = [], []
    async with flow_at_work(episodes, **request) as flow:
        async with flow.turn("planner", 1) as turn:
            bundle = await plan_handed(turn, 331)
        for number, place in enumerate(places, start=1):
            async with flow.turn("coder", number) as turn:
                if number > 1:
                    before = block_of(331, at=places[number - 2])
                    await _was_sent_back(turn, bundle, said[number - 2], before)
                if number == 2:
                    # Thought better of: what is handed over last is what a turn comes to.
                    await design_handed(turn, bundle, block_of(331, at="27, 4, 5"))
                designs.append(await design_handed(turn, bundle, block_of(331, at=place)))
            async with flow.turn("reviewer", number) as turn:
                script = (await turn.session.read(_MODEL)).json()["content"]
                expect_same(block_of(331, at=place), script, what=f"what review {number} is about")
                last = number == len(places)
                decision = Decision.APPROVED if last else Decision.REJECTED
                words = [] if last else [said[number - 1], f"Auch das, Nr. {number}."]
                paths = (_MODEL, PLAN)
                reviews.append(await decided(turn.session, decision, *words, paths=paths))
        found = await flow.until("completed")
        prompts = await flow.prompts()
    expect_same(designs[-1], found.handover_id, what="what the flow has come to")
    rounds = [
        ("handed_over" if number == 1 else "rejected", "coder", number) for number in (1, 2, 3)
    ]
    between = [("handed_over", "reviewer", number) for number in (1, 2, 3)]
    expected = [("submitted", None, None), ("taken_up", None, None), ("taken_up", "planner", 1)]
    for one, other in zip(rounds, between, strict=True):
        expected += [one, other]
    expect_same([*expected, ("approved", None, None)], steps_of(found), what="steps of the flow")
    await _is_consistent(episodes, flow, found, request)
    decided_of = [(each.decision_id, each.reviewed_id, each.decision) for each in found.decisions]
    wanted = [Decision.REJECTED, Decision.REJECTED, Decision.APPROVED]
    expect_same(
        list(zip(reviews, designs, wanted, strict=True)), decided_of, what="decisions of the flow"
    )
    for number, words in enumerate(said, start=1):
        both = (words, f"Auch das, Nr. {number}.")
        asked = [prompt for prompt in prompts if all(each in prompt for each in both)]
        assert asked, f"expected the comments {both} in the prompt of round {number + 1}"
    kept = await handover(episodes.controller, designs[-1])
    files = {each.path for each in kept.files if not is_made(each.path)}
    expected_files = {PLAN, TODO, OBJECTIVES, ESTIMATE, _MODEL, f"{CONTEXT}/{REVIEW}"}
    expect_same(sorted(expected_files), sorted(files), what="files of the approved design")
    digest = {each.path: each.sha256 for each in kept.files}[_MODEL]
    script = block_of(331, at=places[-1])
    expect_same(hashlib.sha256(script.encode()).hexdigest(), digest, what="digest of the script")


async def _was_sent_back(turn: TurnAtWork, bundle: Bundle, comment: str, before: str) -> None:
    """A coder is told why, goes on from what it left, and is held to what the reviewer and the plan said."""
    told, coder = await told_to(turn), coder_of(turn, bundle)
    assert comment in _unfolded(told), f"expected {comment!r} for the coder, found {told}"
    left = (await turn.session.read(_MODEL)).json()["content"]
    expect_same(before, left, what=f"the design that round {turn.round} goes on from")
    path = f"{CONTEXT}/{REVIEW}"
    await turn.session.write(path, told.replace("rejected", "approved"))
    answer = await coder.submit()
    expect_found(answer, Stage.AGREE, {path}, what="a design beside other comments")
    await turn.session.write(path, told)
    judged = await coder.judged(block_of(331).replace("40, 30, 10", "70, 40, 60"))
    assert not judged.passed, f"expected a design over the plan's caps not to pass, found {judged}"


def _unfolded(text: str) -> str:
    """Front matter with its lines as they were said: YAML folds long ones."""
    return " ".join(text.split())


async def _is_consistent(
    episodes: Episodes, flow: FlowAtWork, found: Flow, request: dict[str, Any]
) -> None:
    """Rows, events and Temporal say the same of a flow that is over."""
    consecutive((each.ordinal for each in found.transitions), what="ordinals of the steps")
    times = [utc(each.at.isoformat(), what="time of a step") for each in found.transitions]
    in_order(times, what="times of the steps")
    seen = await closed_workflow(episodes.stack, found.workflow_id)
    expect_same(found.status.value, seen.status, what="the flow at Temporal")
    expect_same(found.run_id, seen.run_id, what="the flow's run at Temporal")
    expect_same({"flow_id": flow.id}, seen.memo, what="the flow's memo at Temporal")
    given = {key: getattr(found, key) for key in request}
    expect_same(request, given, what="what the flow was submitted with")
    for step in found.transitions:
        if step.role is None:
            continue
        episode = await episodes.get(str(step.episode_id))
        mine = {"flow_id": flow.id, "role": step.role.value, **request}
        expect_same(mine, {key: episode[key] for key in mine}, what="an episode of the flow")
        events = calls(await episodes.events(episode["episode_id"]), "flow_transition")
        payload = {"flow_id": flow.id, **step.model_dump(mode="json", exclude={"at"})}
        told = [each["payload"] for each in events]
        assert payload in told, f"expected a step as an event, {payload}, found {told}"
        closed = await closed_workflow(episodes.stack, episode["workflow_id"])
        expect_same(episode["status"], closed.status, what="a turn at Temporal")
        ids = {key: episode[key] for key in ("episode_id", "trace_id")}
        memo = {key: closed.memo.get(key) for key in ids}
        expect_same(ids, memo, what="ids of a turn in its memo at Temporal")


async def test_int_033_rounds_are_used_up(episodes: Episodes) -> None:
    """A design that is rejected as often as may be ends the flow, which says so, with the last comment.

    A refusal of the plan between two rejections is none, and makes none undone. Nothing is handed over then,
    and nothing begins. The model provider is a stand-in: the gateway holds the models.
    """
    async with flow_at_work(episodes) as flow:
        async with flow.turn("planner", 1) as turn:
            bundle = await plan_handed(turn, 332)
        for number, rejected in enumerate((1, 2, None, 3), start=1):
            async with flow.turn("coder", number) as turn:
                if number in {2, 3}:
                    told = " ".join((await told_to(turn)).split())
                    assert told.count("und weiter") == 900, f"expected the whole comment: {told}"
                if rejected is None:
                    price_id = await price_of_the_impossible(turn, bundle, 332)
                    await plan_refused(turn, bundle, "too heavy", (ProofKind.PRICE, price_id))
                else:
                    script = block_of(332, at=f"{28 + number}, 0, 5")
                    await design_handed(turn, bundle, script)
            async with flow.turn("reviewer", number) as turn:
                if rejected is None:
                    decision = Decision.REJECT_PLAN_REFUSAL
                    await decided(turn.session, decision, "It can be done.", paths=[REFUSAL])
                else:
                    comment = f"Nr. {rejected}: zu weit" + " und weiter" * 900 * (rejected < 3)
                    await decided(turn.session, Decision.REJECTED, comment, paths=[_MODEL])
        found = await flow.until("failed")
    assert "Nr. 3: zu weit" in found.reason, f"expected the last comment, found {found.reason!r}"
    assert "3 times" in found.reason, f"expected how often it was rejected, found {found.reason!r}"
    expect_same(None, found.handover_id, what="what a flow without an approval has come to")
    last = steps_of(found)[-1]
    expect_same(("rounds_used_up", None, None), last, what="the last step of the flow")
    listed = await episodes.controller.get("/flows", params={"status": "failed", "limit": "500"})
    assert flow.id in listed.text, f"expected the flow among those that failed, found {listed}"
    again = await episodes.controller.post(f"/flows/{flow.id}/interrupt")
    expect_refused(again, 409, says="failed")


async def _are_listed(episodes: Episodes, submitted: list[str]) -> None:
    """Flows are listed latest first, page by page; by status and purpose those alone that have them.

    Args:
        episodes: of the stack.
        submitted: ids of the last flows, in the order in which they were submitted.
    """

    async def listed(*, total: int | None = None, **wanted: str) -> list[FlowSummary]:
        answer = await episodes.controller.get("/flows", params={"limit": str(_MANY), **wanted})
        assert 200 == answer.status, f"expected the flows with {wanted}, found {answer}"
        page = FlowList.model_validate_json(answer.body)
        if len(page.flows) < _MANY:
            there = len(page.flows) if total is None else total
            expect_same(there, page.total, what=f"flows in all, of those with {wanted}")
        return page.flows

    every = await listed()
    latest = [each.flow_id for each in every[: len(submitted)]]
    expect_same(submitted[::-1], latest, what="the latest flows, latest first")
    whole = len(every)
    pages = [await listed(total=whole, limit="1", offset=str(offset)) for offset in range(3)]
    ids = [[each.flow_id for each in page] for page in pages]
    expect_same([[each] for each in latest[:3]], ids, what="pages of one flow each")
    for key in ("status", "purpose"):
        for value in {getattr(each, key).value for each in every}:
            found = await listed(**{key: value})
            kinds = {getattr(each, key).value for each in found}
            expect_same({value}, kinds, what=f"{key} of the flows that are listed by {value}")
            wanted = [each.flow_id for each in every if getattr(each, key).value == value]
            ours = [each for each in wanted if each in submitted]
            there = [each.flow_id for each in found if each.flow_id in submitted]
            expect_same(ours, there, what=f"flows of this test that are listed by {value}")


async def _ended(flow: FlowAtWork, status: str, *, by: str) -> Flow:
    """A flow when it has ended so, its last step by that cause."""
    found = await flow.until(status)
    expect_same((by, None, None), steps_of(found)[-1], what=f"the last step of a flow {status}")
    return found


async def test_int_033_turns_that_come_to_nothing(episodes: Episodes) -> None:
    """A turn that ends without a hand-over, or is interrupted, ends its flow with that reason.

    So does an operator at Temporal; unknown flows are refused. The model provider is a stand-in: the gateway holds the models.
    """
    submitted = []
    async with flow_at_work(episodes) as flow:
        submitted.append(flow.id)
        async with flow.turn("planner", 1):
            pass
        found = await _ended(flow, "failed", by="stage_ended")
    assert "without handing over" in found.reason, f"expected that reason, found {found.reason!r}"
    async with flow_at_work(episodes) as flow:
        submitted.append(flow.id)
        async with flow.turn("planner", 1) as turn:
            await plan_handed(turn, 333)
        async with flow.turn("coder", 1) as turn:
            answer = await episodes.interrupt(turn.episode_id)
            assert 202 == answer.status, f"expected the turn to be interrupted, found {answer}"
            await episodes.until(turn.episode_id, "interrupted")
        await _ended(flow, "interrupted", by="interrupted")
    async with flow_at_work(episodes) as flow:
        async with flow.turn("planner", 1) as turn:
            await plan_handed(turn, 334)
        planned = await episodes.until(turn.episode_id, "completed")
        async with flow.turn("coder", 1) as turn:
            answer = await episodes.controller.post(f"/flows/{flow.id}/interrupt")
            assert 202 == answer.status, f"expected the flow to be interrupted, found {answer}"
            stopped = await episodes.until(turn.episode_id, "interrupted")
        found = await flow.until("interrupted")
        now = await episodes.get(planned["episode_id"])
        expect_unchanged(planned, now, what="a turn that had ended before its flow was interrupted")
        asked = stopped["interrupt_requested_at"]
        assert asked is not None, f"a turn that was interrupted does not say since when: {stopped}"
        closed = await closed_workflow(episodes.stack, found.workflow_id)
        expect_same("canceled", closed.status, what="an interrupted flow at Temporal")
        submitted.append(flow.id)
    for how in ("cancel", "terminate"):
        async with flow_at_work(episodes) as flow:
            async with flow.turn("planner", 1) as turn:
                await end_workflow(episodes.stack, flow.workflow_id, how)
                await episodes.until(turn.episode_id, "cancelled")
            found = await flow.until("cancelled")
        assert found.reason, f"expected a flow that was ended by {how} to say so, found {found}"
        submitted.append(flow.id)
    async with flow_at_work(episodes) as flow:
        async with flow.turn("planner", 1):
            await end_workflow(episodes.stack, flow.workflow_id, "delete")
            found = await flow.until("failed", "cancelled")
        assert found.reason, f"expected a flow that Temporal forgot to say so, found {found}"
        submitted.append(flow.id)
    await _are_listed(episodes, submitted)
    for path in ("/flows/none", "/benchmarks/none"):
        expect_refused(await episodes.controller.get(path), 404)
    expect_refused(await episodes.controller.post("/flows/none/interrupt"), 404)
    for body in ({}, {"task": ""}, {"task": "x", "seed": -1}, {"task": "x", "benchmark": 1}):
        for path in ("/flows", "/benchmarks"):
            expect_refused(await episodes.controller.post(path, body), 422)


async def test_int_033_a_turn_that_fails(episodes: Episodes) -> None:
    """Refused by its provider, a coder has failed; its flow says so, and not that it has handed nothing over.

    The model provider is a stand-in: the gateway holds the models, and refuses one.
    """
    async with flow_at_work(episodes) as flow:
        async with flow.turn("planner", 1) as turn:
            await plan_handed(turn, 335)
        async with flow.turn("coder", 1) as turn:
            await flow.rehearse(use("execute", command="true"))
            refused = Fault(kind="status", status=400, times=99, contains=flow.token)
            async with episodes.stack.gateway.client.fault(refused):
                await flow.let_go("coder")
                failed = await episodes.until(turn.episode_id, "failed")
                found = await _ended(flow, "failed", by="stage_ended")
    assert found.reason, f"expected a flow to say why it failed, found {found}"
    assert "handing" not in found.reason, (
        f"expected that the coder has failed, {failed['reason']!r}, found {found.reason!r}"
    )


async def test_int_033_a_restart_at_any_step(breakable: Episodes) -> None:
    """Controller, controller-worker and worker are killed between turns and within; the flow goes on.

    No turn begins twice, and nothing of a round is forgotten. The model provider is a stand-in: the gateway
    holds the models.
    """
    episodes = breakable
    stack = episodes.stack
    async with flow_at_work(episodes) as flow:
        async with flow.turn("planner", 1) as turn, stack.outage("controller-worker", "kill"):
            bundle = await plan_handed(turn, 334)
        async with flow.turn("coder", 1) as turn:
            await design_handed(turn, bundle, block_of(334, at="28, 0, 5"))
            async with stack.outage("worker", "kill"):
                pass
            async with stack.outage("controller", "kill"):
                # Its agent ends while nobody can be asked about it.
                await flow.let_go("coder")
        async with flow.turn("reviewer", 1) as turn, stack.outage("controller-worker", "kill"):
            await decided(turn.session, Decision.REJECTED, "Zu weit links.", paths=[_MODEL])
        async with flow.turn("coder", 2) as turn:
            async with stack.outage("worker", "kill"):
                pass
            told = await told_to(turn)
            assert "Zu weit links." in told, f"expected the comment after a restart, found {told}"
            design = await design_handed(turn, bundle, block_of(334))
        async with flow.turn("reviewer", 2) as turn:
            async with stack.outage("controller", "kill"):
                pass
            await decided(turn.session, Decision.APPROVED, paths=[_MODEL])
        found = await flow.until("completed")
    expect_same(design, found.handover_id, what="what the flow has come to")
    turns = [(role, number) for _, role, number in steps_of(found) if role]
    roles = ["planner", "coder", "reviewer", "coder", "reviewer"]
    expect_same(
        list(zip(roles, (1, 1, 1, 2, 2), strict=True)), turns, what="turns after every restart"
    )
    about = (await decisions(episodes.controller, flow_id=flow.id)).decisions
    kept = [each.decision for each in about]
    expect_same([Decision.REJECTED, Decision.APPROVED], kept, what="decisions after restarts")


async def test_int_033_a_turn_that_was_written_down_is_begun_once(breakable: Episodes) -> None:
    """Killed between the row of a turn and its workflow, the controller-worker begins that turn and no other.

    The model provider is a stand-in: the gateway holds the models.
    """
    episodes, stack = breakable, breakable.stack
    async with flow_at_work(episodes) as flow, Database(stack.access.database_url) as other:
        async with flow.turn("planner", 1) as turn:
            bundle = await plan_handed(turn, 339)
            await other.rows("begin")
            await other.rows("select 1 from flows where flow_id = %s for update", (flow.id,))
        await episodes.until(turn.episode_id, "completed")

        async def is_written() -> bool:
            return any(step[1] == "coder" for step in steps_of(await flow.get()))

        async def waits() -> bool:
            return bool(await stack.rows("select 1 from pg_locks where not granted"))

        async def begins() -> bool:
            return await waits() or await is_written()

        await eventually(begins, seconds=SOON_S, expected="the row of the coder's turn written")
        await stack.pause("temporal")
        try:
            await other.rows("rollback")
            await eventually(is_written, seconds=SOON_S, expected="the row of the coder's turn")
            await stack.kill("controller-worker")
        finally:
            await stack.resume("temporal")
            await stack.mend()
        async with flow.turn("coder", 1) as turn:
            await design_handed(turn, bundle, block_of(339))
        async with flow.turn("reviewer", 1) as turn:
            await decided(turn.session, Decision.APPROVED, paths=[_MODEL])
        found = await flow.until("completed")
    turns = [(role, number) for _, role, number in steps_of(found) if role]
    wanted = [("planner", 1), ("coder", 1), ("reviewer", 1)]
    expect_same(wanted, turns, what="turns, one of which was written down before a restart")
    listed = await episodes.controller.get("/episodes", params={"limit": "50"})
    mine = [row["role"] for row in listed.json()["episodes"] if flow.token in row["task"]]
    expect_same(["coder", "planner", "reviewer"], sorted(mine), what="episodes of the flow")


async def test_int_033_without_temporal(breakable: Episodes) -> None:
    """A flow that cannot be started has failed and says so; one under way fails when the outage lasts.

    Without a worker of Temporal's it is interrupted all the same. Nothing of these goes on, and new ones do. The model provider is a stand-in: the gateway holds
    the models.
    """
    episodes, stack = breakable, breakable.stack
    async with flow_at_work(episodes) as flow:
        async with flow.turn("planner", 1) as turn, stack.outage("temporal", "kill"):
            body = sent(FlowRequest(task="Nobody begins."))
            answer = await episodes.controller.post("/flows", body)
            expect_refused(answer, 503)
            refused = FlowRefused.model_validate_json(answer.body)
            expect_same("failed", refused.status.value, what="a flow that could not be started")
            found = await flow.until("failed")
            assert "Temporal" in found.reason, f"expected the outage as its reason, found {found}"
            await episodes.until(turn.episode_id, "failed")
        closed = await closed_workflow(stack, flow.workflow_id)
        assert closed.status != "completed", f"Temporal completes a flow that failed: {closed}"
        kept = await episodes.controller.get(f"/flows/{refused.flow_id}")
        steps = steps_of(Flow.model_validate_json(kept.body))
        wanted = [("submitted", None, None), ("failed", None, None)]
        expect_same(wanted, steps, what="steps of a flow that could not be started")
        expect_same(found, await flow.get(), what="a flow that failed, after the outage")
    async with flow_at_work(episodes) as flow:
        async with flow.turn("planner", 1), stack.outage("controller-worker", "kill"):
            answer = await episodes.controller.post(f"/flows/{flow.id}/interrupt")
            assert 202 == answer.status, f"expected an interruption to be taken, found {answer}"
            found = await flow.until("interrupted")
        expect_same(found, await flow.get(), what="an interrupted flow, when its worker is back")
    async with flow_at_work(episodes) as flow, flow.turn("planner", 1) as turn:
        await plan_handed(turn, 338)


async def test_int_033_two_flows_are_not_mixed_up(episodes: Episodes) -> None:
    """Two flows at once, turn by turn, have plans, designs and comments of their own.

    The model provider is a stand-in: the gateway holds the models.
    """
    numbers = (335, 336)
    async with (
        flow_at_work(episodes, seed=335) as one,
        flow_at_work(episodes, seed=336) as other,
    ):
        flows = dict(zip(numbers, (one, other), strict=True))
        designs: dict[int, str] = {}
        bundles = {}

        async def go(number: int) -> None:
            flow = flows[number]
            async with flow.turn("planner", 1) as turn:
                bundles[number] = await plan_handed(turn, number)
            async with flow.turn("coder", 1) as turn:
                script = block_of(number, at="28, 0, 5")
                await design_handed(turn, bundles[number], script)

        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(go, number)
        async with one.turn("reviewer", 1) as first, other.turn("reviewer", 1) as second:
            for number, turn in zip(numbers, (first, second), strict=True):
                comment = f"Nur für {number}."
                await decided(turn.session, Decision.REJECTED, comment, paths=[_MODEL])
        async with one.turn("coder", 2) as first, other.turn("coder", 2) as second:
            for number, turn in zip(numbers, (first, second), strict=True):
                told = await told_to(turn)
                assert f"Nur für {number}." in told, f"expected its own comment, found {told}"
                plan = (await turn.session.read(PLAN)).json()["content"]
                expect_same(bundles[number].plan, plan, what=f"the plan of flow {number}")
                script = block_of(number)
                designs[number] = await design_handed(turn, bundles[number], script)
        async with one.turn("reviewer", 2) as first, other.turn("reviewer", 2) as second:
            for turn in (first, second):
                await decided(turn.session, Decision.APPROVED, paths=[_MODEL])
        for number, flow in flows.items():
            found = await flow.until("completed")
            expect_same(designs[number], found.handover_id, what=f"what flow {number} comes to")
            expect_same(number, found.seed, what="the seed of a flow")


async def test_int_033_by_the_agents_own_tools(episodes: Episodes) -> None:
    """A whole flow whose agents do everything themselves: what they are offered is enough for it.

    The model provider is a stand-in: the gateway does the turns.
    """
    async with flow_at_work(episodes) as flow:
        async with flow.turn("planner", 1) as turn:
            made = [milled("block-337", 12_000, (42, 32, 12), units=100)]
            bundle = sound(turn.todo, number=337, made=made, units=100)
            writing = [
                use("fs_write", path=path, content=text) for path, text in bundle.files().items()
            ]
            await flow.rehearse(*writing, use("validate_costing_and_price"), use("submit"))
        async with flow.turn("coder", 1):
            script = block_of(337)
            written = use("fs_write", path=_MODEL, content=script)
            simulating = use("simulate", duration_s=0.1)
            await flow.rehearse(written, use("validate_and_price"), simulating, use("submit"))
        async with flow.turn("reviewer", 1):
            digest = {_MODEL: hashlib.sha256(script.encode()).hexdigest()}
            text = front(review(Decision.APPROVED, digest, comments=["Schön."]))
            reading = use("fs_read", path=_MODEL)
            await flow.rehearse(reading, use("fs_write", path=REVIEW, content=text), use("submit"))
        found = await flow.until("completed")
    (kept,) = found.decisions
    seen = [(each.path, each.sha256) for each in kept.evidence.files_checked]
    expect_same([*digest.items()], seen, what="evidence of a reviewer by its own tools")
    expect_same(found.handover_id, kept.reviewed_id, what="what was approved")
    for step in (each for each in found.transitions if each.role is not None):
        episode = await episodes.get(str(step.episode_id))
        tools = [each for each in episode["traces"] if each["kind"] == "tool"]
        failed = [each["name"] for each in tools if not each["ok"]]
        assert not failed, f"expected each call of the {step.role} carried out, failed: {failed}"
        assert tools, f"expected calls of the {step.role}, found {episode['traces']}"
