"""INT-008: objectives make sense geometrically, over the whole range that they are randomised in."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from workbench_contract.findings import Stage

from suites.integration.bundles import OBJECTIVES, changed, doubled
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import Planner, expect_accepted, expect_found, planner_at_work
from suites.integration.sampling import for_all

pytestmark = [pytest.mark.covers("INT-008"), pytest.mark.integration_p0]

_NAN, _INFINITE = float("nan"), float("inf")
_ZONES: Final = ("goal_zone", "build_zone", "forbid_zones.0", "simulation_bounds")

_CYLINDER: Final[dict[str, Any]] = {
    "moved_object.shape": "cylinder",
    "moved_object.size": {"radius_mm": 3, "height_mm": 8},
}

_BOX: Final[dict[str, Any]] = {
    "moved_object.shape": "box",
    "moved_object.size": {"x_mm": 1, "y_mm": 4, "z_mm": 8},
}

_DOFS: Final = tuple(f"{way}_{axis}" for way in ("rotate", "slide") for axis in "xyz")


def _held(*, right: bool) -> list[dict[str, Any]]:
    """A motor for each dof that holds its position, in the unit of its dof or in the other one."""
    return [
        {
            "name": dof,
            "type": "motor",
            "dof": dof,
            "control": {
                "mode": "hold",
                "position": {"deg" if dof.startswith("rotate") == right else "mm": 3},
            },
        }
        for dof in _DOFS
    ]


#: Sound at its boundary: what stands at a path instead.
_SOUND: Final[dict[str, dict[str, Any]]] = {
    "the goal at the bounds": {"goal_zone.max_mm": [150, 10, 20]},
    "the goal beside the pit": {"forbid_zones.0.max_mm": [80, 10, 20]},
    "no forbid zone": {"forbid_zones": []},
    "no moving part": {"moving_parts": []},
    # 5 mm times 1.2 around 10 ± 3 reaches to 19.
    "a pit that the ball just misses": {"forbid_zones.0": {"min_mm": [19, -10, 30], "max_mm": [50, 10, 50]}},
    # Radius 3 and half its height, 4, reach as far as the ball, however it lies.
    "a pit that a cylinder just misses": {"forbid_zones.0": {"min_mm": [19, -10, 30], "max_mm": [50, 10, 50]}, **_CYLINDER},
    "a ball at the bounds": {"simulation_bounds.min_mm": [1, -50, -10], "build_zone.min_mm": [1, -20, 0]},
    # Half of the diagonal of 1 by 4 by 8, 4.5, times 1.2 around 10 ± 3 reaches to 18.4.
    "a pit that a box just misses": {"forbid_zones.0": {"min_mm": [18.4, -10, 30], "max_mm": [50, 10, 50]}, **_BOX},
    "a motor for each dof": {"moving_parts": _held(right=True)},
    "whole numbers with a point": {"goal_zone.min_mm": [80.0, -10.0, 0.0]},
    "a motor that holds": {"moving_parts.0.control": {"mode": "hold", "position": {"deg": 10}}},
    "a slide that waits": {
        "moving_parts.0": {"name": "bolt", "type": "motor", "dof": "slide_x",
                           "control": {"mode": "waypoint", "waypoints": [{"mm": 0, "at_s": 0}, {"mm": 9, "at_s": 1}]}},
    },
    "a name in another script": {"moving_parts.0.name": "Klappe-日本"},
    "a part and a zone of one name": {"moving_parts.0.name": "pit", "forbid_zones.0.name": "pit"},
}  # fmt: skip

#: Wrong in one way: what stands at a path instead (``...`` for no such key), and what findings name.
_WRONG: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    **{f"{path} turned over": ({f"{path}.min_mm.2": 500}, [path.partition(".")[0]]) for path in _ZONES},
    **{f"{path} flat": ({f"{path}.max_mm.1": -20, f"{path}.min_mm.1": -20}, [path.partition(".")[0]]) for path in _ZONES},
    "the goal out of bounds by 1": ({"goal_zone.max_mm": [151, 10, 20]}, ["goal_zone", "151"]),
    "the build zone out of bounds": ({"build_zone.min_mm": [0, -51, 0]}, ["build_zone", "-51"]),
    "the pit out of bounds": ({"forbid_zones.0.min_mm": [30, -10, -11]}, ["forbid_zones", "-11"]),
    "goal and pit in common by 0.001": ({"forbid_zones.0.max_mm": [80.001, 10, 5]}, ["goal_zone", "80.001"]),
    "the second pit in the goal": ({"forbid_zones": [{"min_mm": [30, -10, 0], "max_mm": [50, 10, 5]},
                                                     {"min_mm": [85, -5, 5], "max_mm": [90, 5, 9]}]}, ["forbid_zones[1]"]),
    "a pit that the ball meets by 0.01": ({"forbid_zones.0": {"min_mm": [18.99, -10, 30], "max_mm": [50, 10, 50]}}, ["forbid_zones"]),
    "the second pit met by the ball": ({"forbid_zones": [{"min_mm": [30, -10, 0], "max_mm": [50, 10, 5]},
                                                         {"min_mm": [18.99, -10, 30], "max_mm": [50, 10, 50]}]}, ["forbid_zones[1]"]),
    "a pit that a cylinder meets by 0.01": ({"forbid_zones.0": {"min_mm": [18.99, -10, 30], "max_mm": [50, 10, 50]}, **_CYLINDER}, ["forbid_zones"]),
    "a pit that a box meets by 0.01": ({"forbid_zones.0": {"min_mm": [18.39, -10, 30], "max_mm": [50, 10, 50]}, **_BOX}, ["forbid_zones"]),
    "the other unit for each dof": ({"moving_parts": _held(right=False)}, [f"moving_parts[{place}].control" for place in range(6)]),
    "a pit met by the jitter alone": ({"forbid_zones.0": {"min_mm": [18.5, -10, 30], "max_mm": [50, 10, 50]}}, ["forbid_zones"]),
    "a pit met by the spread alone": ({"forbid_zones.0": {"min_mm": [17.5, -10, 30], "max_mm": [50, 10, 50]}}, ["forbid_zones"]),
    "a pit met by the scale alone": ({"forbid_zones.0": {"min_mm": [18.4, -10, 30], "max_mm": [50, 10, 50]},
                                      "moved_object.runtime_jitter.start_mm": [0.5, 0, 0]}, ["forbid_zones"]),
    "a ball that begins in the goal": ({"moved_object.start_mm": [90, 0, 10]}, ["goal_zone"]),
    "a ball that touches the goal": ({"moved_object.start_mm": [71, 0, 10], "forbid_zones": []}, ["goal_zone"]),
    "a ball that leaves the bounds": ({"moved_object.start_mm": [10, 0, 94]}, ["simulation_bounds"]),
    "a box that leaves them when turned": ({"moved_object.shape": "box", "moved_object.size": {"x_mm": 1, "y_mm": 1, "z_mm": 120}},
                                           ["simulation_bounds"]),
    "a scale turned over": ({"moved_object.static_randomization.scale": {"min": 1.3, "max": 1.2}}, ["scale"]),
    "no scale": ({"moved_object.static_randomization.scale": {"min": 0, "max": 1}}, ["scale"]),
    "a size of nothing": ({"moved_object.size.radius_mm": 0}, ["radius_mm"]),
    "a size of another shape": ({"moved_object.size": {"x_mm": 1, "y_mm": 1, "z_mm": 1}}, ["radius_mm"]),
    "an unknown shape": ({"moved_object.shape": "torus"}, ["shape", "torus"]),
    "a spread below nothing": ({"moved_object.runtime_jitter.start_mm": [-1, 0, 0]}, ["runtime_jitter"]),
    "a point of two numbers": ({"goal_zone.min_mm": [80, -10]}, ["goal_zone"]),
    "a text for a number": ({"goal_zone.min_mm": ["80", -10, 0]}, ["goal_zone"]),
    "a boolean for a number": ({"goal_zone.min_mm": [True, -10, 0]}, ["goal_zone"]),
    "not a number": ({"goal_zone.min_mm": [_NAN, -10, 0]}, ["goal_zone"]),
    "infinite": ({"simulation_bounds.max_mm": [_INFINITE, 50, 100]}, ["simulation_bounds"]),
    "no goal": ({"goal_zone": ...}, ["goal_zone"]),
    "an unknown key": ({"goal_zone.colour": "red"}, ["colour"]),
    "an unknown key at the top": ({"gravity": 9.81}, ["gravity"]),
    "a misspelt key": ({"forbid_zones.0.nam": "pit"}, ["nam"]),
    "a placeholder": ({"moving_parts.0.name": "<name>"}, ["name"]),
    "two parts of one name": ({"moving_parts.1.name": "flap"}, ["moving_parts[1].name"]),
    "two pits of one name": ({"forbid_zones": [{"name": "pit", "min_mm": [30, -10, 0], "max_mm": [40, 10, 5]},
                                               {"name": "pit", "min_mm": [41, -10, 0], "max_mm": [50, 10, 5]}]}, ["forbid_zones[1].name"]),
    "a motor without control": ({"moving_parts.0.control": ...}, ["moving_parts[0].control"]),
    "a passive part with control": ({"moving_parts.1.control": {"mode": "constant", "level": 1}}, ["moving_parts[1].control"]),
    "an unknown dof": ({"moving_parts.1.dof": "slide_w"}, ["moving_parts[1].dof"]),
    "an unknown type": ({"moving_parts.1.type": "spring"}, ["moving_parts[1].type"]),
    "an unknown control": ({"moving_parts.0.control": {"mode": "chaotic", "level": 1}}, ["chaotic"]),
    "a level above one": ({"moving_parts.0.control": {"mode": "constant", "level": 1.01}}, ["level"]),
    "millimetres of what turns": ({"moving_parts.0.control.low": {"mm": 5}}, ["moving_parts[0].control.low"]),
    "degrees and millimetres": ({"moving_parts.0.control.low": {"deg": -20, "mm": 5}}, ["moving_parts[0].control.low"]),
    "low above high": ({"moving_parts.0.control.low": {"deg": 46}}, ["moving_parts[0].control"]),
    "waypoints out of order": ({"moving_parts.0.control": {"mode": "waypoint", "waypoints": [{"deg": 0, "at_s": 74}, {"deg": 5, "at_s": 63}]}},
                               ["waypoints[1].at_s", "74", "63"]),
    "two waypoints at one time": ({"moving_parts.0.control": {"mode": "waypoint", "waypoints": [{"deg": 0, "at_s": 74}, {"deg": 5, "at_s": 74}]}},
                                  ["waypoints[1].at_s", "74"]),
    "a cap of nothing": ({"constraints.max_unit_cost_usd": 0}, ["max_unit_cost_usd"]),
    "a third of a cent": ({"constraints.max_unit_cost_usd": 50.333}, ["max_unit_cost_usd"]),
    "a weight below nothing": ({"constraints.max_weight_g": -1}, ["max_weight_g"]),
    "no seed": ({"randomization.seeds": []}, ["seeds"]),
    "a seed that is no whole number": ({"randomization.seeds": [1.5]}, ["seeds"]),
}  # fmt: skip

#: Forbid zones in a build zone from (0, -20, 0) to (70, 20, 30), and whether they leave no room in it.
_ROOM: Final[dict[str, tuple[list[tuple[tuple[float, ...], tuple[float, ...]]], bool]]] = {
    "one pit that is all of it": ([((0, -20, 0), (70, 20, 30))], True),
    "two pits that share it": ([((0, -20, 0), (30, 20, 30)), ((30, -20, 0), (70, 20, 30))], True),
    "two pits that overlap": ([((0, -20, 0), (70, 5, 30)), ((0, -5, 0), (70, 20, 30))], True),
    "a pit in another, and the rest": (
        [((10, -5, 5), (20, 5, 9)), ((0, -20, 0), (70, 20, 20)), ((0, -20, 15), (70, 20, 30))], True),
    "a gap between two pits": ([((0, -20, 0), (30, 20, 30)), ((30.001, -20, 0), (70, 20, 30))], False),
    "three of its four quarters": (
        [((0, -20, 0), (35, 0, 30)), ((35, -20, 0), (70, 0, 30)), ((35, 0, 0), (70, 20, 30))], False),
    "its four quarters": (
        [((0, -20, 0), (35, 0, 30)), ((35, -20, 0), (70, 0, 30)), ((35, 0, 0), (70, 20, 30)),
         ((0, 0, 0), (35, 20, 30))], True),
    "a lid over a pit": ([((0, -20, 0), (70, 20, 29)), ((0, -20, 29), (70, 19, 30))], False),
}  # fmt: skip

#: Texts that are no such file, or read differently by different readers.
_TEXTS: Final = {
    "a list": "- goal_zone\n",
    "no YAML": "goal_zone: [1,\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "a tag": "goal_zone: !!python/object/apply:os.system ['true']\n",
    "an alias": "a: &a [1]\nb: *a\n",
    "one key twice": "randomization: {variant: v, seeds: [1]}\nrandomization: {variant: w, seeds: [2]}\n",
    "deep": "a: " + "[" * 3_000 + "]" * 3_000 + "\n",
}


def _with(objectives: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(objectives)
    for path, value in changes.items():
        made = changed(made, path, value)
    return made


async def _leave(planner: Planner, objectives: Mapping[str, Any]) -> Any:
    """The whole bundle around some objectives: their caps are the estimate's."""
    bundle = planner.sound()
    caps = objectives.get("constraints")
    estimate = bundle.estimate
    if isinstance(caps, dict):
        for key, value in caps.items():
            estimate = changed(estimate, f"constraints.benchmark_{key}", value)
    return await planner.judged(bundle.replaced(objectives=dict(objectives)))


