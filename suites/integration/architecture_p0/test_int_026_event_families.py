"""Every mandatory family of events comes from the work that causes it."""

from __future__ import annotations

import hashlib
import math

import pytest

from harness_core.doubles.turns import use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused
from suites.integration.scenes import BROKEN_SCENE, PART_SCRIPT

_PLAN = "# Plan\n\nA plate with a hole, milled from a sheet of 4 mm.\n"
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
        use("simulate", model="broken.xml", duration_s=0.5),
        use("simulate", model="model.py", duration_s=0.5),
    )
    reviewer = await episodes.run(
        new_token(),
        use("fs_write", path="review.md", content=_REVIEW),
        use("submit", kind="review", path="review.md", decision="approved"),
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
        assert expected == found & (always | mandatory)
    plans = [event["payload"] for event in calls(planned, "plan_submission")]
    assert [False, True] == [plan["accepted"] for plan in plans]
    assert plans[0]["reasons"], "a refused plan without a reason"
    assert hashlib.sha256((_PLAN + token).encode()).hexdigest() == plans[1]["sha256"]
    decisions = [event["payload"]["decision"] for event in calls(reviewed, "review_decision")]
    assert ["approved"] == decisions
    untidy = [event["payload"] for event in calls(coded, "lint_failure")]
    assert ["untidy.py"] == [failure["path"] for failure in untidy]
    assert {"F401", "F821"} == set(untidy[0]["codes"])
    checks = [event["payload"] for event in calls(coded, "manufacturability_check")]
    assert [[30.0, 20.0, 4.0]] == [check["size_mm"] for check in checks]
    assert 30 * 20 * 4 - math.pi * 9 * 4 == pytest.approx(checks[0]["volume_mm3"], abs=0.01)
    asked = [event["payload"] for event in calls(coded, "simulation_request")]
    results = [event["payload"] for event in calls(coded, "simulation_result")]
    assert [run["job_id"] for run in asked] == [run["job_id"] for run in results]
    assert [False, True] == [run["ok"] for run in results]
    assert "outcome" not in results[0], "a model that cannot be simulated has an outcome"
    assert 250 == results[1]["steps"]
    tools = [event["payload"]["tool"] for event in calls(coded, "tool_call")]
    used = ["fs_write"] * 3 + ["lint"] * 2 + ["analyze"] + ["simulate"] * 2
    assert used == tools[: len(used)]

    session = episodes.session(token)
    missing = await session.post("/benchmark/simulate", model="missing.xml", variant="v", seed=1)
    expect_refused(missing, 404)
    events = await session.events()
    assert ["tool_call"] == [event["kind"] for event in events], "a run that never was has an event"
    assert not events[0]["payload"]["ok"], "a refused call is recorded as carried out"
