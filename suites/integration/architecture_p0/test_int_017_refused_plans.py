"""INT-017: a coder refuses a plan with proof, and the reviewer's decision says whose turn it is then."""

from __future__ import annotations

import re
from typing import Final

import pytest
import yaml
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.findings import Stage
from workbench_contract.review import PlanRefusal, ProofKind
from workbench_contract.simulation import Simulated

from suites.integration.bundles import PLAN, TODO, Bundle
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
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
from suites.integration.planners import expect_found
from suites.integration.reviews import REFUSAL, REVIEW, decided, front, refusal

pytestmark = [pytest.mark.covers("INT-017"), pytest.mark.integration_p0]

_MODEL: Final = "model.py"
_ASCII: Final = "no stock of this size."
_REASON: Final = f"Der Block für 2 $ ist zu schwer: 日本 😀: {_ASCII}"
#: Of a second refusal of the same plan.
_AGAIN: Final = "it tips over, whatever it is cut from."
#: How often a refusal may be confirmed, and how often rejected, before the flow fails.
_CONFIRMED: Final = 2
_REJECTED: Final = 4


async def _unproven(flow: FlowAtWork, turn: TurnAtWork, bundle: Bundle, price_id: str) -> None:
    """Refusals that are none are refused and named, and change nothing of the flow."""
    coder, before = coder_of(turn, bundle), await flow.get()
    real = {"kind": "price", "id": price_id}
    sound = {"reason": _REASON, "proof": [real]}
    invented = ({"kind": "price", "id": "x"}, {"kind": "simulation", "id": price_id})
    for name, value, stage in (
        ("no proof", {**sound, "proof": []}, Stage.VALID),
        ("no reason", {**sound, "reason": " - "}, Stage.VALID),
        ("no key for proof", {"reason": _REASON}, Stage.VALID),
        ("an unknown kind", {**sound, "proof": [{"kind": "feeling", "id": price_id}]}, Stage.VALID),
        ("the proof of nobody", {**sound, "proof": [{"kind": "price", "id": "x"}]}, Stage.AGREE),
        (
            "a price for a simulation",
            {**sound, "proof": [{"kind": "simulation", "id": price_id}]},
            Stage.AGREE,
        ),
        *(
            (f"a real proof and {other}", {**sound, "proof": proof}, Stage.AGREE)
            for other in invented
            for proof in ([real, other], [other, real])
        ),
    ):
        await turn.session.write(REFUSAL, front(value, below=""))
        expect_found(await coder.submit(), stage, {REFUSAL}, what=f"a refusal with {name}")
    several = front({**sound, "proof": [invented[0], real, invented[1]]}, below="")
    await turn.session.write(REFUSAL, several)
    answer = await coder.submit()
    what = "a refusal with a real proof between two that are invented"
    says = ["proof[0]", "proof[2]"]
    found = expect_found(answer, Stage.AGREE, {REFUSAL}, what=what, says=says)
    assert 2 == len(found), f"expected a finding for each proof of nobody, found {found}"
    await turn.session.write(REFUSAL, "I do not like this plan.\n")
    expect_found(await coder.submit(), Stage.VALID, {REFUSAL}, what="a refusal without its form")
    expect_same(before, await flow.get(), what="the flow after refusals that are none")
    episode = await flow.episodes.get(turn.episode_id)
    expect_same([], episode["handovers"], what="hand-overs of refusals that are none")


