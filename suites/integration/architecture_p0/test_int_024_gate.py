"""INT-024: the gate of a planner and its own tool find what validation finds."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
import yaml
from workbench_contract.findings import Finding
from workbench_contract.handover import GEOMETRY, SubmissionRefused

from harness_core.doubles.http import Response
from harness_core.doubles.turns import use
from suites.integration.bundles import OBJECTIVES, changed
from suites.integration.comparing import expect_same
from suites.integration.environments import planned
from suites.integration.episodes import Episodes, new_token
from suites.integration.planners import planner_at_work
from suites.integration.sessions import Session
from suites.integration.validating import (
    expect_pairs,
    leave_benchmark,
    objectives_with,
    script_of,
    validated_by,
)

pytestmark = [pytest.mark.covers("INT-024"), pytest.mark.integration_p0]


#: Objectives that are wrong in one way, or in several.
_MALFORMED: Final[dict[str, dict[str, Any]]] = {
    "a goal out of bounds": {"goal_zone.max_mm.0": 900},
    "a ball that meets a pit by its jitter": {
        "forbid_zones.0": {"min_mm": [18.5, -10, 30], "max_mm": [50, 10, 50]}
    },
    "a ball that starts in the goal": {"moved_object.start_mm": [90, 0, 10]},
    "several mistakes": {
        "goal_zone.colour": "red",
        "moving_parts.1.dof": "none",
        "randomization.seeds": [],
        "constraints.max_weight_g": "heavy",
    },
    "no number": {"simulation_bounds.min_mm.0": float("nan")},
}


async def test_int_024_findings_are_those_of_the_gate(episodes: Episodes) -> None:
    """Objectives that are wrong have the findings that a planner's gate has, all of them; so has an empty file.

    A build zone without room is a warning of both. The model provider is a stand-in: the gateway holds the
    planner's model.
    """
    async with planner_at_work(episodes, number=241, purpose="benchmark") as planner:
        session, bundle = planner.session, planner.sound()
        await planner.leave(planned(bundle.files()))
        await leave_benchmark(session, script=script_of({"rock": ((-40, -40, -9), (-30, -30, -5))}))
        for name, changes in _MALFORMED.items():
            objectives = bundle.objectives
            for path, value in changes.items():
                objectives = changed(objectives, path, value)
            await leave_benchmark(session, objectives=objectives)
            await _alike(session, await planner.submit(), what=f"objectives with {name}")
        for name, text in (
            ("no text", " \n"),
            ("no YAML", "goal_zone: [1,\n"),
            ("a list", "- a\n"),
        ):
            await session.write(OBJECTIVES, text)
            await _alike(session, await planner.submit(), what=f"objectives with {name}")
        full = changed(bundle.objectives, "build_zone.max_mm", [70, 20, 30])
        pit = {"min_mm": [0, -20, 0], "max_mm": [70, 20, 30]}
        await leave_benchmark(session, objectives=changed(full, "forbid_zones.0", pit))
        accepted = await planner.submit()
        assert 200 == accepted.status, f"expected a warning alone, found {accepted}"
        found = await validated_by(session)
        assert found.valid, f"expected a warning alone, found {found}"
        warned = [each.model_dump(mode="json") for each in found.warnings]
        assert warned, f"expected a warning of the build zone, found {found}"
        expect_same(accepted.json()["warnings"], warned, what="warnings of gate and validation")


async def _alike(session: Session, submitted: Response, *, what: str) -> None:
    """Assert that both routes have the same findings, and some."""
    assert 422 == submitted.status, f"expected {what} to be refused by the gate, found {submitted}"
    gate = SubmissionRefused.model_validate_json(submitted.body).findings
    found = await validated_by(session)
    assert not found.valid, f"expected {what} to be no benchmark, found {found}"
    fields = set(Finding.model_fields)
    told = [each.model_dump(include=fields) for each in found.findings]
    expect_same(
        [each.model_dump() for each in gate], told, what=f"findings of gate and validation: {what}"
    )


async def test_int_024_an_agent_is_told_the_same(episodes: Episodes) -> None:
    """The agent's tool finds what the API finds, by the episode's seed or by its own, and recovers when it mends.

    The model provider is a stand-in: the gateway does the turns.
    """
    token = new_token()
    wide = objectives_with(static_randomization={"start_mm": [30, 2, 1]})
    plate = script_of({f"plate-{token}": ((12, -60, -20), (12.5, 60, 90))})
    mended = script_of({f"plate-{token}": ((12, 60, -20), (12.5, 90, 90))})
    asked: dict[str, Any] = {"model": GEOMETRY, "objectives": OBJECTIVES, "samples": 150}
    await episodes.rehearse(
        token,
        (
            use("fs_write", path=GEOMETRY, content=plate),
            use("fs_write", path=OBJECTIVES, content=yaml.safe_dump(wide, sort_keys=False)),
        ),
        use("validate", **asked),
        use("validate", **asked, seed=2424),
        use("fs_write", path=GEOMETRY, content=mended),
        use("validate", **asked),
        use("fs_write", path=GEOMETRY, content=plate),
        episodes.waiting(),
    )
    accepted = await episodes.submit(token, seed=42)
    session = episodes.session(accepted["session_id"])
    await episodes.begun(accepted["session_id"])
    found = [await validated_by(session, samples=150, seed=seed) for seed in (42, 2424)]
    await episodes.release(accepted["session_id"])
    episode = await episodes.until(accepted["episode_id"], "completed")
    traces = [
        each["detail"]["result"]
        for each in episode["traces"]
        if each["kind"] == "tool" and each["name"] == "validate"
    ]
    assert 3 == len(traces), f"expected three validations of the agent, found {traces}"
    for seed, own, told in zip((42, 2424), found, traces, strict=False):
        expect_pairs(own, [("crate", f"plate-{token}")], what=f"what the API finds by seed {seed}")
        (each,) = own.findings
        sentences = [json.dumps(each.found, ensure_ascii=plain)[1:-1] for plain in (True, False)]
        assert any(sentence in told for sentence in sentences), (
            f"expected the agent to be told {each.found!r} by seed {seed}, found {told}"
        )
        assert f"plate-{token}" in told, f"expected the agent to be told of the plate, found {told}"
    valid = json.loads(traces[2])
    expect_same((True, 42), (valid["valid"], valid["sampling"]["seed"]), what="verdict once mended")
