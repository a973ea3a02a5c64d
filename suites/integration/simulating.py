"""Simulations as a test asks for them: what judges a run, what came of it, and its track as numbers.

Lengths of objectives are millimetres, those of scenes and tracks metres; gravity is MuJoCo's own.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import trio
import yaml
from workbench_contract.objectives import Objectives
from workbench_contract.simulation import (
    Ending,
    Outcome,
    Simulated,
    SimulatedRun,
    SimulateRequest,
)

from harness_core.base.groups import lone_error
from harness_core.doubles.http import Response
from suites.integration.comparing import expect_same
from suites.integration.sessions import Session

__all__ = [
    "EMPTY_SCENE",
    "GRAVITY",
    "Track",
    "at_once",
    "empty",
    "goals",
    "moved",
    "simulate",
    "simulated",
    "track_of",
]

T = TypeVar("T")

#: m/s², as MuJoCo has it where a scene names none.
GRAVITY: Final = 9.81

#: Of a scene that names none, in seconds.
_STEP_S: Final = 0.002

#: What is written of objectives into a session.
_FILE: Final = "objectives.yaml"


def empty(
    *, timestep_s: float = 0.001, gravity: tuple[float, float, float] = (0, 0, -GRAVITY)
) -> str:
    """A scene without anything: what is put there falls."""
    option = f'<option timestep="{timestep_s}" gravity="{" ".join(map(str, gravity))}"/>'
    return f"<mujoco>{option}<worldbody/></mujoco>"


EMPTY_SCENE: Final = empty()


def moved(shape: str = "sphere", **changed: Any) -> dict[str, Any]:
    """The object of objectives: a ball of 7 mm, 300 mm up, unless it is said otherwise."""
    sizes = {
        "sphere": {"radius_mm": 7},
        "box": {"x_mm": 9, "y_mm": 11, "z_mm": 14},
        "cylinder": {"radius_mm": 6, "height_mm": 17},
    }
    given = {"label": "load", "shape": shape, "size": sizes[shape], "start_mm": [0, 0, 300]}
    return given | changed


def goals(**changed: Any) -> dict[str, Any]:
    """Objectives whose object falls into a goal that is 100 to 120 mm up.

    Args:
        **changed: parts of the file that are otherwise.
    """
    given = {
        "goal_zone": {"min_mm": [-13, -13, 100], "max_mm": [13, 13, 120]},
        "forbid_zones": [],
        "build_zone": {"min_mm": [-50, -50, 0], "max_mm": [50, 50, 90]},
        "simulation_bounds": {"min_mm": [-400, -400, 0], "max_mm": [400, 400, 500]},
        "moved_object": moved(),
        "moving_parts": [],
        "constraints": {"max_unit_cost_usd": 41, "max_weight_g": 930},
        "randomization": {"variant": "first", "seeds": [3]},
    }
    made = given | changed
    # What is built here is of the contract's form, or the mistake is ours.
    Objectives.model_validate(made, strict=False)
    return made


async def at_once(*asked: Callable[[], Awaitable[T]]) -> list[T]:
    """What several that run side by side come to, in the order in which they are named.

    Raises:
        AssertionError: the first of them that failed, as it stands.
    """
    found: dict[int, T] = {}

    async def one(number: int, ask: Callable[[], Awaitable[T]]) -> None:
        found[number] = await ask()

    async with lone_error(), trio.open_nursery() as nursery:
        for number, ask in enumerate(asked):
            nursery.start_soon(one, number, ask)
    return [found[number] for number in range(len(asked))]


async def simulate(
    session: Session, *, judged_by: Mapping[str, Any] | None = None, **asked: Any
) -> Response:
    """Ask for a simulation; the answer, whatever it is.

    Args:
        session: that asks.
        judged_by: objectives, which are written to the session first.
        **asked: fields of the request.
    """
    if judged_by is not None:
        path = str(asked.setdefault("objectives", _FILE))
        await session.write(path, yaml.safe_dump(dict(judged_by), sort_keys=False))
    request = SimulateRequest.model_validate(asked)
    body = request.model_dump(mode="json", exclude_unset=True)
    return await session.post("/benchmark/simulate", **body)


async def simulated(
    session: Session, scene: str, *, judged_by: Mapping[str, Any] | None = None, **asked: Any
) -> Simulated:
    """Write a scene and let it run; what is answered must agree with itself and with what was asked for.

    Args:
        session: that asks.
        scene: MJCF.
        judged_by: objectives, which are written to the session first.
        **asked: fields of the request.

    Raises:
        AssertionError: it was refused, or its answer is not of the contract's form or contradicts itself.
    """
    path = str(asked.setdefault("model", "scene.xml"))
    await session.write(path, scene)
    answer = await simulate(session, judged_by=judged_by, **asked)

    assert 200 == answer.status, f"expected a run of {path}, found {answer}"
    found = Simulated.model_validate_json(answer.body)
    wanted = asked.get("runs", 1)
    assert wanted == len(found.runs), f"expected {wanted} runs, found {len(found.runs)}: {answer}"
    request = SimulateRequest.model_validate(asked)
    expect_same(
        (request.variant, request.seed),
        (found.variant, found.seed),
        what=f"variant and seed of the answer about {path}",
    )
    ending = {name: getattr(found, name) for name in Ending.model_fields}
    first = {name: getattr(found.runs[0], name) for name in Ending.model_fields}
    expect_same(first, ending, what=f"the ending that is told of all runs of {path}, the first's")
    assert found.queued_at <= found.started_at <= found.finished_at, (
        f"a run of {path} is asked for, begins and ends, in this order: found {found.queued_at}, "
        f"{found.started_at}, {found.finished_at}"
    )
    told = re.search(r'timestep="([^"]+)"', scene)
    step_s = float(told[1]) if told else _STEP_S
    goal = judged_by is not None or request.objectives is not None
    rated = found.aggregate.success_rate is not None and found.aggregate.interval is not None
    assert goal is rated, (
        f"a success rate and its interval are told where there is a goal: found {found.aggregate}"
    )
    for number, run in enumerate(found.runs):
        what = f"run {number} of {path}"
        _agrees(run, request, step_s=step_s, goal=goal, what=what)
        expect_same(
            request.trajectories, run.trajectory is not None, what=f"whether {what} left its track"
        )
    return found


def _agrees(
    run: SimulatedRun, request: SimulateRequest, *, step_s: float, goal: bool, what: str
) -> None:
    """One run is as long as its steps, within what was asked for, and as near to the goal as its outcome says."""
    off = abs(run.simulated_s - run.steps * step_s)
    assert off < step_s / 2, (
        f"{what}: expected {run.steps} steps to last {run.steps * step_s:g} s, found {run.simulated_s} s"
    )
    whole = round(request.duration_s / step_s)
    assert run.steps <= whole, f"{what}: expected at most {whole} steps, found {run.steps}"
    if run.outcome is Outcome.TIMEOUT:
        assert whole == run.steps, (
            f"{what}: a run that nothing ends lasts {request.duration_s} s, {whole} steps: "
            f"found {run.steps}"
        )
    assert run.reason, f"{what} does not say how it ended: {run}"
    assert goal is (run.goal_gap_mm is not None), (
        f"{what}: how near it came is told where there is a goal: found {run.goal_gap_mm}"
    )
    if run.goal_gap_mm is not None:
        may_be_there = run.outcome in {Outcome.GOAL_HIT, Outcome.FORBID_HIT, Outcome.INSTABILITY}
        assert run.goal_gap_mm == 0 or run.outcome is not Outcome.GOAL_HIT, (
            f"{what}: an object at its goal is 0 mm from there: found {run.goal_gap_mm} mm"
        )
        assert may_be_there or run.goal_gap_mm > 0, (
            f"{what}: an object that did not come to its goal stayed away from it: found {run}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The file of a run.

    Attributes:
        columns: name to numbers, a number per state; what motors did has one less than there are states.
        sha256: of the file's bytes.
    """

    columns: dict[str, list[float]]
    sha256: str

    @property
    def times_s(self) -> list[float]:
        """Of each state, the first at 0."""
        return self.columns["time_s"]

    def place(self, body: str, row: int) -> tuple[float, float, float]:
        """Where a body was, in metres."""
        x, y, z = (self.columns[f"{body}.{axis}_m"][row] for axis in "xyz")
        return x, y, z


