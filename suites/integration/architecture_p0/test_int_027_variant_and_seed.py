"""Every simulation says which variant it ran, and with which seed."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.doubles.turns import use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused
from suites.integration.scenes import BROKEN_SCENE, scene


@pytest.mark.covers("INT-027")
@pytest.mark.integration_p0
async def test_int_027_variant_and_seed_are_tracked(episodes: Episodes) -> None:
    """Response and stored events of each run carry its static variant and its runtime seed.

    A run that fails carries them too, and the seed is the one that physics used. The model provider
    is a stand-in: the gateway does the turns.
    """
    token = new_token()
    await episodes.rehearse(
        token,
        (
            use("fs_write", path="scene.xml", content=scene()),
            use("fs_write", path="broken.xml", content=BROKEN_SCENE),
        ),
        use("simulate", model="scene.xml", duration_s=0.2),
        use("simulate", model="scene.xml", duration_s=0.2, seed=43),
        use("simulate", model="broken.xml", duration_s=0.2, seed=44),
        episodes.waiting(),
    )
    variant = f"arm-{token}"
    accepted = await episodes.submit(token, variant=variant, seed=41)
    session = episodes.session(accepted["session_id"])
    await episodes.begun(accepted["session_id"])
    runs = []
    for number, (model, seed) in enumerate(
        (("scene.xml", 7), ("scene.xml", 7), ("scene.xml", 8), ("broken.xml", 9))
    ):
        body = {"model": model, "variant": f"{variant}-{number}", "seed": seed, "duration_s": 0.5}
        runs.append((body, await session.post("/benchmark/simulate", **body)))
    await episodes.release(accepted["session_id"])
    await episodes.until(accepted["episode_id"], "completed")
    events = await episodes.events(accepted["episode_id"])

    assert [200, 200, 200] == [answer.status for _, answer in runs[:3]]
    expect_refused(runs[3][1], 400, 409, 422)
    for body, answer in runs:
        tracked = _tracked(answer.json())

        assert (body["variant"], body["seed"]) == tracked, f"the answer to {body} carries {tracked}"
    first, again, other, _ = [answer.json().get("bodies") for _, answer in runs]
    assert first == again, "the same seed gave another run"
    assert first != other, "another seed gave the same run"
    expected = [(variant, 41), (variant, 43), (variant, 44)]
    expected += [(body["variant"], body["seed"]) for body, _ in runs]
    for kind in ("simulation_request", "simulation_result"):
        assert expected == [_tracked(event["payload"]) for event in calls(events, kind)], kind


def _tracked(run: dict[str, Any]) -> tuple[Any, Any]:
    return run.get("variant"), run.get("seed")
