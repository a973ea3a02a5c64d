"""All runs of a request, in a process that has run none of the session's code."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np

from workbench_contract.objectives import Control, Objectives
from workbench_contract.simulation import Body, SimulatedRun, Trajectory
from workbench_foundation import faults
from workbench_physics import randomization, runs, scene, statistics, trajectory
from workbench_physics.errors import SceneError
from workbench_physics.trajectory import Track

#: Of a scene without objectives: where its free bodies begin, sideways.
_JITTER_M = 0.02
_MOST_STEPS = 100_000_000
#: An answer has a place for each body of each run.
_MOST_PLACES = 20_000
_MOST_NUMBERS = 50_000_000


def simulate(
    xml: str,
    *,
    objectives: Objectives | None,
    variant: str,
    seed: int,
    count: int,
    duration_s: float,
    controls: dict[str, Control],
    kept_in: tuple[str, str] | None,
    as_one: bool = False,
    seen: Callable[[scene.Scene, SimulatedRun, Track], None] | None = None,
) -> dict[str, Any]:
    """Run a scene.

    Args:
        count: runs.
        kept_in: folder of the trajectories, and its path in the session; none leaves no files.
        as_one: without objectives the free bodies of a run begin elsewhere by the same way; each by its
            own, else.
        seen: is shown each run of which there is a trajectory.

    Returns:
        ``runs`` and ``aggregate``, as JSON.

    Raises:
        SceneError: it cannot be run.
    """
    # Else MuJoCo writes them to a file in the working folder, which is the session's.
    mujoco.set_mju_user_warning(_unwritten)
    moved = objectives.moved_object if objectives is not None else None
    scale = randomization.scale_of(moved, variant=variant) if moved is not None else 1.0
    ready = scene.prepared(scene.read(xml), objectives, controls, scale=scale)
    _bounded(ready, duration_s, count, recorded=kept_in is not None)
    done: list[SimulatedRun] = []
    seeds = list(statistics.seeds_from(seed, count))

    def ran(one: int) -> runs.Run:
        start = None
        if moved is not None:
            drawn = seed if faults.on("runs-alike") else one
            start = randomization.start_of(moved, variant=variant, seed=drawn)
        data = scene.begun(ready, start)
        if moved is None:
            _jitter(ready.model, data, one, as_one=as_one)
        return runs.run(ready, data, duration_s, recorded=kept_in is not None)

    for number, found in enumerate(_each(ran, seeds, at_once=kept_in is None)):
        kept = None
        if kept_in is not None:
            name = f"run-{number}.csv"
            digest = trajectory.write(f"{kept_in[0]}/{name}", ready, found.track)
            kept = Trajectory(path=f"{kept_in[1]}/{name}", sha256=digest)
        done.append(_told(ready, found, seeds[number], kept))
        if seen is not None and kept is not None:
            seen(ready, done[-1], found.track)
    together = statistics.aggregate(
        [each.outcome for each in done], has_goal=objectives is not None
    )
    return {
        "runs": [each.model_dump(mode="json") for each in done],
        "aggregate": together.model_dump(mode="json"),
    }


def _each(
    ran: Callable[[int], runs.Run], seeds: list[int], *, at_once: bool
) -> Iterator[runs.Run]:
    """Each run, in the order of the seeds.

    Args:
        at_once: as many as there are processors; else one after the other, since the track of one alone may
            fill the memory that there is.
    """
    threads = min(len(seeds), len(os.sched_getaffinity(0)))
    if not at_once or threads < 2:
        yield from map(ran, seeds)
        return
    if faults.on("runs-of-last-seed"):
        seeds = [seeds[-1]] * len(seeds)
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(ran, seeds)
        finally:
            # After a run that failed nobody asks for the others.
            pool.shutdown(wait=False, cancel_futures=True)


def _unwritten(_text: str) -> None:
    """A warning; what it means is read from the run's data."""


def _bounded(ready: scene.Scene, duration_s: float, count: int, *, recorded: bool) -> None:
    """Raises SceneError for more than is run in one go."""
    steps = runs.steps_of(ready, duration_s)
    if steps * count > _MOST_STEPS:
        detail = f"{count} runs of {steps} steps are more than {_MOST_STEPS} together"
        raise SceneError(f"{detail}. Ask for fewer runs, or less time")
    if len(ready.bodies) * count > _MOST_PLACES:
        detail = f"{count} runs of {len(ready.bodies)} bodies have more than {_MOST_PLACES} together"
        raise SceneError(f"{detail}. Ask for fewer runs")
    kept = ready.model.nsensordata + ready.model.nq + 1
    if recorded and steps * kept > _MOST_NUMBERS:
        raise SceneError(f"{steps} steps of this scene are more than is kept. Ask for less time")


def _jitter(model: Any, data: Any, seed: int, *, as_one: bool) -> None:
    drawn = np.random.default_rng(seed)
    moved = drawn.uniform(-_JITTER_M, _JITTER_M, size=2) if as_one else None
    for joint in range(model.njnt):
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            at = model.jnt_qposadr[joint]
            own = drawn.uniform(-_JITTER_M, _JITTER_M, size=2) if moved is None else moved
            data.qpos[at : at + 2] += own


def _told(
    ready: scene.Scene, found: runs.Run, seed: int, kept: Trajectory | None
) -> SimulatedRun:
    places = found.track.positions_m[-1].reshape(-1, 3)
    return SimulatedRun(
        seed=seed,
        outcome=found.outcome,
        reason=found.reason,
        steps=found.steps,
        simulated_s=round(found.simulated_s, 6),
        energy_j=_finite(found.energy_j),
        bodies=[
            Body(name=name, position_m=[_finite(value) for value in place])
            for name, place in zip(ready.bodies, places.tolist(), strict=True)
        ],
        goal_gap_mm=None if found.goal_gap_mm is None else _finite(found.goal_gap_mm),
        trajectory=kept,
    )


def _finite(value: float) -> float:
    """JSON has no infinity; what is not a number shows in the outcome."""
    return round(value, 9) if math.isfinite(value) else 0.0