async def track_of(session: Session, run: SimulatedRun) -> Track:
    """The track of a run that was asked for with trajectories.

    Raises:
        AssertionError: there is none, or it is not what the answer says of it.
    """
    assert run.trajectory is not None, f"a run that was to leave its track names none: {run}"
    answer = await session.read(run.trajectory.path)

    assert 200 == answer.status, f"expected the track {run.trajectory.path}, found {answer}"
    text = str(answer.json()["content"])
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert run.trajectory.sha256 == digest, (
        f"{run.trajectory.path}: expected the sha256 {run.trajectory.sha256} of the answer, found {digest}"
    )
    rows = list(csv.reader(io.StringIO(text)))
    names, lines = rows[0], rows[1:]
    assert run.steps + 1 == len(lines), (
        f"{run.trajectory.path}: expected a line for each of {run.steps} steps and one for the "
        f"beginning, found {len(lines)}"
    )
    columns = {
        name: [float(line[at]) for line in lines if line[at]] for at, name in enumerate(names)
    }
    track = Track(columns=columns, sha256=digest)
    ends = (track.times_s[0], track.times_s[-1])
    whole = ends[0] == 0 and abs(ends[1] - run.simulated_s) < 1e-5
    assert whole, (
        f"{run.trajectory.path}: expected times from 0 to {run.simulated_s} s, found {ends}"
    )
    for body in run.bodies:
        place = track.place(body.name, -1)
        off_m = max(abs(a - b) for a, b in zip(place, body.position_m, strict=True))
        assert off_m < 1e-6 * max(1.0, *map(abs, place)), (
            f"{run.trajectory.path}: expected {body.name!r} at last where the answer has it, "
            f"{body.position_m}, found {place}"
        )
    return track
