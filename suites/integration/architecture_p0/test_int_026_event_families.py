"""Every mandatory family of events comes from the work that causes it."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pytest

from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused
from suites.integration.scenes import BROKEN_SCENE, PART_SCRIPT

_PLAN = "# Plan\n\nA plate with a hole, milled from a sheet of 4 mm.\n"
_DECISIONS = ("approved", "rejected", "confirm_plan_refusal", "reject_plan_refusal")
_REVIEW = "# Review\n\nI looked at model.py and at its simulation; both are sound.\n"


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_mandatory_families(episodes: Episodes) -> None:
    """A planner's, a coder's and a reviewer's run are recorded as what each did, and nothing else.

    Work that fails is recorded as failed: code that does not lint, a plan that is empty, a model that
    cannot be simulated. The model provider is a stand-in: the gateway does the turns.
    """
    planner = await episodes.run(
        token := new_token(),
        use("fs_write", path="plan.md", content=" \n"),
        use("submit", kind="plan", path="plan.md"),
        use("fs_write", path="plan.md", content=_PLAN + token),
        use("submit", kind="plan", path="plan.md"),
        role="planner",
    )
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
        use("fs_write", path="review.md", content=_REVIEW),
        use("submit", kind="review", path="review.md"),
        *(use("submit", kind="review", path="review.md", decision=each) for each in _DECISIONS),
        use("lint", path="review.md"),
        role="reviewer",
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
    assert plans[0]["reasons"], "a refused plan without a reason"
    assert not plans[1]["reasons"], f"an accepted plan with reasons against it: {plans[1]}"
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (" \n", _PLAN + token)]
    expect_same(digests, [plan["sha256"] for plan in plans], what="digests of the plans")
    reviews = [event["payload"] for event in calls(reviewed, "review_decision")]
    decided = [(review.get("decision"), review["accepted"]) for review in reviews]
    # One without a decision is none: it may have been refused before it was looked at.
    undecided = [(None, False)] if len(decided) > len(_DECISIONS) else []
    wanted = [*undecided, *((each, True) for each in _DECISIONS)]
    expect_same(wanted, decided, what="decisions of the reviews, and whether each is accepted")
    allowed = [
        event["payload"]["tool"]
        for event in calls(reviewed, "tool_call")
        if event["payload"]["tool"] == "lint"
    ]
    assert ["lint"] == allowed, f"expected a reviewer to lint once, found {allowed}"
    _is_what_was_coded(coded)

    session = episodes.session(token)
    missing = await session.post("/benchmark/simulate", model="missing.xml", variant="v", seed=1)
    expect_refused(missing, 404)
    events = await session.events()
    kinds = [event["kind"] for event in events]
    assert ["tool_call"] == kinds, f"a run that never was has an event: {kinds}"
    assert not events[0]["payload"]["ok"], "a refused call is recorded as carried out"


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
