"""INT-020: what moves as physics has it in closed form: a ball on a ramp, a pendulum."""

from __future__ import annotations

import itertools
import math
from typing import Final

import pytest
from workbench_contract.simulation import Outcome

from harness_core.doubles.http import HttpClient
from suites.integration.sessions import new_session
from suites.integration.simulating import (
    GRAVITY,
    goals,
    moved,
    simulated,
    track_of,
)

_RADIUS_M: Final = 0.018


def _ramp(angle_deg: float, *, turned_deg: float = 0.0, step_s: float = 0.001) -> str:
    """An endless ramp that goes down towards +x, turned about z."""
    return (
        f'<mujoco><option timestep="{step_s}" cone="elliptic"/><compiler eulerseq="zyx"/><worldbody>'
        f'<geom type="plane" size="5 5 .1" euler="{turned_deg} {angle_deg} 0"/></worldbody></mujoco>'
    )


@pytest.mark.covers("INT-020")
@pytest.mark.integration_p0
@pytest.mark.parametrize(("angle_deg", "away_mm"), [(6.0, 700.0), (17.0, 900.0)])
async def test_int_020_a_ball_on_a_ramp(
    worker: HttpClient, angle_deg: float, away_mm: float
) -> None:
    """A ball that rolls down a ramp needs the time and has the speed of the closed form, within 1 %.

    A solid ball that does not slip gains 5/7 of the slope's share of gravity. Upside down in x, and turned
    by a quarter, the same scene gives the same run, mirrored and turned.
    """
    session = new_session(worker)
    down, along = math.sin(math.radians(angle_deg)), math.cos(math.radians(angle_deg))
    gained = GRAVITY * down * 5 / 7
    way_m = (away_mm / 1000 - _RADIUS_M - _RADIUS_M * down) / along
    needed_s = math.sqrt(2 * way_m / gained)
    tracks = []
    for turned in (0.0, 180.0, 90.0):
        cos, sin = round(math.cos(math.radians(turned))), round(math.sin(math.radians(turned)))
        start = _turned([_RADIUS_M * down * 1000, 0, _RADIUS_M * along * 1000], cos, sin)
        corners = [
            _turned(corner, cos, sin)
            for corner in ([away_mm, -90.0, -900.0], [away_mm + 80, 90.0, 900.0])
        ]
        judge = goals(
            goal_zone={
                "min_mm": [min(pair) for pair in zip(*corners, strict=True)],
                "max_mm": [max(pair) for pair in zip(*corners, strict=True)],
            },
            simulation_bounds={"min_mm": [-2000] * 3, "max_mm": [2000] * 3},
            moved_object=moved(start_mm=start, size={"radius_mm": _RADIUS_M * 1000}),
        )
        found = await simulated(
            session,
            _ramp(angle_deg, turned_deg=turned),
            judged_by=judge,
            duration_s=5.0,
            trajectories=True,
        )
        run = found.runs[0]
        what = f"a ball on a ramp of {angle_deg}°, turned by {turned}°"

        assert Outcome.GOAL_HIT == run.outcome, f"{what}: expected it at the goal, found {run}"
        assert needed_s == pytest.approx(run.simulated_s, rel=0.01), (
            f"{what}: expected {needed_s:.4f} s, found {run.simulated_s} s"
        )
        track = await track_of(session, run)
        last_s = track.times_s[-1] - track.times_s[-2]
        speed = math.dist(track.place("load", -1), track.place("load", -2)) / last_s
        assert gained * needed_s == pytest.approx(speed, rel=0.01), (
            f"{what}: expected {gained * needed_s:.4f} m/s, found {speed:.4f} m/s"
        )
        places = [track.place("load", row) for row in range(0, len(track.times_s), 50)]
        tracks.append([_turned([x, y, z], cos, -sin) for x, y, z in places])
    for turned_track in tracks[1:]:
        for expected, back in zip(tracks[0], turned_track, strict=False):
            assert math.dist(expected, back) < 1e-5, (
                f"a turned scene gives the same run, turned: expected {expected}, found {back}"
            )