async def test_int_008_objectives_are_judged(episodes: Episodes) -> None:
    """What makes sense passes, exactly at each boundary; what does not is refused, and named.

    A build zone without room is a warning alone. The model provider is a stand-in: the gateway holds the
    planner's model.
    """
    async with planner_at_work(episodes, number=131) as planner:
        own = planner.sound().objectives
        for name, changes in _SOUND.items():
            answer = await _leave(planner, _with(own, changes))
            accepted = expect_accepted(answer, f"objectives with {name}")
            assert [] == accepted.warnings, f"objectives with {name} are warned of: {answer}"
        for name, (changes, says) in _WRONG.items():
            answer = await _leave(planner, _with(own, changes))
            expect_found(
                answer, Stage.VALID, {OBJECTIVES}, what=f"objectives with {name}", says=says
            )
        for name, (pits, is_full) in _ROOM.items():
            zones = [{"min_mm": list(low), "max_mm": list(high)} for low, high in pits]
            room = {"forbid_zones": zones, "build_zone.max_mm": [70, 20, 30]}
            answer = await _leave(planner, _with(own, room))
            accepted = expect_accepted(answer, f"a build zone with {name}")
            warned = [each.where for each in accepted.warnings]
            due = ["build_zone"] if is_full else []
            expect_same(due, warned, what=f"warnings about a build zone with {name}")


