"""Controller functions, by what the file of a run shows of each and by where its joint went."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any, Final

import pytest
from workbench_contract.simulation import Simulated

from harness_core.doubles.http import HttpClient
from suites.integration.refusals import expect_refused
from suites.integration.sessions import new_session
from suites.integration.simulating import Track, at_once, goals, simulate, simulated, track_of

_STEP_S: Final = 0.002
#: Of a slide that carries a hanging mass, told a level: what a full level pushes with, newtons.
_FORCE: Final = 0.6
_MASS_KG: Final = 0.5


def expected(control: dict[str, Any], time_s: float) -> float:
    """What a motor is told at a time, by the words of its function; a small model, apart from the product's.

    Levels are shares, positions degrees or millimetres.
    """
    return _FUNCTIONS[control["mode"]](control, time_s)


def _sinusoid(control: dict[str, Any], time_s: float) -> float:
    turn = time_s / control["period_s"] + control.get("phase_deg", 0.0) / 360
    return float(control["level"] * math.sin(2 * math.pi * turn))


def _square(control: dict[str, Any], time_s: float) -> float:
    into = math.fmod(time_s + 1e-9, control["period_s"]) / control["period_s"]
    return float(control["level"] if into < control.get("duty", 0.5) else -control["level"])


def _trapezoid(control: dict[str, Any], time_s: float) -> float:
    rise, hold, fall = control["rise_s"], control["hold_s"], control["fall_s"]
    share = min(time_s / rise, 1.0, (rise + hold + fall - time_s) / fall)
    return float(control["level"] * max(share, 0.0))


def _swung(control: dict[str, Any], time_s: float) -> float:
    low, high = _value(control["low"]), _value(control["high"])
    return low + (high - low) * (1 + math.sin(2 * math.pi * time_s / control["period_s"])) / 2


def _on_the_way(control: dict[str, Any], time_s: float) -> float:
    points = [(each["at_s"], _value(each)) for each in control["waypoints"]]
    for (from_s, begin), (to_s, end) in itertools.pairwise(points):
        if from_s <= time_s <= to_s:
            return begin + (end - begin) * (time_s - from_s) / (to_s - from_s)
    return points[0][1] if time_s < points[0][0] else points[-1][1]


def _value(position: dict[str, Any]) -> float:
    return float(position["deg"] if "deg" in position else position["mm"])


_FUNCTIONS: Final[dict[str, Callable[[dict[str, Any], float], float]]] = {
    "constant": lambda control, _: float(control["level"]),
    "sinusoidal": _sinusoid,
    "square": _square,
    "trapezoidal": _trapezoid,
    "hold": lambda control, _: _value(control["position"]),
    "oscillate": _swung,
    "waypoint": _on_the_way,
}


def _levels(draw: random.Random) -> list[dict[str, Any]]:
    """Functions that say how much to push, none like another."""

    def level() -> float:
        return round(draw.choice((-1, 1)) * draw.uniform(0.05, 0.95), 3)

    made = [{"mode": "constant", "level": level()} for _ in range(3)]
    made += [
        {
            "mode": "sinusoidal",
            "level": level(),
            "period_s": round(draw.uniform(0.1, 3), 3),
            "phase_deg": round(draw.uniform(-400, 400), 1),
        }
        for _ in range(4)
    ]
    made.append({"mode": "sinusoidal", "level": level(), "period_s": 0.61})
    made += [
        {
            "mode": "square",
            "level": level(),
            "period_s": round(draw.uniform(0.05, 1.7), 2),
            "duty": round(draw.uniform(0.1, 0.9), 2),
        }
        for _ in range(4)
    ]
    made.append({"mode": "square", "level": level(), "period_s": 0.3})
    made += [
        {
            "mode": "trapezoidal",
            "level": level(),
            "rise_s": round(draw.uniform(0.05, 0.6), 3),
            "hold_s": round(draw.uniform(0.05, 0.9), 3),
            "fall_s": round(draw.uniform(0.05, 0.7), 3),
        }
        for _ in range(4)
    ]
    return made


def _positions(draw: random.Random, unit: str, reach: float) -> list[dict[str, Any]]:
    """Functions that say where to be, in degrees or millimetres."""

    def place() -> dict[str, float]:
        return {unit: round(draw.uniform(-reach, reach), 2)}

    made: list[dict[str, Any]] = [{"mode": "hold", "position": place()} for _ in range(2)]
    for _ in range(3):
        times = sorted({round(draw.uniform(0.1, 1.9), 2) for _ in range(draw.randint(1, 4))})
        made.append({"mode": "waypoint", "waypoints": [{"at_s": at, **place()} for at in times]})
    made += [
        {
            "mode": "oscillate",
            "low": {unit: -reach / 3},
            "high": place() | {unit: round(reach * draw.uniform(0.1, 1), 2)},
            "period_s": round(draw.uniform(0.8, 2.5), 2),
        }
        for _ in range(2)
    ]
    return made


def _scene(levels: int, slides: int, hinges: int) -> str:
    """Motors along and about x, each on a body of its own, side by side; nothing pulls at them."""
    bodies, actuators = [], []
    for number in range(levels + slides):
        name = f"push-{number}" if number < levels else f"slide-{number - levels}"
        bodies.append(
            f'<body name="{name} body" pos="0 {number / 10} 0"><joint name="{name}" type="slide" axis="1 0 0"/>'
            f'<geom type="sphere" size=".01" mass="{_MASS_KG}" contype="0" conaffinity="0"/></body>'
        )
        actuators.append(
            f'<motor name="{name}" joint="{name}" forcerange="-{_FORCE} {_FORCE}"/>'
            if number < levels
            else f'<position name="{name}" joint="{name}" kp="4000" kv="80" forcerange="-9e3 9e3"/>'
        )
    for number in range(hinges):
        name = f"turn-{number}"
        bodies.append(
            f'<body name="{name} wheel" pos="0 {-0.3 - number / 10} 0"><joint name="{name}" type="hinge" '
            f'axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>'
            f'<body name="{name} tip" pos="0 .08 0"/></body>'
        )
        actuators.append(
            f'<position name="{name}" joint="{name}" kp="80" kv="1.6" forcerange="-9e3 9e3"/>'
        )
    return (
        f'<mujoco><option timestep="{_STEP_S}" gravity="0 0 0"/><worldbody>{"".join(bodies)}'
        f"</worldbody><actuator>{''.join(actuators)}</actuator></mujoco>"
    )


@pytest.mark.covers("INT-038")
@pytest.mark.integration_p1
async def test_int_038_every_function_as_it_says(worker: HttpClient) -> None:
    """The file of each run shows at every step what each motor was told, by its own function.

    A level pushes with its share of the motor's force, and what is pushed moves by the integral of it;
    a position is reached. Two sessions at once have controls of their own.
    """
    draws = [random.Random(f"controls {number}") for number in (1, 2)]
    sides = [
        (_levels(draw), _positions(draw, "mm", 180.0), _positions(draw, "deg", 150.0))
        for draw in draws
    ]
    given = [
        {
            f"{name}-{at}": control
            for name, controls in zip(("push", "slide", "turn"), side, strict=True)
            for at, control in enumerate(controls)
        }
        for side in sides
    ]

    async def run(number: int) -> tuple[Simulated, list[Track]]:
        session = new_session(worker)
        answer = await simulated(
            session,
            _scene(*map(len, sides[number])),
            controls=given[number],
            duration_s=2.0,
            runs=2,
            trajectories=True,
        )
        return answer, [await track_of(session, each) for each in answer.runs]

    found = await at_once(lambda: run(0), lambda: run(1))
    for number, (answer, (track, again)) in enumerate(found):
        assert 1000 == answer.steps, (
            f"expected a run of 1000 steps, found {answer.outcome} {answer}"
        )
        for name, control in given[number].items():
            _as_told(name, control, track)
            _as_told(name, control, again)
            if name.startswith("push"):
                _has_pushed(name, control, track)
            else:
                _is_there(name, control, track)


def _as_told(name: str, control: dict[str, Any], track: Track) -> None:
    for time_s, command in zip(track.times_s, track.columns[f"{name}.command"], strict=False):
        wanted = expected(control, time_s)

        assert abs(wanted - command) < 1e-6 * max(1.0, abs(wanted)), (
            f"{name}, told {control}: expected the command {wanted} at {time_s} s, found {command}"
        )


def _has_pushed(name: str, control: dict[str, Any], track: Track) -> None:
    """A free mass: its speed is the sum of the pushes."""
    speed = place = 0.0
    for row, time_s in enumerate(track.times_s[:-1]):
        push = _FORCE * expected(control, time_s)
        force = track.columns[f"{name}.force"][row]
        assert abs(push - force) < 1e-6, (
            f"{name}, told {control}: expected {push} N at {time_s} s, found {force} N"
        )
        speed += push / _MASS_KG * _STEP_S
        place += speed * _STEP_S
        there = track.place(f"{name} body", row + 1)[0]
        assert abs(place - there) < 1e-6, (
            f"{name}, told {control}: expected its mass at {place} m after {time_s} s, found {there} m"
        )


def _is_there(name: str, control: dict[str, Any], track: Track) -> None:
    """A servo comes after what it is told; where that stands still, it is there."""
    wanted = expected(control, track.times_s[-1])
    still = all(
        abs(expected(control, track.times_s[-1] - ago) - wanted) < 1e-9 for ago in (0.1, 0.25)
    )
    slack = 0.02 if still else 0.35
    if name.startswith("slide"):
        x = track.place(f"{name} body", -1)[0] * 1000
        reach = 180.0
    else:
        _, y0, _ = track.place(f"{name} wheel", -1)
        _, y, z = track.place(f"{name} tip", -1)
        x = math.degrees(math.atan2(z, y - y0))
        reach = 150.0
    assert abs(wanted - x) <= slack * reach, (
        f"{name}, told {control}: expected it near {wanted} at the end, found it at {x}"
    )


def _swing(unit: str, low: float, high: float) -> dict[str, Any]:
    return {"mode": "oscillate", "low": {unit: low}, "high": {unit: high}, "period_s": 1.0}


@pytest.mark.covers("INT-038")
@pytest.mark.integration_p1
async def test_int_038_what_is_no_control_is_refused(worker: HttpClient) -> None:
    """Unknown functions, parameters out of range or missing, and motors that there are not, are refused.

    So is a position for a motor that takes a level, and the other way round, another control for a motor
    that the objectives drive, and a scene whose parts move otherwise than its objectives say; afterwards a
    sound request is carried out.
    """
    session = new_session(worker)
    await session.write("scene.xml", _scene(1, 1, 1))
    steady = {"mode": "constant", "level": 0.5}
    for wrong in (
        {"mode": "sawtooth", "level": 0.5},
        {"mode": "Constant", "level": 0.5},
        {"level": 0.5},
        {"mode": "constant"},
        {"mode": "constant", "level": 1.01},
        {"mode": "constant", "level": -1.01},
        {"mode": "constant", "level": "0.5"},
        {"mode": "constant", "level": True},
        {"mode": "constant", "level": 0.5, "gain": 2},
        {"mode": "sinusoidal", "level": 0.5},
        {"mode": "sinusoidal", "level": 0.5, "period_s": 0},
        {"mode": "sinusoidal", "level": 0.5, "period_s": -1},
        {"mode": "square", "level": 0.5, "period_s": 1, "duty": 0},
        {"mode": "square", "level": 0.5, "period_s": 1, "duty": 1},
        {"mode": "trapezoidal", "level": 0.5, "rise_s": -0.1, "hold_s": 1, "fall_s": 1},
        {"mode": "trapezoidal", "level": 0.5, "rise_s": 1, "hold_s": 1},
        {"mode": "waypoint", "waypoints": []},
        {"mode": "waypoint", "waypoints": [{"at_s": -1, "mm": 3}]},
        {"mode": "oscillate", "low": {"deg": 1}, "high": {"deg": 2}},
        None,
        "constant",
    ):
        answer = await session.malformed(
            "/benchmark/simulate", model="scene.xml", controls={"push-0": wrong}, duration_s=0.1
        )
        expect_refused(answer, 400, 422)
    for name, control, says in (
        ("push-9", steady, "push-9"),
        ("push-0", {"mode": "hold", "position": {"mm": 3}}, "push-0"),
        ("slide-0", steady, "slide-0"),
        ("slide-0", {"mode": "hold", "position": {"deg": 3}}, "slide-0"),
        ("turn-0", {"mode": "hold", "position": {"mm": 3}}, "turn-0"),
        ("slide-0", _swing("mm", 5, 5), "slide-0"),
        ("turn-0", {"mode": "hold", "position": {}}, "turn-0|position"),
        ("turn-0", {"mode": "hold", "position": {"deg": 3, "mm": 3}}, "turn-0|position"),
        (
            "turn-0",
            {"mode": "waypoint", "waypoints": [{"at_s": 1, "deg": 3}, {"at_s": 1, "deg": 4}]},
            "turn-0|waypoint",
        ),
    ):
        answer = await simulate(
            session, model="scene.xml", controls={name: control}, duration_s=0.1
        )
        expect_refused(answer, 400, 409, 422, says=says)
    driven = goals(
        moving_parts=[{"name": "slide-0", "type": "motor", "dof": "slide_x", "control": _HELD}]
    )
    answer = await simulate(
        session,
        judged_by=driven,
        model="scene.xml",
        controls={"slide-0": {"mode": "hold", "position": {"mm": 5}}},
        duration_s=0.1,
    )
    expect_refused(answer, 400, 403, 409, 422, says="slide-0")
    for name, dof in _OTHERWISE:
        part = {"name": name, "type": "passive", "dof": dof}
        answer = await simulate(
            session, judged_by=goals(moving_parts=[part]), model="scene.xml", duration_s=0.1
        )
        expect_refused(answer, 409, 422, says=name)
    found = await simulated(
        session,
        _scene(1, 1, 1),
        judged_by=driven,
        controls={"push-0": steady},
        duration_s=0.2,
        trajectories=True,
    )
    track = await track_of(session, found.runs[0])
    for name, control in (("slide-0", _HELD), ("push-0", steady)):
        _as_told(name, control, track)
    silent = set(track.columns["turn-0.command"])
    assert {0.0} == silent, f"a motor that is told nothing rests: expected 0 alone, found {silent}"


#: What objectives say that moves in a scene, and how, where it moves otherwise, or not at all.
_OTHERWISE: Final = (
    ("slide-0", "slide_y"),
    ("slide-0", "slide_z"),
    ("slide-0", "rotate_x"),
    ("turn-0", "rotate_y"),
    ("turn-0", "rotate_z"),
    ("turn-0", "slide_x"),
    ("nobody", "slide_x"),
)

_HELD: Final = {"mode": "hold", "position": {"mm": 42.5}}
