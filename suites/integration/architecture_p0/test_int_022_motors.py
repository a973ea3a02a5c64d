"""What a motor can do at most, and for how long: clamped forces, and overload on simulated time."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import pytest
from workbench_contract.simulation import Outcome, Simulated

from harness_core.doubles.http import HttpClient
from harness_core.doubles.turns import use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session, new_session
from suites.integration.simulating import at_once, goals, simulate, simulated, track_of

#: What is the limit, as the contract has it, and for how long until a motor is overloaded.
_LIMIT: Final = 0.99
_OVERLOAD_S: Final = 2.0


def _arms(*motors: tuple[str, float, float], stuck: bool = True, step_s: float = 0.002) -> str:
    """Wheels about upright axes, each with a motor.

    Args:
        motors: name, and least and greatest torque in N m.
        stuck: whether a stop keeps them from turning further than a hair.
        step_s: of the physics.
    """
    stop = 'limited="true" range="-0.05 0.05"' if stuck else 'damping="0.02"'
    bodies = "".join(
        f'<body name="wheel of {name}" pos="{number} 0 1">'
        f'<joint name="{name}" type="hinge" axis="0 0 1" {stop}/>'
        f'<geom type="cylinder" size=".05 .01" mass="0.8"/>'
        f'<body name="rim of {name}" pos=".05 0 0"/></body>'
        for number, (name, _, _) in enumerate(motors)
    )
    actuators = "".join(
        f'<motor name="{name}" joint="{name}" forcerange="{low} {high}"/>'
        for name, low, high in motors
    )
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="{step_s}"/><worldbody>{bodies}'
        f"</worldbody><actuator>{actuators}</actuator></mujoco>"
    )


def _steady(level: float) -> dict[str, Any]:
    return {"mode": "constant", "level": level}


def _pulse(level: float, *, rise_s: float, hold_s: float, fall_s: float = 0.01) -> dict[str, Any]:
    return {
        "mode": "trapezoidal",
        "level": level,
        "rise_s": rise_s,
        "hold_s": hold_s,
        "fall_s": fall_s,
    }


async def _run(session: Session, scene: str, **asked: Any) -> Simulated:
    return await simulated(session, scene, variant="motors", **{"duration_s": 3.0} | asked)


@pytest.mark.covers("INT-022")
@pytest.mark.integration_p0
@pytest.mark.parametrize("step_s", [0.002, 0.005])
async def test_int_022_two_seconds_at_the_limit(worker: HttpClient, step_s: float) -> None:
    """A motor at 99 % of its range or more for 2.0 s of simulated time ends the run, and no sooner.

    In either direction, also where the range is not the same both ways; the reason names motor and time.
    A motor without a range has nothing to be told a share of: it is refused.
    """
    session = new_session(worker)
    scene = _arms(("drive", -1.3, 1.3), step_s=step_s)
    for what, control, expected_s in (
        ("at its limit", _steady(1.0), 2.0),
        ("at 99.1 % of it", _steady(0.991), 2.0),
        ("at 98.9 % of it", _steady(0.989), None),
        ("at 99.1 % of it, the other way", _steady(-0.991), 2.0),
        ("at 98.9 % of it, the other way", _steady(-0.989), None),
        ("for too short a time", _pulse(1.0, rise_s=0.1, hold_s=1.9), None),
        ("after a rise of a second", _pulse(1.0, rise_s=1.0, hold_s=5.0), 2.99),
    ):
        found = await _run(session, scene, controls={"drive": control}, duration_s=3.5)

        if expected_s is None:
            assert Outcome.TIMEOUT == found.outcome, (
                f"a motor {what}: expected no overload, found {found.outcome}: {found.reason}"
            )
            continue
        _overloaded(found, what=f"a motor {what}", motor="drive", at_s=expected_s, step_s=step_s)
    boundless = scene.replace(' forcerange="-1.3 1.3"', "")
    await session.write("boundless.xml", boundless)
    answer = await simulate(session, model="boundless.xml", controls={"drive": _steady(0.5)})
    expect_refused(answer, 409, 422, says="drive")
    uneven = _arms(("drive", -0.7, 1.3), step_s=step_s)
    found = await _run(session, uneven, controls={"drive": _steady(-1.0)}, duration_s=3.5)
    _overloaded(
        found, what="a motor that can do less one way", motor="drive", at_s=2.0, step_s=step_s
    )
    servo = scene.replace(
        '<motor name="drive" joint="drive" forcerange="-1.3 1.3"/>',
        '<position name="drive" joint="drive" kp="5" kv="0.1" forcerange="-1.3 1.3"/>',
    )
    held = {"mode": "hold", "position": {"deg": 40}}
    found = await _run(session, servo, controls={"drive": held}, duration_s=3.5)
    _overloaded(
        found, what="a servo that does not get there", motor="drive", at_s=2.0, step_s=step_s
    )
    dip = [(0, 40), (1.8 - step_s, 40), (1.8, 0), (1.8 + step_s, 40), (4, 40)]
    paused = {"mode": "waypoint", "waypoints": [{"at_s": at, "deg": deg} for at, deg in dip]}
    found = await _run(session, servo, controls={"drive": paused}, duration_s=3.5)
    assert Outcome.TIMEOUT == found.outcome, (
        f"a servo that pauses for a step after 1.8 s: expected no overload in 3.5 s, found {found.reason}"
    )
    for duration_s, outcome in (
        (_OVERLOAD_S - step_s, Outcome.TIMEOUT),
        (_OVERLOAD_S + step_s, Outcome.MOTOR_OVERLOAD),
    ):
        found = await _run(session, scene, controls={"drive": _steady(1.0)}, duration_s=duration_s)
        assert outcome == found.outcome, (
            f"a run of {duration_s} s at the limit: expected {outcome}, found {found.outcome}"
        )


def _overloaded(found: Simulated, *, what: str, motor: str, at_s: float, step_s: float) -> None:
    assert Outcome.MOTOR_OVERLOAD == found.outcome, (
        f"{what}: expected an overload after {at_s} s, found {found.outcome}: {found.reason}"
    )
    assert abs(found.simulated_s - at_s) <= 2.5 * step_s, (
        f"{what}: expected the overload at {at_s} s of simulated time, found {found.simulated_s} s"
    )
    assert motor in found.reason, (
        f"{what}: expected {motor!r} in the reason, found {found.reason!r}"
    )
    times = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", found.reason)]
    assert any(abs(time_s - at_s) <= 3 * step_s for time_s in times), (
        f"{what}: expected the time {at_s} s in the reason, found {found.reason!r}"
    )


@pytest.mark.covers("INT-022")
@pytest.mark.integration_p0
async def test_int_022_a_pause_starts_it_anew(worker: HttpClient) -> None:
    """Peaks at the limit with rests between are no failure, however many; of two motors the right one is named.

    A motor that rested is overloaded 2.0 s after it came back to its limit, and not sooner.
    """
    session = new_session(worker)
    scene = _arms(("left", -2, 2), ("right", -5, 5))
    rests = {
        "mode": "sinusoidal",
        "level": 1.0,
        "period_s": 24.0,
        "phase_deg": 90.0,
    }
    # At 99 % or more for asin(0.99) around each crest: 1.08 s of a period of 24 s, twice that in all.
    found = await _run(session, scene, controls={"left": rests}, duration_s=30.0)
    assert Outcome.TIMEOUT == found.outcome, (
        f"crests of {24 * math.acos(_LIMIT) / math.pi:.2f} s at the limit: expected no overload, "
        f"found {found.outcome} after {found.simulated_s} s: {found.reason}"
    )
    longer = rests | {"period_s": 60.0}
    width_s = 60.0 * math.acos(_LIMIT) / math.pi
    found = await _run(session, scene, controls={"right": longer}, duration_s=40.0)
    # It begins on the crest: half of it is over after 1.35 s, the next one begins at half a period.
    begins_s = 30.0 - width_s / 2
    _overloaded(
        found,
        what=f"a motor whose crests of {width_s:.2f} s come after a rest",
        motor="right",
        at_s=begins_s + _OVERLOAD_S,
        step_s=0.002,
    )
    both = {"left": _pulse(0.5, rise_s=0.1, hold_s=9.0), "right": _steady(-1.0)}
    found = await _run(session, scene, controls=both)
    _overloaded(found, what="one of two motors", motor="right", at_s=2.0, step_s=0.002)
    later = {
        "left": _pulse(1.0, rise_s=0.5, hold_s=9.0),
        "right": _pulse(1.0, rise_s=0.1, hold_s=1.8),
    }
    found = await _run(session, scene, controls=later)
    _overloaded(found, what="a motor beside one that rests", motor="left", at_s=2.495, step_s=0.002)


@pytest.mark.covers("INT-022")
@pytest.mark.integration_p0
async def test_int_022_forces_are_clamped(worker: HttpClient) -> None:
    """A motor never exerts more than its range, whatever it is told; below that it does as it is told.

    A wheel comes to the steady speed of its torque over its damping, by the exponential of its inertia.
    Two sessions at once have motors of their own.
    """
    session, other = new_session(worker), new_session(worker)
    servo = _arms(("servo", -0.3, 0.8), stuck=False).replace(
        '<motor name="servo" joint="servo" forcerange="-0.3 0.8"/>',
        '<position name="servo" joint="servo" kp="60" kv="1" forcerange="-0.3 0.8"/>',
    )
    told = {"mode": "waypoint", "waypoints": [{"at_s": 0, "deg": 200}, {"at_s": 1, "deg": -300}]}
    wheel = _arms(("axle", -0.4, 0.4), stuck=False, step_s=0.001)
    asked: dict[str, Any] = {"duration_s": 1.5, "trajectories": True}
    of_servo, of_wheel = await at_once(
        lambda: _run(session, servo, controls={"servo": told}, seed=5, **asked),
        lambda: _run(other, wheel, controls={"axle": _steady(0.35)}, seed=6, **asked),
    )
    forces = (await track_of(session, of_servo.runs[0])).columns["servo.force"]
    low, high = min(forces), max(forces)
    assert -0.3 <= low <= high <= 0.8, (
        f"forces of a servo within -0.3 and 0.8 N m: found {low} to {high}"
    )
    assert (-0.3, 0.8) == pytest.approx((low, high)), (
        f"a servo far from its place does all it can, both ways: found {low} to {high} N m"
    )
    track = await track_of(other, of_wheel.runs[0])
    torque, damping, inertia = 0.35 * 0.4, 0.02, 0.8 * 0.05**2 / 2
    wrong = [force for force in track.columns["axle.force"] if abs(force - torque) > 1e-9]
    assert not wrong, f"a motor told 35 % of 0.4 N m exerts {torque} N m: found {wrong[:3]}"
    turned = 0.0
    places = [track.place("rim of axle", row) for row in range(len(track.times_s))]
    for row, time_s in enumerate(track.times_s[1:], start=1):
        (x0, y0, _), (x1, y1, _) = places[row - 1], places[row]
        turned += math.atan2(x0 * y1 - y0 * x1, x0 * x1 + y0 * y1)
        fall_s = inertia / damping
        angle = torque / damping * (time_s - fall_s * (1 - math.exp(-time_s / fall_s)))
        assert abs(turned - angle) <= 0.01 * angle + 0.01, (
            f"a damped wheel after {time_s:.3f} s: expected {angle:.4f} rad, found {turned:.4f} rad"
        )


@pytest.mark.covers("INT-022")
@pytest.mark.integration_p0
async def test_int_022_overload_is_on_record(episodes: Episodes) -> None:
    """An overload is an outcome in answer, event and sums, not a success; a goal before it is one.

    Each of several runs is judged by itself. The model provider is a stand-in: the gateway does the turns.
    """
    token = new_token()
    far = goals(
        goal_zone={"min_mm": [300, 300, 100], "max_mm": [320, 320, 120]},
        simulation_bounds={"min_mm": [-400, -400, -40_000], "max_mm": [1400, 400, 2000]},
        moving_parts=[
            {"name": "lift", "type": "motor", "dof": "rotate_z", "control": _steady(1.0)},
        ],
    )
    await episodes.rehearse(token, use("fs_write", path="n.txt", content="n"), episodes.waiting())
    accepted = await episodes.submit(token, seed=1)
    session = episodes.session(accepted["session_id"])
    await episodes.begun(accepted["session_id"])
    scene = _arms(("lift", -1, 1))
    over = await simulated(session, scene, judged_by=far, runs=3, seed=15, duration_s=2.5)
    soon = await simulated(
        session, scene, judged_by=far | {"goal_zone": goals()["goal_zone"]}, duration_s=2.5
    )
    await episodes.release(accepted["session_id"])
    await episodes.until(accepted["episode_id"], "completed")
    events = calls(await episodes.events(accepted["episode_id"]), "simulation_result")

    counts = over.aggregate.counts
    assert (3, 0) == (counts[Outcome.MOTOR_OVERLOAD], over.aggregate.success_rate), (
        f"three runs whose motor is overloaded: expected none of them a success, found {over.aggregate}"
    )
    lengths = [run.steps for run in over.runs]
    assert 1 == len(set(lengths)), (
        f"each run's motor is at its limit from its own beginning: expected one length, found {lengths}"
    )
    assert Outcome.GOAL_HIT == soon.outcome, (
        f"a goal before the overload: expected it, found {soon}"
    )
    told = json.dumps(events[0]["payload"])
    untold = [run.seed for run in over.runs if not re.search(rf"\b{run.seed}\b", told)]
    assert not untold, f"an event names the seed of each of its runs: {untold} are not in {told}"
    outcomes = [event["payload"]["outcome"] for event in events]
    assert ["motor_overload", "goal_hit"] == outcomes, (
        f"stored outcomes of two simulations: expected motor_overload, goal_hit, found {outcomes}"
    )
    assert "lift" in events[0]["payload"]["reason"], (
        f"an overload names its motor: found {events[0]}"
    )