async def test_int_008_texts_that_are_no_objectives(episodes: Episodes) -> None:
    """YAML that is broken, tagged, aliased, doubled or deep is refused, and the template with every mark.

    Findings are about all that is wrong at once. The model provider is a stand-in: the gateway holds the
    planner's model.
    """
    async with planner_at_work(episodes, number=132) as planner:
        template = await planner.session.read(OBJECTIVES)
        bundle = planner.sound()
        for name, text in _TEXTS.items():
            answer = await planner.judged(bundle, objectives=text)
            expect_found(answer, Stage.VALID, {OBJECTIVES}, what=f"objectives: {name}")
        for key in ("constraints", "max_weight_g", "period_s"):
            answer = await planner.judged(
                bundle, objectives=doubled(bundle.files()[OBJECTIVES], key)
            )
            what = f"sound objectives with {key} twice"
            expect_found(answer, Stage.VALID, {OBJECTIVES}, what=what, says=[key])
        answer = await planner.judged(bundle, objectives=template.json()["content"])
        what = "the template of the objectives"
        places = ["goal_zone", "moved_object", "constraints.max_unit_cost_usd", "randomization"]
        expect_found(answer, Stage.VALID, {OBJECTIVES}, what=what, says=places)
        several = _with(
            bundle.objectives,
            {"goal_zone.max_mm.0": 900, "moving_parts.1.dof": "none", "randomization.seeds": []},
        )
        answer = await _leave(planner, several)
        says = ["goal_zone", "moving_parts[1].dof", "seeds"]
        expect_found(answer, Stage.VALID, {OBJECTIVES}, what="three mistakes at once", says=says)
        for number in (_NAN, _INFINITE):
            worse = _with(several, {"forbid_zones.0.min_mm.0": number, "goal_zone.colour": "red"})
            what = f"{number} beside four other mistakes"
            says = ["forbid_zones", "colour", *says]
            expect_found(
                await _leave(planner, worse), Stage.VALID, {OBJECTIVES}, what=what, says=says
            )
        expect_accepted(await planner.judged(bundle), "sound objectives, after all of these")


