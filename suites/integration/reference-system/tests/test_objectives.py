"""objectives.yaml: the form, the zones, the object's reach, the moving parts, the benchmark's word."""

import copy
import itertools
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_contract.objectives import Objectives
from workbench_planning.boxes import Solid, exact_point, leaves_room
from workbench_planning.objectives import changed, over_caps, read_objectives, warnings_of
from workbench_planning.templates import OBJECTIVES

#: A design that has nothing wrong: a ball on the left, a goal on the right, a pit between.
GOOD = {
    "goal_zone": {"min_mm": [80, -10, 0], "max_mm": [100, 10, 20]},
    "forbid_zones": [{"name": "pit", "min_mm": [30, -10, 0], "max_mm": [50, 10, 5]}],
    "build_zone": {"min_mm": [0, -20, 0], "max_mm": [70, 20, 60]},
    "simulation_bounds": {"min_mm": [-50, -50, -10], "max_mm": [150, 50, 100]},
    "moved_object": {
        "label": "ball",
        "shape": "sphere",
        "size": {"radius_mm": 5},
        "start_mm": [10, 0, 40],
        "static_randomization": {"start_mm": [2, 2, 0], "scale": {"min": 0.8, "max": 1.2}},
        "runtime_jitter": {"start_mm": [1, 1, 0.5]},
    },
    "moving_parts": [
        {
            "name": "flap",
            "type": "motor",
            "dof": "rotate_y",
            "control": {"mode": "sinusoidal", "level": 0.5, "period_s": 2},
        },
        {"name": "gate", "type": "passive", "dof": "slide_z"},
    ],
    "constraints": {"max_unit_cost_usd": 50.10, "max_weight_g": 1200},
    "randomization": {"variant": "v1", "seeds": [0, 1, 2]},
}

ABSENT = object()


def told(value):
    """The findings on a value; JSON is YAML."""
    text = value if isinstance(value, str) else json.dumps(value)
    objectives, findings = read_objectives(text.encode())

    assert (objectives is None) == bool(findings)
    assert all(each.file == "objectives.yaml" and each.expected for each in findings)
    return [(each.where.split(" (")[0], each.found) for each in findings]


def with_(path, value):
    """The good objectives, with something else at a path like ``goal_zone.min_mm.0``."""
    made = copy.deepcopy(GOOD)
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    at = made
    for step in steps:
        at = at[step]
    if value is ABSENT:
        del at[last]
    else:
        at[last] = value
    return made


def test_good():
    """Objectives without a fault are read as they are, money in cents."""
    objectives, findings = read_objectives(json.dumps(GOOD).encode())

    assert [] == findings
    assert Decimal("50.10") == objectives.constraints.max_unit_cost_usd
    assert [] == warnings_of(objectives)
    assert objectives == Objectives.model_validate_json(objectives.model_dump_json())