def _turned(place: list[float], cos: float, sin: float) -> list[float]:
    """About z."""
    x, y, z = place
    return [cos * x - sin * y, sin * x + cos * y, z]


def _pendulum(
    length_m: float, *, from_deg: float, damping: float = 0.0, step_s: float = 0.001
) -> str:
    """A point mass on a stiff arm without mass, let go from an angle to the vertical."""
    return (
        f'<mujoco><option timestep="{step_s}" integrator="RK4"/><worldbody>'
        f'<body name="arm" pos="0 0 1" euler="0 {from_deg} 0">'
        f'<joint type="hinge" axis="0 1 0" damping="{damping}"/>'
        f'<body name="bob" pos="0 0 {-length_m}"><inertial pos="0 0 0" mass="0.4" '
        'diaginertia="1e-9 1e-9 1e-9"/></body></body></worldbody></mujoco>'
    )


@pytest.mark.covers("INT-020")
@pytest.mark.integration_p0
@pytest.mark.parametrize(("length_m", "from_deg"), [(0.25, 4.0), (0.6, 75.0)])
async def test_int_020_a_pendulum(worker: HttpClient, length_m: float, from_deg: float) -> None:
    """A pendulum has the period of its length and swing, and no energy comes from nowhere.

    By the arithmetic-geometric mean, within 1 %. With a step half as long the run comes nearer to it.
    """
    session = new_session(worker)
    period_s = _period(length_m, math.radians(from_deg))
    errors = []
    for step_s in (0.004, 0.002):
        scene = _pendulum(length_m, from_deg=from_deg, step_s=step_s).replace("RK4", "Euler")
        found = await simulated(session, scene, duration_s=2.6 * period_s, trajectories=True)
        track = await track_of(session, found.runs[0])
        sideways = track.columns["bob.x_m"]
        crossings = [
            track.times_s[row] + step_s * here / (here - there)
            for row, (here, there) in enumerate(itertools.pairwise(sideways))
            if (here < 0) != (there < 0)
        ]
        measured_s = crossings[4] - crossings[2]

        assert period_s == pytest.approx(measured_s, rel=0.01), (
            f"a pendulum of {length_m} m from {from_deg}°: expected a period of {period_s:.4f} s, "
            f"found {measured_s:.4f} s"
        )
        at_period = min(
            range(len(sideways)), key=lambda row: abs(track.times_s[row] - 1.25 * period_s)
        )
        errors.append(abs(crossings[0] - period_s / 4))
        assert abs(sideways[at_period]) < 0.1 * length_m, (
            f"expected the bob below its hinge after five quarters, found it at {sideways[at_period]} m"
        )
    assert errors[1] < errors[0], (
        f"half the step comes nearer to the closed form: expected less than {errors[0]}, found {errors[1]}"
    )
    whole = 0.4 * GRAVITY * length_m * (1 - math.cos(math.radians(from_deg)))
    for damping in (0.0, 0.02):
        scene = _pendulum(length_m, from_deg=from_deg, damping=damping)
        energies = [
            (await simulated(session, scene, duration_s=share * period_s)).energy_j
            for share in (0.01, 0.2, 0.45, 0.8, 1.3)
        ]
        for before, after in itertools.pairwise(energies):
            assert after - before < 1e-6 * whole, (
                f"energy of a passive scene never grows: expected at most {before} J, found {after} J"
            )
        if damping:
            lost = energies[0] - energies[-1]
            assert lost > 0.05 * whole, f"a damped swing loses energy: expected that, lost {lost} J"


def _period(length_m: float, swing_rad: float) -> float:
    low, high = math.cos(swing_rad / 2), 1.0
    for _ in range(8):
        low, high = math.sqrt(low * high), (low + high) / 2
    return 2 * math.pi * math.sqrt(length_m / GRAVITY) / high