#: Something else in each part of the objectives, sound by itself: who was given them changes none of it.
_EVERY_KEY: Final[dict[str, Any]] = {
    "forbid_zones.0.max_mm.2": 4,
    "build_zone.max_mm.0": 75,
    "simulation_bounds.max_mm.0": 155,
    "moved_object.label": "pebble",
    "moved_object.size.radius_mm": 4,
    "moved_object.start_mm.0": 9,
    "moved_object.static_randomization.start_mm.0": 1,
    "moved_object.static_randomization.scale.max": 1.1,
    "moving_parts.1.dof": "slide_x",
    "randomization.variant": "another",
}


async def test_int_008_each_round_and_each_session_has_its_own(episodes: Episodes) -> None:
    """What was sound in the first round and is spoilt in the second is refused; so is what others have.

    Whoever was given objectives may not change them, but for lower caps. The model provider is a stand-in:
    the gateway holds the models.
    """
    async with planner_at_work(episodes, number=133) as planner:
        own = planner.sound().objectives
        accepted = expect_accepted(await _leave(planner, own), "sound objectives")
        spoilt = _with(own, {"goal_zone.max_mm.0": 151})
        for _ in range(2):
            answer = await _leave(planner, spoilt)
            expect_found(
                answer, Stage.VALID, {OBJECTIVES}, what="objectives spoilt in a later round"
            )
        await episodes.until_event(planner.episode_id, "plan_submission")
    async with (
        planner_at_work(
            episodes, number=134, given=own, handover_id=accepted.handover_id
        ) as engineer,
        planner_at_work(episodes, number=135) as free,
    ):
        read = await engineer.session.read(OBJECTIVES)
        assert 200 == read.status, f"expected the objectives that were handed over, found {read}"
        assert "pit-133" in read.text, f"an engineer starts from other objectives: {read}"
        answer = await engineer.judged(engineer.sound(), objectives=read.json()["content"])
        expect_accepted(answer, "the objectives as they were handed over")
        for changes, says in (
            ({"goal_zone.max_mm.0": 101}, ["goal_zone.max_mm"]),
            ({"forbid_zones": []}, ["forbid_zones"]),
            ({"moved_object.runtime_jitter.start_mm.0": 0}, ["runtime_jitter"]),
            ({"randomization.seeds": [133]}, ["seeds"]),
            ({"moving_parts.0.name": "Flap"}, ["moving_parts"]),
            (_EVERY_KEY, [path.partition(".0")[0].replace(".1.", "[1].") for path in _EVERY_KEY]),
        ):
            bundle = engineer.sound().replaced(objectives=_with(own, changes))
            answer = await engineer.judged(bundle)
            what = f"an engineer's objectives with {changes}"
            expect_found(answer, Stage.AGREE, {OBJECTIVES}, what=what, says=says)
        answer = await _leave(free, _with(free.sound().objectives, {"goal_zone.max_mm.0": 101}))
        expect_accepted(answer, "another goal of who was given none, at the same time")