async def test_int_017_each_decision_goes_its_way(breakable: Episodes) -> None:
    """Rejected, a refusal returns to the coder, confirmed, it goes to the planner; each is told why.

    By price and by simulation, with restarts between; then the design of the new plan is rejected, made
    anew by the same plan, and approved. The model provider is a stand-in: the gateway holds the models.
    """
    episodes, stack = breakable, breakable.stack
    async with flow_at_work(episodes, seed=17) as flow:
        async with flow.turn("planner", 1) as turn:
            first, old_list = await plan_handed(turn, 171), turn.todo
        async with flow.turn("coder", 1) as turn:
            price_id = await price_of_the_impossible(turn, first, 171)
            await _unproven(flow, turn, first, price_id)
            one = await plan_refused(turn, first, _REASON, (ProofKind.PRICE, price_id))
        async with flow.turn("reviewer", 1) as turn, stack.outage("controller-worker", "kill"):
            rejecting = "Take the smaller stock: 44 mm, Größe S."
            await decided(turn.session, Decision.REJECT_PLAN_REFUSAL, rejecting, paths=[REFUSAL])
        async with flow.turn("coder", 2) as turn:
            await _was_told(turn, rejecting, _REASON, price_id)
            answer = await turn.session.read(REFUSAL)
            expect_same(404, answer.status, what="a refusal in the session of who was refused it")
            left = (await turn.session.read(_MODEL)).json()["content"]
            assert "70, 40, 60" in left, f"expected its design of round 1, found {left}"
            simulation = await _simulated(turn, first, 171)
            proof = (ProofKind.SIMULATION, simulation)
            two = await plan_refused(turn, first, _AGAIN, proof)
        async with flow.turn("reviewer", 2) as turn:
            confirming = "It cannot be done for 2 USD."
            told = await flow.hold_told("planner", _AGAIN)
            async with stack.outage("controller", "kill"):
                await decided(
                    turn.session, Decision.CONFIRM_PLAN_REFUSAL, confirming, paths=[REFUSAL]
                )
        async with flow.turn("planner", 2) as turn:
            await _was_told(turn, confirming, _AGAIN, simulation)
            await flow.was_told(told, _AGAIN)
            before = (await turn.session.read(PLAN)).json()["content"]
            expect_same(first.plan, before, what="the plan that its planner goes on from")
            assert _ids(old_list).isdisjoint(_ids(turn.todo)), f"an old list: {turn.todo}"
            second = await plan_handed(turn, 172)
        async with flow.turn("coder", 3) as turn:
            plan = (await turn.session.read(PLAN)).json()["content"]
            expect_same(second.plan, plan, what="the plan of round 3")
            ticked = (await turn.session.read(TODO)).json()["content"]
            expect_same(second.todo, ticked, what="the list of the new plan")
            third = await design_handed(turn, second, block_of(172))
        design = await _made_anew(flow, second)
        found = await flow.until("completed")
        prompts = await flow.prompts()
    expect_same(
        [
            ("submitted", None, None),
            ("taken_up", None, None),
            ("taken_up", "planner", 1),
            ("handed_over", "coder", 1),
            ("handed_over", "reviewer", 1),
            ("plan_refusal_rejected", "coder", 2),
            ("handed_over", "reviewer", 2),
            ("plan_refusal_confirmed", "planner", 2),
            ("handed_over", "coder", 3),
            ("handed_over", "reviewer", 3),
            ("rejected", "coder", 4),
            ("handed_over", "reviewer", 4),
            ("approved", None, None),
        ],
        steps_of(found),
        what="steps of the flow",
    )
    expect_same(design, found.handover_id, what="what the flow has come to")
    about = await decisions(episodes.controller, flow_id=flow.id)
    expect_same(
        [
            (Decision.REJECT_PLAN_REFUSAL, one),
            (Decision.CONFIRM_PLAN_REFUSAL, two),
            (Decision.REJECTED, third),
            (Decision.APPROVED, design),
        ],
        [(each.decision, each.reviewed_id) for each in about.decisions],
        what="decisions, and what each is about",
    )
    for words in (rejecting, confirming):
        assert any(words in prompt for prompt in prompts), f"expected {words!r} in a prompt"


async def _made_anew(flow: FlowAtWork, plan: Bundle) -> str:
    """The design of a second plan is rejected, made anew by that plan, and approved; its id."""
    async with flow.turn("reviewer", 3) as turn:
        await decided(turn.session, Decision.REJECTED, "Round its corners.", paths=[_MODEL])
    async with flow.turn("coder", 4) as turn:
        given = (await turn.session.read(PLAN)).json()["content"]
        expect_same(plan.plan, given, what="the plan of round 4, after a new plan's design")
        design = await design_handed(turn, plan, block_of(172))
    async with flow.turn("reviewer", 4) as turn:
        await decided(turn.session, Decision.APPROVED, paths=[_MODEL])
    return design


def _ids(text: str) -> set[str]:
    return set(re.findall(r"todo:(\w+)", text))


async def _was_told(turn: TurnAtWork, comment: str, reason: str, proof_id: str) -> None:
    """This refusal and its review lie in the session of who is asked once more, and no earlier ones."""
    said = " ".join((await told_to(turn, REVIEW)).split())
    assert comment in said, f"expected {comment!r} for the {turn.role}, found {said}"
    text = await told_to(turn, REFUSAL)
    why = PlanRefusal.model_validate(yaml.safe_load(text.split("---\n")[1]))
    found = (why.reason, [each.id for each in why.proof])
    expect_same((reason, [proof_id]), found, what=f"the refusal that the {turn.role} is told of")


