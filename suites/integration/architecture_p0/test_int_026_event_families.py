"""Every mandatory family of events comes from the work that causes it."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Final

import pytest
import yaml
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.review import Review, ReviewEvidence, Seen

from harness_core.doubles.turns import Use, use
from suites.integration.bundles import ESTIMATE, OBJECTIVES, PLAN, TODO, sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.planners import planner_at_work
from suites.integration.refusals import expect_refused
from suites.integration.scenes import BROKEN_SCENE, PART_SCRIPT

_ON_A_DESIGN: Final = (Decision.APPROVED, Decision.REJECTED)


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_mandatory_families(episodes: Episodes) -> None:
    """A planner's, a coder's and a reviewer's run are recorded as what each did, and nothing else.

    Work that fails is recorded as failed: code that does not lint, a plan that is empty, a model that
    cannot be simulated, a review that rests on what was not read. The model provider is a stand-in: the gateway does the turns.
    """
    bundle = sound("", number=261)
    files = bundle.files()
    turns = [
        use("fs_write", path=PLAN, content=" \n"),
        use("submit"),
        *(use("fs_write", path=path, content=files[path]) for path in (PLAN, OBJECTIVES, ESTIMATE)),
        use("submit"),
    ]
    async with planner_at_work(episodes, *turns, number=261) as planning:
        await planning.leave({TODO: planning.sound().todo})
    planner = await episodes.get(planning.episode_id)
    handed = planner["handovers"]
    assert handed, f"expected the hand-over of a sound plan, found none: {planner}"
    coder = await episodes.run(
        new_token(),
        (
            use("fs_write", path="model.py", content=PART_SCRIPT),
            use("fs_write", path="untidy.py", content="import os\nprint(nothing)\n"),
            use("fs_write", path="broken.xml", content=BROKEN_SCENE),
        ),
        use("lint", path="model.py"),
        use("lint", path="untidy.py"),
        use("analyze", model="model.py", method="cnc"),
        use("analyze", model="model.py", method="print", max_size_mm=29.9),
        use("simulate", model="broken.xml", duration_s=0.5),
        use("simulate", model="model.py", duration_s=0.5),
    )
    reviewer = await episodes.run(
        new_token(),
        use("fs_write", path="review.md", content=_review(Decision.APPROVED, bundle.plan)),
        use("submit"),
        use("fs_read", path=PLAN),
        *(turn for each in Decision for turn in _written(each, bundle.plan)),
        use("lint", path="review.md"),
        role="reviewer",
        handover_id=handed[-1],
    )
    planned, coded, reviewed = [
        await episodes.events(episode["episode_id"]) for episode in (planner, coder, reviewer)
    ]

    families = [{event["kind"] for event in events} for events in (planned, coded, reviewed)]
    always = {"tool_call", "workflow_transition"}
    work = {"simulation_request", "simulation_result", "manufacturability_check", "lint_failure"}
    own = [always | {"plan_submission"}, always | work, always | {"review_decision"}]
    mandatory = {"plan_submission", "review_decision", *work}

    for expected, found in zip(own, families, strict=True):
        expect_same(
            sorted(expected), sorted(found & (always | mandatory)), what="families of events"
        )
    plans = [event["payload"] for event in calls(planned, "plan_submission")]
    accepted = [plan["accepted"] for plan in plans]
    expect_same([False, True], accepted, what="whether an empty and a sound plan are accepted")
    assert 1 == len(handed), f"expected the one hand-over of a sound plan, found {handed}"
    first = sorted({each["file"] for each in plans[0]["findings"]})
    expect_same([PLAN], first, what="what is missing of a plan that says nothing")
    assert not plans[1]["findings"], f"an accepted plan with findings against it: {plans[1]}"
    digests = [{each["path"]: each["sha256"] for each in plan["files"]} for plan in plans]
    expected = [hashlib.sha256(text.encode()).hexdigest() for text in (" \n", bundle.plan)]
    expect_same(expected, [each[PLAN] for each in digests], what="digests of the plans")
    reviews = [event["payload"] for event in calls(reviewed, "review_decision")]
    decided = [(review["decision"], review["accepted"]) for review in reviews]
    # Two decisions are on a design, two on a refusal of the plan, which this is not.
    wanted = [("approved", False), *((each, each in _ON_A_DESIGN) for each in Decision)]
    expect_same(wanted, decided, what="decisions of the reviews, and whether each is accepted")
    unread = [each["where"] for each in reviews[0]["findings"]]
    expect_same(["evidence.files_checked[0]"], unread, what="evidence that was not read before")
    allowed = [
        event["payload"]["tool"]
        for event in calls(reviewed, "tool_call")
        if event["payload"]["tool"] == "lint"
    ]
    assert ["lint"] == allowed, f"expected a reviewer to lint once, found {allowed}"
    _is_what_was_coded(coded)

    session = episodes.session(new_token())
    missing = await session.post("/benchmark/simulate", model="missing.xml", variant="v", seed=1)
    expect_refused(missing, 404)
    events = await session.events()
    kinds = [event["kind"] for event in events]
    assert ["tool_call"] == kinds, f"a run that never was has an event: {kinds}"
    assert not events[0]["payload"]["ok"], "a refused call is recorded as carried out"


def _review(decision: Decision, plan: str) -> str:
    """A review that rests on the plan, as it was handed over."""
    seen = Seen(path=PLAN, sha256=hashlib.sha256(plan.encode()).hexdigest())
    evidence = ReviewEvidence(images_viewed=[], videos_viewed=[], files_checked=[seen])
    review = Review(decision=decision, evidence=evidence, comments=["The flap is sound."])
    return f"---\n{yaml.safe_dump(review.model_dump(mode='json'))}---\n\n# Review\n"


def _written(decision: Decision, plan: str) -> tuple[Use, Use]:
    """The turns that write a review and hand it over."""
    written = use("fs_write", path="review.md", content=_review(decision, plan))
    return written, use("submit")


def _is_what_was_coded(coded: list[dict[str, Any]]) -> None:
    """What does not lint, the measures of the plate, and both simulations, as they were carried out."""
    untidy = [event["payload"] for event in calls(coded, "lint_failure")]
    paths = [failure["path"] for failure in untidy]
    expect_same(["untidy.py"], paths, what="files that do not lint")
    codes = sorted(set(untidy[0]["codes"]))
    expect_same(["F401", "F821"], codes, what="what does not lint in untidy.py")
    checks = [event["payload"] for event in calls(coded, "manufacturability_check")]
    expect_same(
        [("cnc", True, [30.0, 20.0, 4.0]), ("print", False, [30.0, 20.0, 4.0])],
        [(check["method"], check["manufacturable"], check["size_mm"]) for check in checks],
        what="methods, verdicts and sizes of the checks of a plate of 30 mm",
    )
    assert "29.9" in str(checks[1]["reasons"]), f"a plate too long without that reason: {checks[1]}"
    assert not checks[0]["reasons"], f"a plate that can be made with reasons: {checks[0]}"
    volume, found_volume = 30 * 20 * 4 - math.pi * 9 * 4, checks[0]["volume_mm3"]
    near = volume == pytest.approx(found_volume, abs=0.01)
    assert near, f"expected a volume of {volume} mm3, found {found_volume}"
    asked = [event["payload"] for event in calls(coded, "simulation_request")]
    results = [event["payload"] for event in calls(coded, "simulation_result")]
    jobs = [[run["job_id"] for run in runs] for runs in (asked, results)]
    expect_same(*jobs, what="jobs that were asked for beside those with a result")
    expect_same(
        ["broken.xml", "model.py"], [run["model"] for run in asked], what="models to be simulated"
    )
    expect_same(
        [False, True], [run["ok"] for run in results], what="whether the runs have a result"
    )
    assert "outcome" not in results[0], "a model that cannot be simulated has an outcome"
    assert results[0]["reason"], f"a model that cannot be simulated without a reason: {results[0]}"
    assert 250 == results[1]["steps"], f"expected half a second of 2 ms, found {results[1]}"
    tools = [
        (event["payload"]["tool"], event["payload"]["ok"]) for event in calls(coded, "tool_call")
    ]
    used = ["fs_write"] * 3 + ["lint"] * 2 + ["analyze"] * 2
    done = [*((tool, True) for tool in used), ("simulate", False), ("simulate", True)]
    expect_same(
        done, tools[: len(done)], what="calls of the coder, and whether they were carried out"
    )