# --- an independent judge of zones and a ball ------------------------------------------------------------


def _illegal(objectives: Mapping[str, Any]) -> bool:
    """Whether zones and ball make no sense, by the contract's words; all numbers are whole."""
    goal, build, bounds = (_box(objectives[key]) for key in _THREE)
    pits = [_box(each) for each in objectives["forbid_zones"]]
    if any(low >= high for box in (goal, build, bounds, *pits) for low, high in box):
        return True
    if any(low < least or high > most for box in (goal, build, *pits)
           for (low, high), (least, most) in zip(box, bounds, strict=True)):  # fmt: skip
        return True
    if any(_common(goal, pit) for pit in pits):
        return True
    moved = objectives["moved_object"]
    scale = moved["static_randomization"]["scale"]["max"]
    radius = Fraction(moved["size"]["radius_mm"]) * Fraction(str(scale))
    spread = [
        moved["static_randomization"]["start_mm"][axis] + moved["runtime_jitter"]["start_mm"][axis]
        for axis in range(3)
    ]
    centres = [(at - by, at + by) for at, by in zip(moved["start_mm"], spread, strict=True)]
    if any(_distance2(centres, pit) < radius**2 for pit in pits):
        return True
    if _distance2(centres, goal) <= radius**2:
        return True
    return any(low - radius < least or high + radius > most
               for (low, high), (least, most) in zip(centres, bounds, strict=True))  # fmt: skip


