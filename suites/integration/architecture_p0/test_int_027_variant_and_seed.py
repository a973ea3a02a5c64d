"""Every simulation says which variant it ran, and with which seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
import trio

from harness_core.doubles.http import HttpClient, Response
from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused
from suites.integration.scenes import BROKEN_SCENE, EXPLODING_SCENE, FLYING_SCENE, scene
from suites.integration.sessions import new_session
from suites.integration.simulating import EMPTY_SCENE, goals, moved, simulated

#: Seeds that differ in their lowest and in their highest bits alone, both ends included.
_SEEDS: Final = (0, 1, 7, 7 + 2**16, 7 + 2**30, 2**31 - 1)

#: The least and the greatest: 0 is a seed as any other.
_ENDS: Final = (_SEEDS[0], _SEEDS[-1])

#: As many as may be asked for at once.
_MOST_RUNS: Final = 100

#: What a scene is simulated for, in seconds: no round number of steps, in none of them.
_RUN_S: Final = 0.932

#: File → what is in it, the names of its bodies, and how such a run ends; no two are alike.
_SCENES: Final = {
    "first.xml": (scene(boxes=1, name="erste"), ["erste0"], "timeout"),
    "second.xml": (
        scene(boxes=3, name="b", timestep_s=0.004, gap_m=0.3),
        ["b0", "b1", "b2"],
        "timeout",
    ),
    "flying.xml": (FLYING_SCENE, ["rocket"], "out_of_bounds"),
    "exploding.xml": (EXPLODING_SCENE, ["one", "two"], "instability"),
}


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
        *(use("simulate", model="scene.xml", duration_s=0.2, seed=seed) for seed in _ENDS),
        episodes.waiting(),
    )
    variant = f"arm-{token}"
    accepted = await episodes.submit(token, variant=variant, seed=41)
    session = episodes.session(accepted["session_id"])
    await episodes.begun(accepted["session_id"])
    asked = [("scene.xml", 7), *(("scene.xml", seed) for seed in _SEEDS), ("broken.xml", 9)]
    runs = []
    for number, (model, seed) in enumerate(asked):
        body = {"model": model, "variant": f"{variant}-{number}", "seed": seed, "duration_s": 0.5}
        runs.append((body, await session.post("/benchmark/simulate", **body)))
    await episodes.release(accepted["session_id"])
    await episodes.until(accepted["episode_id"], "completed")
    events = await episodes.events(accepted["episode_id"])

    for body, answer in runs[:-1]:
        assert 200 == answer.status, f"expected the run {body} carried out, found {answer}"
    expect_refused(runs[-1][1], 400, 409, 422)
    for body, answer in runs:
        tracked = _tracked(answer.json())

        assert (body["variant"], body["seed"]) == tracked, f"the answer to {body} carries {tracked}"
    found = [(body["seed"], answer.json()["bodies"]) for body, answer in runs[:-1]]
    for seed, bodies in found:
        for other, others in found:
            same = bodies == others
            assert same or seed != other, f"the same seed {seed} gave another run: {bodies, others}"
            assert seed == other or not same, f"other seeds, {seed} and {other}, gave the same run"
    expected = [(variant, seed) for seed in (41, 43, 44, *_ENDS)]
    expected += [(body["variant"], body["seed"]) for body, _ in runs]
    for kind in ("simulation_request", "seed_variant", "simulation_result"):
        recorded = [_tracked(event["payload"]) for event in calls(events, kind)]
        expect_same(expected, recorded, what=f"variants and seeds of the events {kind}")


@pytest.mark.covers("INT-027")
@pytest.mark.integration_p0
async def test_int_027_each_of_several_runs_is_on_record(worker: HttpClient) -> None:
    """The event of a request for several runs has the seed of each, as the answer has it, with how that one ended."""
    session = new_session(worker)
    wide = moved(runtime_jitter={"start_mm": [30, 30, 5]})
    found = await simulated(
        session,
        EMPTY_SCENE,
        judged_by=goals(moved_object=wide),
        runs=_MOST_RUNS,
        seed=27,
        duration_s=0.3,
    )
    seeds = {run.seed for run in found.runs}
    assert _MOST_RUNS == len(seeds), (
        f"expected a seed of its own for each of {_MOST_RUNS} runs, found {found.runs}"
    )
    [event] = calls(await session.events(), "simulation_result")
    told = [row for row in _rows(event["payload"]) if "outcome" in row]
    for run in found.runs:
        ended = {"seed": run.seed, "outcome": run.outcome.value, "steps": run.steps}
        same = [row for row in told if ended == {key: row.get(key) for key in ended}]
        assert same, f"expected {ended} in the event of its simulation, found {event['payload']}"


def _rows(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping within a value, itself among them."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _rows(each)


@pytest.mark.covers("INT-027")
@pytest.mark.integration_p0
async def test_int_027_each_run_is_of_its_own_scene(episodes: Episodes) -> None:
    """Runs that are asked for at once answer with the bodies, the steps and the end of their own model.

    So do their events. Seeds and times that no run can have are refused: 422.
    """
    session = episodes.session(new_token())
    for path, (content, _, _) in _SCENES.items():
        await session.write(path, content)
    answers: dict[str, Response] = {}

    async def run(path: str, number: int) -> None:
        answers[path] = await session.post(
            "/benchmark/simulate",
            model=path,
            variant=f"of {path}",
            seed=50 + number,
            duration_s=_RUN_S,
        )

    async with trio.open_nursery() as nursery:
        for number, path in enumerate(_SCENES):
            nursery.start_soon(run, path, number)
    record = await session.events()
    for number, (path, (_, names, outcome)) in enumerate(_SCENES.items()):
        assert 200 == answers[path].status, f"expected a run of {path}, found {answers[path]}"
        found = answers[path].json()
        expect_same(
            (f"of {path}", 50 + number), _tracked(found), what=f"variant and seed of {path}"
        )
        bodies = [body["name"] for body in found["bodies"]]
        expect_same(names, bodies, what=f"bodies of {path}")
        assert outcome == found["outcome"], f"expected {path} to end by {outcome}, found {found}"
        assert found["reason"], f"a run of {path} does not say how it ended: {found}"
        if outcome == "timeout":
            steps = 233 if path == "second.xml" else 466
            assert steps == found["steps"], f"expected {steps} steps of {path}, found {found}"
            _has_fallen(path, found["bodies"])
        else:
            assert found["simulated_s"] < _RUN_S, f"{path} ended by {outcome}, and ran on: {found}"
        for kind in ("simulation_request", "simulation_result"):
            events = [
                event["payload"]
                for event in calls(record, kind)
                if event["payload"]["job_id"] == found["job_id"]
            ]
            assert 1 == len(events), f"expected one event {kind} of {path}, found {events}"
            same = {k: found[k] for k in events[0] if k in found and not k.endswith("_at")}
            told = {key: events[0][key] for key in same}
            expect_same(same, told, what=f"the answer about {path} beside its event {kind}")
    for wrong in (
        {"seed": -1},
        {"seed": 2**31},
        {"seed": 1.5},
        {"duration_s": 0},
        {"duration_s": -1},
        {"variant": ""},
    ):
        body = {"model": "first.xml", "variant": "refused", "seed": 1, "duration_s": 0.1} | wrong
        expect_refused(await session.malformed("/benchmark/simulate", **body), 400, 422)
    refused = [event for event in await session.events() if "refused" in str(event["payload"])]
    assert not refused, f"runs that were refused as malformed are recorded as asked for: {refused}"


def _has_fallen(path: str, bodies: list[dict[str, Any]]) -> None:
    """Boxes of 5 cm rest on the floor, in a stack, each higher than the one below."""
    heights = [body["position_m"][2] for body in bodies]

    assert 0.03 < heights[0] < 0.08, f"expected the lowest box of {path} on the floor: {bodies}"
    assert heights == sorted(heights), f"expected the boxes of {path} one above another: {bodies}"


def _tracked(run: dict[str, Any]) -> tuple[Any, Any]:
    return run.get("variant"), run.get("seed")