async def _simulated(turn: TurnAtWork, bundle: Bundle, number: int) -> str:
    """The id of a simulation of a design that passes."""
    coder = coder_of(turn, bundle)
    judged = await coder.judged(block_of(number))
    assert judged.passed, f"expected the design to pass, found {judged.findings}"
    answer = await coder.simulate()
    assert 200 == answer.status, f"expected the design to be simulated, found {answer}"
    return Simulated.model_validate_json(answer.body).job_id


async def test_int_017_as_often_as_may_be(episodes: Episodes) -> None:
    """Confirmed or rejected, refusals have a bound each; at it the flow fails with that reason, the other goes on.

    What else is decided between two of them makes it neither nearer nor farther. Two flows at once: the
    proof of one is none in the other. The model provider is a stand-in: the gateway holds the models.
    """
    ways = {"confirmed": Decision.CONFIRM_PLAN_REFUSAL, "rejected": Decision.REJECT_PLAN_REFUSAL}
    async with flow_at_work(episodes) as one, flow_at_work(episodes) as two:
        flows = {"confirmed": (one, 1730), "rejected": (two, 1740)}
        bundles: dict[str, tuple[Bundle, int]] = {}
        for number in (1, 2):
            for way, (flow, first) in flows.items():
                if number == 1 or way == "confirmed":
                    async with flow.turn("planner", number) as turn:
                        planned = await plan_handed(turn, (first + number) // 2)
                        bundles[way] = planned, (first + number) // 2
            # The flow whose refusals are rejected has had a design rejected between them.
            later = number if number == 1 else number + 1
            async with one.turn("coder", number) as left, two.turn("coder", later) as right:
                turns = {"confirmed": left, "rejected": right}
                prices = {
                    way: await price_of_the_impossible(turn, *bundles[way])
                    for way, turn in turns.items()
                }
                for way, turn in turns.items():
                    bundle, _ = bundles[way]
                    await plan_refused(turn, bundle, _REASON, (ProofKind.PRICE, prices[way]))
                    (other,) = {*ways} - {way}
                    await turn.session.write(
                        REFUSAL, refusal(_REASON, (ProofKind.PRICE, prices[other]))
                    )
                    answer = await coder_of(turn, bundle).submit()
                    what = "a refusal with the proof of another flow"
                    expect_found(answer, Stage.AGREE, {REFUSAL}, what=what, says=["this episode"])
            for way, (flow, _) in flows.items():
                async with flow.turn("reviewer", number if flow is one else later) as turn:
                    comment = f"Nr. {number}, {way}"
                    await decided(turn.session, ways[way], comment, paths=[REFUSAL])
            if number == 1:
                await _design_rejected(two, 2, *bundles["rejected"])
        await _ends(one, "confirmed", _CONFIRMED)
        for number in range(3, _REJECTED + 1):
            async with two.turn("coder", number + 1) as turn:
                price_id = await price_of_the_impossible(turn, *bundles["rejected"])
                proof = (ProofKind.PRICE, price_id)
                await plan_refused(turn, bundles["rejected"][0], f"{_REASON} {number}", proof)
            async with two.turn("reviewer", number + 1) as turn:
                comment = f"Nr. {number}, rejected"
                await decided(turn.session, ways["rejected"], comment, paths=[REFUSAL])
        await _ends(two, "rejected", _REJECTED)


async def _ends(flow: FlowAtWork, way: str, number: int) -> None:
    """A flow whose refusals are used up fails, and says by which decision."""
    found = await flow.until("failed")
    for word in (f"was {way} {number} times", f"Nr. {number}, {way}"):
        assert word in found.reason, f"expected {word!r} as its reason, found {found.reason}"
    last = steps_of(found)[-1]
    expect_same(("rounds_used_up", None, None), last, what=f"the last step, {way}")
    expect_same(None, found.handover_id, what=f"what the flow has come to, {way}")


async def _design_rejected(flow: FlowAtWork, number: int, bundle: Bundle, block: int) -> None:
    """A round in which the coder builds what was planned, and the reviewer rejects that."""
    async with flow.turn("coder", number) as turn:
        await design_handed(turn, bundle, block_of(block))
    async with flow.turn("reviewer", number) as turn:
        await decided(turn.session, Decision.REJECTED, "Larger radii, please.", paths=[_MODEL])