_THREE: Final = ("goal_zone", "build_zone", "simulation_bounds")
_Box = list[tuple[int, int]]


def _box(zone: Mapping[str, Any]) -> _Box:
    return list(zip(zone["min_mm"], zone["max_mm"], strict=True))


def _common(one: _Box, other: _Box) -> bool:
    return all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(one, other, strict=True))


def _distance2(one: _Box, other: _Box) -> int:
    gaps = (max(0, c - b, a - d) for (a, b), (c, d) in zip(one, other, strict=True))
    return sum(gap * gap for gap in gaps)


async def test_int_008_generated_zones(episodes: Episodes) -> None:
    """Of generated zones, starts and spreads exactly those are refused that a small judge refuses.

    Both kinds are met. The model provider is a stand-in: the gateway holds the planner's model.
    """
    verdicts: dict[bool, int] = {True: 0, False: 0}
    async with planner_at_work(episodes, number=136) as planner:
        own = planner.sound().objectives

        async def check(objectives: dict[str, Any]) -> None:
            wrong = _illegal(objectives)
            verdicts[wrong] += 1
            answer = await _leave(planner, objectives)
            what = f"generated objectives {objectives}"
            if wrong:
                expect_found(answer, Stage.VALID, {OBJECTIVES}, what=what)
            else:
                expect_accepted(answer, what)

        await for_all(_objectives(own), check, most=80)
    for wrong, count in verdicts.items():
        assert count >= 10, f"expected 10 examples or more that are {_WORD[wrong]}, found {count}"


_WORD: Final = {True: "refused", False: "accepted"}


def _objectives(own: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Whole numbers, most of them sound: boxes of the sizes that a bench has, seldom turned over."""

    def made(parts: tuple[Any, ...]) -> dict[str, Any]:
        goal, pits, start, spread, jitter, radius, edge = parts
        return _with(
            own,
            {
                "goal_zone": goal,
                "forbid_zones": pits,
                "moved_object.start_mm": start,
                "moved_object.static_randomization": {"start_mm": spread, "scale": {"min": 1, "max": 1.5}},
                "moved_object.runtime_jitter.start_mm": jitter,
                "moved_object.size.radius_mm": radius,
                "simulation_bounds.max_mm.0": edge,
            },
        )  # fmt: skip

    whole = st.integers(-45, 140)
    corner = st.tuples(whole, st.integers(-45, 40), st.integers(-10, 90))
    size = st.tuples(*itertools.repeat(st.integers(1, 25), 3)) | st.just((0, 5, 5))
    zone = st.builds(
        lambda at, by: {
            "min_mm": list(at),
            "max_mm": [each + more for each, more in zip(at, by, strict=True)],
        },
        corner,
        size,
    )
    three = st.lists(st.integers(0, 4), min_size=3, max_size=3)
    start = st.tuples(st.integers(-40, 130), st.integers(-35, 35), st.integers(5, 85)).map(list)
    parts = st.tuples(
        zone,
        st.lists(zone, max_size=2),
        start,
        three,
        three,
        st.sampled_from([2, 4, 6]),
        st.integers(120, 200),
    )
    return parts.map(made)
