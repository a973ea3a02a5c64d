"""Simulations as a test asks for them: what judges a run, what came of it, and its track as numbers.

Lengths of objectives are millimetres, those of scenes and tracks metres; gravity is MuJoCo's own.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import trio
import yaml
from workbench_contract.objectives import Objectives
from workbench_contract.simulation import Simulated, SimulatedRun, SimulateRequest

from harness_core.base.groups import lone_error
from harness_core.doubles.http import Response
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
    """Write a scene and let it run.

    Args:
        session: that asks.
        scene: MJCF.
        judged_by: objectives, which are written to the session first.
        **asked: fields of the request.

    Raises:
        AssertionError: it was refused, or its answer is not of the contract's form.
    """
    path = str(asked.setdefault("model", "scene.xml"))
    await session.write(path, scene)
    answer = await simulate(session, judged_by=judged_by, **asked)

    assert 200 == answer.status, f"expected a run of {path}, found {answer}"
    found = Simulated.model_validate_json(answer.body)
    wanted = asked.get("runs", 1)
    assert wanted == len(found.runs), f"expected {wanted} runs, found {len(found.runs)}: {answer}"
    return found


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
    return Track(columns=columns, sha256=digest)
