"""Runs against closed forms, and each way to end beside the neighbour that just does not."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from pydantic import TypeAdapter

from workbench_contract.objectives import Control, Objectives
from workbench_contract.simulation import Outcome
from workbench_physics import statistics
from workbench_physics.commands import commanded
from workbench_physics.errors import SceneError
from workbench_physics.simulate import simulate

_EMPTY = '<mujoco><option timestep="0.001"/><worldbody/></mujoco>'
_CONTROL = TypeAdapter(Control)
_G = 9.81
#: Two boxes that fall onto a floor, one onto the other.
_STACK = (
    '<mujoco><worldbody><geom type="plane" size="5 5 .1"/>'
    '<body pos="0 0 .1"><freejoint/><geom type="box" size=".05 .05 .05"/></body>'
    '<body pos=".02 0 .22"><freejoint/><geom type="box" size=".05 .05 .05"/></body>'
    "</worldbody></mujoco>"
)


def _objectives(**changed: Any) -> Objectives:
    """A ball of 5 mm that begins at 300 mm, a goal 100 to 120 mm high below it."""
    value = {
        "goal_zone": {"min_mm": [-10, -10, 100], "max_mm": [10, 10, 120]},
        "forbid_zones": [],
        "build_zone": {"min_mm": [-50, -50, 0], "max_mm": [50, 50, 90]},
        "simulation_bounds": {"min_mm": [-200, -200, 0], "max_mm": [200, 200, 400]},
        "moved_object": {
            "label": "ball",
            "shape": "sphere",
            "size": {"radius_mm": 5},
            "start_mm": [0, 0, 300],
        },
        "moving_parts": [],
        "constraints": {"max_unit_cost_usd": 50, "max_weight_g": 1200},
        "randomization": {"variant": "v", "seeds": [1]},
    }
    return Objectives.model_validate(value | changed, strict=False)


def _run(xml: str = _EMPTY, **asked: Any) -> dict[str, Any]:
    given = {
        "objectives": None,
        "variant": "v",
        "seed": 1,
        "count": 1,
        "duration_s": 1.0,
        "controls": {},
        "kept_in": None,
    }
    return simulate(xml, **(given | asked))


def _moved(**changed: Any) -> dict[str, Any]:
    return {
        "label": "ball",
        "shape": "sphere",
        "size": {"radius_mm": 5},
        "start_mm": [0, 0, 300],
    } | changed


def test_falls_into_the_goal_when_its_surface_is_there_and_not_its_centre() -> None:
    one = _run(objectives=_objectives())["runs"][0]
    fallen_s = math.sqrt(2 * (0.300 - 0.005 - 0.120) / _G)

    assert one["outcome"] == "goal_hit"
    assert one["simulated_s"] == pytest.approx(fallen_s, abs=0.0025)
    assert one["goal_gap_mm"] == 0


@pytest.mark.parametrize(
    ("shape", "size", "half_mm"),
    [
        ("sphere", {"radius_mm": 5}, 5),
        ("box", {"x_mm": 8, "y_mm": 9, "z_mm": 10}, 4),
        ("cylinder", {"radius_mm": 6, "height_mm": 7}, 6),
    ],
)
@pytest.mark.parametrize("beside_mm", [-0.1, 0.1])
def test_a_goal_missed_by_a_tenth_of_a_millimetre_is_missed(
    shape: str, size: dict[str, float], half_mm: float, beside_mm: float
) -> None:
    moved = _moved(shape=shape, size=size, start_mm=[-10 - half_mm - beside_mm, 0, 300])
    one = _run(objectives=_objectives(moved_object=moved))["runs"][0]

    assert one["outcome"] == ("goal_hit" if beside_mm < 0 else "out_of_bounds")
    if beside_mm > 0:
        assert one["goal_gap_mm"] == pytest.approx(beside_mm, abs=0.01)


def test_a_forbid_zone_wins_over_the_goal_in_one_step() -> None:
    zone = {"name": "pit", "min_mm": [-10, -10, 100], "max_mm": [10, 10, 120]}
    one = _run(objectives=_objectives(forbid_zones=[zone]))["runs"][0]

    assert one["outcome"] == "forbid_hit"
    assert "pit" in one["reason"]


def test_a_forbid_zone_beyond_the_goal_is_not_reached() -> None:
    zone = {"name": "pit", "min_mm": [-10, -10, 50], "max_mm": [10, 10, 115]}
    one = _run(objectives=_objectives(forbid_zones=[zone]))["runs"][0]

    assert one["outcome"] == "goal_hit"


@pytest.mark.parametrize(("floor_mm", "outcome"), [(-0.2, "out_of_bounds"), (2.0, "timeout")])
def test_leaves_the_bounds_with_its_geometry(floor_mm: float, outcome: str) -> None:
    xml = (
        '<mujoco><worldbody><geom type="box" size=".1 .1 .01" '
        f'pos="0 0 {floor_mm / 1000 - 0.01}"/></worldbody></mujoco>'
    )
    goal = {"min_mm": [100, 100, 100], "max_mm": [120, 120, 120]}
    moved = _moved(start_mm=[0, 0, 5.0 + floor_mm + (0.25 if floor_mm < 0 else 0.1)])
    one = _run(xml, objectives=_objectives(goal_zone=goal, moved_object=moved))["runs"][0]

    assert one["outcome"] == outcome


@pytest.mark.parametrize(
    ("start_mm", "least_s", "most_s"),
    [([0, 0, 3.6], 0.003, 0.008), ([195, 0, 300], 0.0, 0.0), ([193.9, 0, 3.6], 0.003, 0.008)],
)
def test_a_cylinder_leaves_with_its_end_or_its_side(
    start_mm: list[float], least_s: float, most_s: float
) -> None:
    moved = _moved(shape="cylinder", size={"radius_mm": 6, "height_mm": 7}, start_mm=start_mm)
    one = _run(objectives=_objectives(moved_object=moved))["runs"][0]

    assert one["outcome"] == "out_of_bounds"
    assert least_s <= one["simulated_s"] <= most_s


def test_each_line_of_a_file_is_of_its_own_time(tmp_path: Path) -> None:
    goal = _objectives(goal_zone={"min_mm": [90, 90, 0], "max_mm": [99, 99, 9]})
    _run(objectives=goal, kept_in=(str(tmp_path), "a"))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "run-0.csv").read_text())))

    assert len(rows) > 200
    for step, row in enumerate(rows):
        fallen_m = _G * 0.001**2 * step * (step + 1) / 2
        assert float(row["time_s"]) == pytest.approx(step * 0.001, abs=1e-9)
        assert float(row["ball.z_m"]) == pytest.approx(0.3 - fallen_m, abs=1e-9)


_HINGE = (
    '<mujoco><option timestep="0.002"/><worldbody><body name="arm" pos="0 0 1">'
    '<joint name="shaft" type="hinge" axis="0 1 0" {joint}/>'
    '<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".01"/></body></worldbody>'
    '<actuator><motor name="shaft" joint="shaft" forcerange="-2 2"/></actuator></mujoco>'
)
_SERVO = _HINGE.format(joint='damping="0.05"').replace(
    '<motor name="shaft" joint="shaft" forcerange="-2 2"/>',
    '<position name="shaft" joint="shaft" kp="40" kv="0.1" forcerange="-20 20"/>',
)
_STUCK = _HINGE.format(joint='limited="true" range="-1 1"')


@pytest.mark.parametrize(
    ("level", "duration_s", "outcome"),
    [(1.0, 3.0, "motor_overload"), (-1.0, 3.0, "motor_overload"), (0.98, 3.0, "timeout"),
     (1.0, 1.998, "timeout"), (1.0, 2.0, "motor_overload")],
)  # fmt: skip
def test_a_motor_at_its_limit_for_two_seconds_is_overloaded(
    level: float, duration_s: float, outcome: str
) -> None:
    control = _CONTROL.validate_python({"mode": "constant", "level": level})
    one = _run(_STUCK, controls={"shaft": control}, duration_s=duration_s)["runs"][0]

    assert one["outcome"] == outcome
    if outcome == "motor_overload":
        assert "'shaft'" in one["reason"]
        assert one["simulated_s"] == pytest.approx(2.0, abs=1e-6)


def test_a_pause_lets_a_motor_rest() -> None:
    told = {"mode": "square", "level": 1.0, "period_s": 2.2, "duty": 0.88}
    one = _run(_STUCK, controls={"shaft": _CONTROL.validate_python(told)}, duration_s=6.0)
    turned = _run(_STUCK, controls={"shaft": _CONTROL.validate_python(told | {"duty": 0.95})})

    # The other way is its limit too: what counts is no moment below it.
    assert one["runs"][0]["outcome"] == "motor_overload"
    assert turned["runs"][0]["outcome"] == "timeout"
    rests = _CONTROL.validate_python(
        {"mode": "trapezoidal", "level": 1.0, "rise_s": 0.1, "hold_s": 1.9, "fall_s": 0.1}
    )
    rested = _run(_STUCK, controls={"shaft": rests}, duration_s=6.0)["runs"][0]
    assert rested["outcome"] == "timeout"


def test_the_file_of_a_run_shows_what_its_motor_was_told(tmp_path: Path) -> None:
    told = _CONTROL.validate_python(
        {"mode": "sinusoidal", "level": 0.5, "period_s": 0.7, "phase_deg": 30}
    )
    kept = (str(tmp_path), "simulations/a")
    one = _run(_STUCK, controls={"shaft": told}, kept_in=kept)["runs"][0]
    data = (tmp_path / "run-0.csv").read_bytes()
    rows = list(csv.DictReader(io.StringIO(data.decode())))

    assert one["trajectory"]["path"] == "simulations/a/run-0.csv"
    assert one["trajectory"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert len(rows) == one["steps"] + 1 == 501
    for row in rows[:-1]:
        share = 0.5 * math.sin(2 * math.pi * float(row["time_s"]) / 0.7 + math.radians(30))
        assert float(row["shaft.command"]) == pytest.approx(share, abs=1e-9)
        assert float(row["shaft.force"]) == pytest.approx(2 * share, abs=1e-9)
    assert rows[-1]["shaft.command"] == ""


def test_the_last_line_before_an_instability_is_of_its_own_time(tmp_path: Path) -> None:
    """The ball falls beside a spring whose swing grows tenfold with each step of 10 ms."""
    xml = (
        '<mujoco><option timestep="0.01" integrator="Euler"/><worldbody><body pos="1 1 1">'
        '<joint type="slide" axis="0 0 1" stiffness="0.5" springref="1"/>'
        '<geom type="sphere" size=".01" density="1"/></body></worldbody></mujoco>'
    )
    one = _run(xml, objectives=_objectives(), kept_in=(str(tmp_path), "a"))["runs"][0]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "run-0.csv").read_text())))

    assert one["outcome"] == "instability"
    assert one["steps"] > 3
    for step in (one["steps"] - 1, one["steps"]):
        fallen_m = _G * 0.01**2 * step * (step + 1) / 2
        assert float(rows[step]["ball.z_m"]) == pytest.approx(0.3 - fallen_m, abs=1e-9)


def test_instability_is_no_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xml = (
        '<mujoco><option timestep="0.01"/><worldbody><body name="one" pos="0 0 1">'
        '<joint type="slide" axis="0 0 1" stiffness="1e9" springref="1"/>'
        '<geom type="sphere" size=".01" density="1"/></body></worldbody></mujoco>'
    )
    monkeypatch.chdir(tmp_path)

    assert _run(xml)["runs"][0]["outcome"] == "instability"
    assert list(tmp_path.iterdir()) == []


def test_the_same_seed_is_the_same_run_and_each_seed_begins_elsewhere(tmp_path: Path) -> None:
    moved = _moved(
        static_randomization={"start_mm": [3, 0, 0], "scale": {"min": 0.8, "max": 1.2}},
        runtime_jitter={"start_mm": [0, 2, 0]},
    )
    goal = _objectives(moved_object=moved)
    asked: dict[str, Any] = {"objectives": goal, "count": 5, "seed": 7}
    _run(**asked, kept_in=(str(tmp_path / "a"), "a"))
    _run(**asked, kept_in=(str(tmp_path / "b"), "b"))
    _run(**(asked | {"variant": "w"}), kept_in=(str(tmp_path / "c"), "c"))
    files = [[(tmp_path / d / f"run-{n}.csv").read_bytes() for n in range(5)] for d in "abc"]
    starts = [
        [next(csv.DictReader(io.StringIO(data.decode()))) for data in each] for each in files
    ]

    assert files[0] == files[1]
    assert len(set(files[0])) == 5
    assert len({row["ball.x_m"] for row in starts[0]}) == 1
    assert len({row["ball.y_m"] for row in starts[0]}) == 5
    assert starts[0][0]["ball.x_m"] != starts[2][0]["ball.x_m"]
    assert [row["ball.y_m"] for row in starts[0]] == [row["ball.y_m"] for row in starts[2]]


@pytest.mark.parametrize("processors", [{0}, {0, 1, 2}, set(range(64))])
def test_runs_are_the_same_and_in_their_order_on_any_number_of_processors(
    monkeypatch: pytest.MonkeyPatch, processors: set[int]
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0})
    alone = _run(_STACK, count=7, duration_s=0.3)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: processors)

    assert _run(_STACK, count=7, duration_s=0.3) == alone
    assert len({each["energy_j"] for each in alone["runs"]}) == 7


def test_a_run_that_cannot_be_run_is_said_once_though_others_run_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1, 2})

    def broken(*_given: Any, **_more: Any) -> Any:
        raise SceneError("MuJoCo warned of CONTACTFULL")

    monkeypatch.setattr("workbench_physics.runs.run", broken)
    with pytest.raises(SceneError, match="CONTACTFULL"):
        _run(_STACK, count=9)


def test_seeds_and_counts() -> None:
    seeds = statistics.seeds_from(2**31 - 1, 100)
    found = statistics.aggregate([Outcome.GOAL_HIT] * 5 + [Outcome.TIMEOUT] * 5, has_goal=True)

    assert seeds == statistics.seeds_from(2**31 - 1, 100)
    assert len(set(seeds)) == 100
    assert seeds[0] == 2**31 - 1
    assert seeds[1:] != statistics.seeds_from(5, 100)[1:]
    assert found.success_rate == 0.5
    assert found.counts[Outcome.MOTOR_OVERLOAD] == 0
    assert sum(found.counts.values()) == found.runs == 10
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((0.23659, 0.76341), abs=1e-5)
    for hits, low, high in ((0, 0.0, 0.277533), (10, 0.722467, 1.0)):
        interval = statistics.wilson(hits, 10)
        assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(
    ("told", "times", "values"),
    [
        ({"mode": "square", "level": 0.4, "period_s": 0.3, "duty": 0.5},
         [0, 0.149, 0.15, 0.299, 0.3, 0.6], [0.4, 0.4, -0.4, -0.4, 0.4, 0.4]),
        ({"mode": "square", "level": 0.7, "period_s": 1.26, "duty": 0.2},
         [0.25, 0.252, 1.26, 1.512, 2.518], [0.7, -0.7, 0.7, -0.7, -0.7]),
        ({"mode": "trapezoidal", "level": -1.0, "rise_s": 1.0, "hold_s": 2.0, "fall_s": 0.5},
         [0, 0.5, 1, 3, 3.25, 3.5, 9], [0, -0.5, -1, -1, -0.5, 0, 0]),
        ({"mode": "waypoint", "waypoints": [{"at_s": 1, "deg": 10}, {"at_s": 2, "deg": -30}]},
         [0, 1, 1.5, 2, 5], [10, 10, -10, -30, -30]),
        ({"mode": "hold", "position": {"mm": 3}}, [0, 7], [3, 3]),
        ({"mode": "oscillate", "low": {"deg": -20}, "high": {"deg": 40}, "period_s": 4},
         [0, 1, 2, 3], [10, 40, 10, -20]),
    ],
)  # fmt: skip
def test_commands(told: dict[str, Any], times: list[float], values: list[float]) -> None:
    found = commanded(_CONTROL.validate_python(told), np.array(times, dtype=float))

    assert found.tolist() == pytest.approx(values, abs=1e-9)


def test_a_servo_follows_its_waypoints_in_degrees(tmp_path: Path) -> None:
    control = _CONTROL.validate_python({"mode": "hold", "position": {"deg": 90}})
    one = _run(
        _SERVO.replace("</body>", '<body name="tip" pos="0 0 -.2"/></body>'),
        controls={"shaft": control},
        duration_s=3.0,
    )["runs"][0]
    tip = next(body for body in one["bodies"] if body["name"] == "tip")["position_m"]

    assert tip == pytest.approx([-0.2, 0, 1.0], abs=2e-3)


@pytest.mark.parametrize(
    ("xml", "asked", "says"),
    [
        ("<mujoco", {}, "XML"),
        (_STUCK, {"controls": {"other": {"mode": "constant", "level": 1}}}, "other.*shaft"),
        (_STUCK, {"controls": {"shaft": {"mode": "hold", "position": {"deg": 1}}}}, "position"),
        (_STUCK, {"duration_s": 600.0, "count": 1_000}, "fewer runs"),
        (_SERVO, {"controls": {"shaft": {"mode": "hold", "position": {"mm": 1}}}}, "deg alone"),
        (_SERVO, {"controls": {"shaft": {"mode": "hold", "position": {}}}}, "no unit"),
        (_SERVO, {"controls": {"shaft": {"mode": "waypoint", "waypoints": [
            {"at_s": 2, "deg": 1}, {"at_s": 1, "deg": 1}]}}}, "times rise"),
        (_SERVO, {"controls": {"shaft": {
            "mode": "oscillate", "low": {"deg": 2}, "high": {"deg": 2}, "period_s": 1}}}, "below"),
        ('<mujoco><worldbody><body name="ball"/></worldbody></mujoco>',
         {"objectives": _objectives()}, "moved object"),
        (_EMPTY, {"objectives": _objectives(
            moving_parts=[{"name": "flap", "type": "passive", "dof": "rotate_x"}])}, "flap"),
        (_STUCK, {"objectives": _objectives(
            moving_parts=[{"name": "shaft", "type": "passive", "dof": "rotate_x"}])}, "rotate_x"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_said_in_a_sentence(
    xml: str, asked: dict[str, Any], says: str
) -> None:
    told = {name: _CONTROL.validate_python(each) for name, each in asked.get("controls", {}).items()}
    with pytest.raises(SceneError, match=says):
        _run(xml, **(asked | {"controls": told}))


def test_many_steps_are_those_of_mujoco_one_by_one() -> None:
    """A pendulum of 700 steps, beside plain steps of the same model."""
    xml = _HINGE.format(joint="ref='0'").replace('pos="0 0 1"', 'pos="0 0 1" euler="0 70 0"')
    xml = xml.replace("</body>", '<body name="tip" pos="0 0 -.2"/></body>')
    one = _run(xml, duration_s=1.4)["runs"][0]
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=700)
    mujoco.mj_kinematics(model, data)
    tip = next(body for body in one["bodies"] if body["name"] == "tip")["position_m"]

    assert one["steps"] == 700
    assert tip == [round(value, 9) for value in data.body("tip").xpos.tolist()]
    assert abs(tip[0]) > 0.01


def test_a_run_is_not_seen_to_be_stepped_in_pieces() -> None:
    """Twelve blocks that tumble onto each other for 1,500 steps: where a run is cut, the solver goes on."""
    blocks = "".join(
        f'<body name="{n}" pos="{0.01 * n} 0 {0.12 + 0.12 * n}"><joint type="slide" axis="1 0 0"/>'
        '<joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/><joint type="ball"/>'
        '<geom type="box" size=".05 .05 .05" density="500"/></body>'
        for n in range(12)
    )
    floor = '<geom type="plane" size="5 5 .1"/>'
    xml = f'<mujoco><option timestep="0.002"/><worldbody>{floor}{blocks}</worldbody></mujoco>'
    one = _run(xml, duration_s=3.0)["runs"][0]
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=1500)
    mujoco.mj_kinematics(model, data)

    assert one["steps"] == 1500
    assert {body["name"]: body["position_m"] for body in one["bodies"]} == {
        str(n): [round(value, 9) for value in data.body(str(n)).xpos.tolist()] for n in range(12)
    }