FORM = {
    "unknown key": ("goal_zone.colour", "red", "goal_zone.colour", "the key 'colour'"),
    "unknown key above": ("goals", [], "goals", "the key 'goals'"),
    "missing": ("constraints.max_weight_g", ABSENT, "constraints.max_weight_g", "nothing"),
    "missing above": ("randomization", ABSENT, "randomization", "nothing"),
    "no list": ("forbid_zones", None, "forbid_zones", "nothing"),
    "text for a number": ("goal_zone.min_mm.1", "-10", "goal_zone.min_mm[1]", "text, '-10'"),
    "boolean for a number": ("goal_zone.min_mm.1", True, "goal_zone.min_mm[1]", "a boolean, True"),
    "list for a number": ("constraints.max_weight_g", [1], "constraints.max_weight_g", "a list of 1"),
    "two coordinates": ("moved_object.start_mm", [0, 0], "moved_object.start_mm", "a list of 2"),
    "four coordinates": ("goal_zone.min_mm", [0, 0, 0, 0], "goal_zone.min_mm", "a list of 4"),
    "far away": ("goal_zone.max_mm.0", 1e7, "goal_zone.max_mm[0]", "a number, 10000000.0"),
    "free": ("constraints.max_unit_cost_usd", 0, "constraints.max_unit_cost_usd", "a number, 0"),
    "a debt": ("constraints.max_unit_cost_usd", -1, "constraints.max_unit_cost_usd", "a number, -1"),
    "half a cent": ("constraints.max_unit_cost_usd", 1.005, "constraints.max_unit_cost_usd", "1.005"),
    "money without end": ("constraints.max_unit_cost_usd", 1e10, "constraints.max_unit_cost_usd", "10000000000"),
    "money in text": ("constraints.max_unit_cost_usd", "5", "constraints.max_unit_cost_usd", "'5'"),
    "money that is true": ("constraints.max_unit_cost_usd", True, "constraints.max_unit_cost_usd", "True"),
    "weightless": ("constraints.max_weight_g", 0, "constraints.max_weight_g", "a number, 0"),
    "shape": ("moved_object.shape", "cone", "moved_object.shape", "text, 'cone'"),
    "no shape": ("moved_object.shape", ABSENT, "moved_object.shape", "nothing"),
    "size of another shape": ("moved_object.size", {"x_mm": 1}, "moved_object.size.radius_mm", "nothing"),
    "no radius": ("moved_object.size.radius_mm", 0, "moved_object.size.radius_mm", "a number, 0"),
    "spread below 0": ("moved_object.runtime_jitter.start_mm.2", -1,
                       "moved_object.runtime_jitter.start_mm[2]", "a number, -1"),
    "half a seed": ("randomization.seeds", [1.5], "randomization.seeds[0]", "a number, 1.5"),
    "no seeds": ("randomization.seeds", [], "randomization.seeds", "a list of 0"),
    "label with a line end": ("moved_object.label", "a\nb", "moved_object.label", "'a\\nb'"),
    "type": ("moving_parts.0.type", "Motor", "moving_parts[0].type", "text, 'Motor'"),
    "dof": ("moving_parts.0.dof", "rotate", "moving_parts[0].dof", "text, 'rotate'"),
    "dof that is a number": ("moving_parts.0.dof", 1, "moving_parts[0].dof", "a number, 1"),
    "mode": ("moving_parts.0.control.mode", "sine", "moving_parts[0].control.mode", "'sine'"),
    "key of another mode": ("moving_parts.0.control.duty", 0.5, "moving_parts[0].control.duty", "duty"),
    "level": ("moving_parts.0.control.level", 1.01, "moving_parts[0].control.level", "1.01"),
    "motor without control": ("moving_parts.0.control", ABSENT, "moving_parts[0].control", "nothing"),
    "passive with control": ("moving_parts.1.control", {"mode": "constant", "level": 1},
                             "moving_parts[1].control", "a control, constant"),
    "name twice": ("moving_parts.1.name", "flap", "moving_parts[1].name", "'flap', which moving_parts[0]"),
    "key like its shape": ("moved_object.sphere", {"size": 1}, "moved_object.sphere", "the key 'sphere'"),
    "shape that is a list": ("moved_object.shape", [], "moved_object.shape", "a list of 0"),
    "key with a line end": ("goal_zone.a\nb", 1, "goal_zone['a\\nb']", "the key 'a\\nb'"),
    "scale turned": ("moved_object.static_randomization.scale", {"min": 1.2, "max": 0.8},
                     "moved_object.static_randomization.scale", "from 1.2 to 0.8"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORM)
def test_form(name):
    """A wrong value is one finding, at its own place, and says what stands there."""
    path, value, where, found = FORM[name]
    findings = told(with_(path, value))

    assert [where] == [each[0] for each in findings if "size.x_mm" not in each[0]]
    assert found in findings[0][1]


CONTROLS = {
    "hold in mm": ("rotate_x", {"mode": "hold", "position": {"mm": 1}}, ["position"]),
    "hold in deg": ("slide_x", {"mode": "hold", "position": {"deg": 1}}, ["position"]),
    "hold in both": ("slide_x", {"mode": "hold", "position": {"deg": 1, "mm": 1}}, ["position"]),
    "hold in none": ("slide_x", {"mode": "hold", "position": {}}, ["position"]),
    "hold": ("slide_x", {"mode": "hold", "position": {"mm": 1}}, []),
    "oscillate": ("rotate_z", {"mode": "oscillate", "low": {"deg": -1}, "high": {"deg": 1}, "period_s": 1}, []),
    "nowhere": ("rotate_z", {"mode": "oscillate", "low": {"deg": 1}, "high": {"deg": 1}, "period_s": 1}, ["low"]),
    "way": ("slide_y", {"mode": "waypoint", "waypoints": [{"at_s": 0, "mm": 0}, {"at_s": 1, "mm": 5}]}, []),
    "way back": ("slide_y", {"mode": "waypoint", "waypoints": [{"at_s": 1, "mm": 0}, {"at_s": 1, "mm": 5}]},
                 ["waypoints[1].at_s"]),
    "no way": ("slide_y", {"mode": "waypoint", "waypoints": []}, ["waypoints"]),
    "square": ("slide_y", {"mode": "square", "level": -1, "period_s": 1, "duty": 0.1}, []),
    "trapezoidal": ("slide_y", {"mode": "trapezoidal", "level": 1, "rise_s": 1, "hold_s": 1, "fall_s": 1}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTROLS)
def test_control(name):
    """Positions are in the unit of the part's dof, ways lead on."""
    dof, control, where = CONTROLS[name]
    part = {"name": "arm", "type": "motor", "dof": dof, "control": control}

    assert [f"moving_parts[0].control.{each}" for each in where] == [
        each[0] for each in told(with_("moving_parts", [part]))
    ]


def test_not_finite():
    """NaN and infinities are told with their lines."""
    text = json.dumps(GOOD).replace("1200", ".nan").replace('"radius_mm": 5', '"radius_mm": .inf')

    assert ["moved_object.size.radius_mm", "constraints.max_weight_g"] == [
        each[0] for each in told(text)
    ]


ZONES = {
    "flat": ("goal_zone.max_mm.1", -10, ["goal_zone.min_mm[1]: y from -10 to -10"]),
    "turned": ("build_zone.min_mm.2", 61, ["build_zone.min_mm[2]: z from 61 to 60"]),
    "outside": ("goal_zone.max_mm.0", 150.5,
                ["goal_zone: goal_zone has x from 80 to 150.5"]),
    "at the bounds": ("goal_zone.max_mm.0", 150, []),
    "pit outside": ("forbid_zones.0.min_mm", [30, -51, -11],
                    ["forbid_zones[0]: forbid_zones[0] 'pit' has y from -51 to 10",
                     "forbid_zones[0]: forbid_zones[0] 'pit' has z from -11 to 5"]),
    "goal in the pit": ("goal_zone.min_mm.0", 49.5,
                        ["forbid_zones[0]: goal_zone and forbid_zones[0] 'pit' have in common "
                         "x from 49.5 to 50, y from -10 to 10, z from 0 to 5"]),
    "goal beside the pit": ("goal_zone.min_mm.0", 50, []),
    "goal above the pit": ("goal_zone", {"min_mm": [30, -10, 5], "max_mm": [50, 10, 9]}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", ZONES)
def test_zones(name):
    """Findings name zone, axis and numbers; to touch is neither to meet nor to be outside."""
    path, value, expected = ZONES[name]
    findings = told(with_(path, value))

    assert len(expected) == len(findings)
    for prefix, (where, found) in zip(expected, findings, strict=True):
        assert f"{where}: {found}".startswith(prefix)


def at(start, **changes):
    """The good objectives with another start; no randomization unless it is given."""
    made = with_("moved_object.static_randomization", {})
    made["moved_object"] |= {"start_mm": start, "runtime_jitter": {}} | changes
    return made


# Radius 5. The pit is x 30…50, y ±10, z 0…5; the goal x 80…100, y ±10, z 0…20; bounds x -50…150.
REACH = {
    "touches the pit": (at([40, 0, 10]), []),
    "meets the pit": (at([40, 0, 9.999]), ["can meet forbid_zones[0] 'pit': the nearest centre is 4.999 mm"]),
    "touches an edge": (at([26, 0, 8]), []),
    "meets an edge": (at([26, 0, 7.99]), ["can meet forbid_zones[0] 'pit'"]),
    "would meet an edge as a box": (at([26, 0, 9]), []),
    "jitter into the pit": (at([40, 0, 11], runtime_jitter={"start_mm": [0, 0, 1.5]}), ["can meet"]),
    "jitter to the pit": (at([40, 0, 11.5], runtime_jitter={"start_mm": [0, 0, 1.5]}), []),
    "jitter and variants": (
        at([40, 0, 12], runtime_jitter={"start_mm": [0, 0, 1.5]}, static_randomization={"start_mm": [0, 0, 1]}),
        ["can meet"],
    ),
    "scaled into the pit": (at([40, 0, 11], static_randomization={"scale": {"min": 0.1, "max": 1.21}}), ["can meet"]),
    "scaled to the pit": (at([40, 0, 11], static_randomization={"scale": {"min": 0.1, "max": 1.2}}), []),
    "near the goal": (at([74.9, 0, 10]), []),
    "touches the goal": (at([75, 0, 10]), ["can touch goal_zone at the start"]),
    "in the goal": (at([90, 0, 10]), ["can touch goal_zone at the start"]),
    "touches the bounds": (at([-45, 0, 40]), []),
    "leaves the bounds": (at([-45.01, 0, 40]), ["can leave simulation_bounds at x min"]),
    "leaves a corner": (at([-46, 46, 40]), ["at x min", "at y max"]),
    "outside": (at([300, 0, 40]), ["at x max"]),
    # A cube of 6 has half a diagonal of 5.196: below it the pit, at z 5.
    "a box, turned": (at([40, 0, 10], shape="box", size={"x_mm": 6, "y_mm": 6, "z_mm": 6}), ["can meet"]),
    "a box": (at([40, 0, 10.2], shape="box", size={"x_mm": 6, "y_mm": 6, "z_mm": 6}), []),
    # 3-4-5: radius 3, height 8.
    "a cylinder": (at([40, 0, 10], shape="cylinder", size={"radius_mm": 3, "height_mm": 8}), []),
    "a cylinder, longer": (at([40, 0, 10], shape="cylinder", size={"radius_mm": 3, "height_mm": 8.01}), ["can meet"]),
    # 0.1 + 0.2 is 0.3 here.
    "tenths": (at([40, 0, 5.3], size={"radius_mm": 0.1}, runtime_jitter={"start_mm": [0, 0, 0.2]}), []),
}  # fmt: skip


@pytest.mark.parametrize("name", REACH)
def test_reach(name):
    """The object's ball, wherever randomization lets it start, keeps off pit and goal and within bounds."""
    objectives, expected = REACH[name]
    findings = told(objectives)

    assert ["moved_object.start_mm"] * len(expected) == [each[0] for each in findings]
    for part, (_, found) in zip(expected, findings, strict=True):
        assert part in found


def test_all_is_told():
    """What can be judged is judged while something else is wrong."""
    made = with_("constraints.max_weight_g", "much")
    made["build_zone"]["max_mm"][0] = 500
    made["forbid_zones"].append({"name": "pit", "min_mm": [0, 0, 0], "max_mm": [0, 1, 1]})
    made["moved_object"]["start_mm"] = [40, 0, 0]
    wheres = {each[0] for each in told(made)}

    assert wheres == {
        "constraints.max_weight_g",
        "build_zone",
        "forbid_zones[1].min_mm[0]",
        "forbid_zones[1].name",
        "moved_object.start_mm",
    }


def test_template():
    """The template as it is issued is refused, each placeholder once."""
    findings = told(OBJECTIVES)
    marks = [each for each in findings if "<" in each[1]]

    assert OBJECTIVES.count("<") == len(marks)
    assert len({each[0] for each in findings}) == len(findings)


@pytest.mark.parametrize("word", ["TODO", "tbd", "...", "{{name}}", "____", "<name>", " Fill in "])
def test_placeholder(word):
    """A text that stands for one that is to be written is told as that."""
    assert ["randomization.variant"] == [
        each[0] for each in told(with_("randomization.variant", word.strip()))
    ]
    assert [] == told(with_("moving_parts.0.description", f"the flap; {word} later"))


COVERING = {
    "half": ([([0, -20, 0], [35, 20, 60])], True),
    "all": ([([0, -20, 0], [70, 20, 60])], False),
    "more than all": ([([-10, -30, -5], [75, 30, 60])], False),
    "two halves": ([([0, -20, 0], [35, 20, 60]), ([35, -20, 0], [70, 20, 60])], False),
    "two halves and a slit": (
        [([0, -20, 0], [34.999, 20, 60]), ([35, -20, 0], [70, 20, 60])],
        True,
    ),
    "eight corners": (
        [([x, y, z], [x + 35, y + 20, z + 30]) for x in (0, 35) for y in (-20, 0) for z in (0, 30)],
        False,
    ),
}


@pytest.mark.parametrize("name", COVERING)
def test_no_room(name):
    """Forbid zones that leave no room in the build zone are a warning and no finding."""
    boxes, room = COVERING[name]
    made = with_("moved_object.start_mm", [-30, 0, 90])
    made["goal_zone"] = {"min_mm": [100, -10, 0], "max_mm": [120, 10, 20]}
    made["forbid_zones"] = [{"min_mm": low, "max_mm": high} for low, high in boxes]
    objectives, findings = read_objectives(json.dumps(made).encode())

    assert [] == findings
    assert room == (not warnings_of(objectives))


CAPS = {
    "same": (50.10, 1200, []),
    "lower": (50.09, 1199.9, []),
    "a cent above": (50.11, 1200, ["constraints.max_unit_cost_usd"]),
    "a gram above": (50.10, 1201, ["constraints.max_weight_g"]),
    "both above": (100, 2000, ["constraints.max_unit_cost_usd", "constraints.max_weight_g"]),
}


@pytest.mark.parametrize("name", CAPS)
def test_caps(name):
    """A planner's caps are at most the benchmark's; exactly at them passes."""
    cost, weight, expected = CAPS[name]
    benchmark = Objectives.model_validate(GOOD)
    made = with_("constraints", {"max_unit_cost_usd": cost, "max_weight_g": weight})
    typed = Objectives.model_validate(made)

    assert expected == [each.where for each in over_caps(typed.constraints, benchmark.constraints)]
    assert expected == [each.where for each in changed(typed, benchmark)]


CHANGES = {
    "goal moved": ("goal_zone.min_mm.0", 79.999, "goal_zone.min_mm[0]"),
    "pit gone": ("forbid_zones", [], "forbid_zones"),
    "object shrunk": ("moved_object.size.radius_mm", 4, "moved_object.size.radius_mm"),
    "less jitter": ("moved_object.runtime_jitter", {}, "moved_object.runtime_jitter.start_mm[0]"),
    "seeds": ("randomization.seeds", [0], "randomization.seeds"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed(name):
    """Whatever the engineer changes but for lower caps is told at its place."""
    path, value, where = CHANGES[name]
    typed = Objectives.model_validate(with_(path, value))

    assert where == changed(typed, Objectives.model_validate(GOOD))[0].where


_SIDES = st.tuples(st.integers(0, 5), st.integers(1, 3)).map(lambda each: (each[0], sum(each)))
_BOXES = st.tuples(_SIDES, _SIDES, _SIDES)


def _cells(box):
    """The unit cells of a box of whole numbers."""
    return set(itertools.product(*(range(low, high) for low, high in box)))


def _solid(box):
    return Solid(exact_point([each[0] for each in box]), exact_point([each[1] for each in box]))


@given(_BOXES, st.lists(_BOXES, max_size=8))
def test_room_by_counting(box, taken):
    """There is room in a box exactly when some of its cells is in no other; two meet when they share one."""
    left = _cells(box) - {cell for other in taken for cell in _cells(other)}

    assert bool(left) == leaves_room(_solid(box), [_solid(other) for other in taken])
    for other in taken:
        assert bool(_cells(box) & _cells(other)) == _solid(box).meets(_solid(other))


def _gap2(point, box):
    """The squared distance of a point from a box, by trying the whole numbers of the box."""
    return min(
        sum((one - other) ** 2 for one, other in zip(point, each, strict=True))
        for each in itertools.product(*(range(low, high + 1) for low, high in box))
    )


@given(
    st.tuples(*[st.integers(-4, 12)] * 3),
    st.tuples(*[st.integers(0, 2)] * 3),
    st.integers(1, 5),
    _BOXES,
)
def test_reach_by_trying(start, jitter, radius, pit):
    """The object meets a pit exactly when some start of the range is nearer than its radius."""
    made = at(list(start), size={"radius_mm": radius}, runtime_jitter={"start_mm": list(jitter)})
    made["simulation_bounds"] = {"min_mm": [-99, -99, -99], "max_mm": [199, 99, 99]}
    made["forbid_zones"] = [{"min_mm": [s[0] for s in pit], "max_mm": [s[1] for s in pit]}]
    ranges = (range(s - j, s + j + 1) for s, j in zip(start, jitter, strict=True))
    nearest = min(_gap2(centre, pit) for centre in itertools.product(*ranges))

    assert (nearest < radius**2) == any("can meet" in found for _, found in told(made))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 200) | st.sampled_from(["", "x", "sphere", "5"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from([*GOOD, "name", "min_mm"]), below, max_size=3)
    ),
    max_leaves=6,
)
_PATHS = [
    path
    for path in (
        [key] if len(rest) == 0 else [key, *rest]
        for key in GOOD
        for rest in ([], ["min_mm"], ["max_mm", 0], [0], [0, "name"], ["size"], ["start_mm", 1])
    )
]


@given(st.lists(st.tuples(st.sampled_from(_PATHS), _JSON), min_size=1, max_size=3))
def test_anything_in_any_place(changes):
    """Whatever stands anywhere, there are objectives or findings, each with a place in the file."""
    made = copy.deepcopy(GOOD)
    for path, value in changes:
        at_ = made
        for step in path[:-1]:
            at_ = (
                at_.get(step)
                if isinstance(at_, dict)
                else at_[step]
                if isinstance(step, int) and isinstance(at_, list) and len(at_) > step
                else None
            )
        if isinstance(at_, dict):
            at_[path[-1]] = value
    for where, found in told(made):
        assert where and found
