"""INT-008: each field of the objectives is judged, whatever is wrong with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from workbench_contract.findings import Stage

from suites.integration.bundles import OBJECTIVES, changed
from suites.integration.episodes import Episodes
from suites.integration.planners import expect_accepted, expect_found, planner_at_work

pytestmark = [pytest.mark.covers("INT-008"), pytest.mark.integration_p0]

_NAN: Final = float("nan")

#: A control of each mode, of a motor that turns.
_CONTROLS: Final[tuple[dict[str, Any], ...]] = (
    {"mode": "constant", "level": -1},
    {"mode": "sinusoidal", "level": 0.5, "period_s": 2},
    {"mode": "square", "level": 1, "period_s": 0.5},
    {"mode": "trapezoidal", "level": -0.5, "rise_s": 1, "hold_s": 2, "fall_s": 1},
    {"mode": "waypoint", "waypoints": [{"deg": 5, "at_s": 0}, {"deg": -5, "at_s": 0.5}]},
    {"mode": "hold", "position": {"deg": 10}},
    {"mode": "oscillate", "low": {"deg": -20}, "high": {"deg": 45}, "period_s": 2},
)
_DRIVEN: Final = [
    {"name": control["mode"], "type": "motor", "dof": "rotate_y", "control": control}
    for control in _CONTROLS
]
_PASSIVE: Final = {"name": "gate", "type": "passive", "dof": "slide_z"}

#: Keys that may be left out, by the mapping that they stand in; and those by which the form of others is told.
_OPTIONAL: Final = {
    *(("static_randomization", "start_mm"), ("runtime_jitter", "start_mm"), ("scale", "min")),
    *(("scale", "max"), ("forbid_zones", "name"), ("waypoints", "deg"), ("position", "deg")),
    *(("low", "deg"), ("high", "deg"), ("control", "mode"), ("moved_object", "shape")),
}


def _everywhere(objectives: dict[str, Any]) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Objectives with one mistake in every place where it can be made, and those places."""
    found: dict[str, tuple[dict[str, Any], list[str]]] = {}

    def broken(name: str, of: Callable[[str, Any], object], wrong: Callable[[str], str]) -> None:
        made, places = objectives, []
        for path, value in _leaves(objectives):
            new = of(path, value)
            if new is not None:
                made = changed(made, path, new)
                places.append(wrong(path))
        found[name] = made, places

    def number(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def left_out(path: str, _: Any) -> object:
        steps = [step for step in path.split(".") if not step.isdigit()]
        is_key = not path.rpartition(".")[2].isdigit()
        return ... if is_key and (*steps[-2:],) not in _OPTIONAL else None

    broken("a text for every number", lambda _, value: "12" if number(value) else None, _place)
    broken("true for every number", lambda _, value: True if number(value) else None, _place)
    broken("no number anywhere", lambda _, value: _NAN if number(value) else None, _place)
    broken(
        "a placeholder for every word",
        lambda _, value: "<word>" if isinstance(value, str) else None,
        _place,
    )
    broken("nothing for every key", left_out, _place)
    made, places = objectives, []
    for path in _mappings(objectives):
        made = changed(made, f"{path}.colour" if path else "colour", "red")
        places.append(f"{_named(path)}.colour" if path else "colour")
    found["an unknown key in every mapping"] = made, places
    return found


def _place(path: str) -> str:
    """A path as findings name it: ``forbid_zones[0].min_mm``; numbers of a point are the point's."""
    head, _, last = path.rpartition(".")
    return _named(head if last.isdigit() else path)


def _named(path: str) -> str:
    steps = path.split(".")
    return "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in steps).removeprefix(
        "."
    )


def _leaves(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, word and list of numbers, with its path."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        if isinstance(inner, (dict, list)):
            if isinstance(inner, list) and not any(isinstance(each, dict) for each in inner):
                yield f"{before}{key}", inner
            yield from _leaves(inner, f"{before}{key}.")
        else:
            yield f"{before}{key}", inner


def _mappings(value: Any, before: str = "") -> Iterator[str]:
    """The path of every mapping."""
    if isinstance(value, dict):
        yield before.removesuffix(".")
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        if isinstance(inner, (dict, list)):
            yield from _mappings(inner, f"{before}{key}.")


async def test_int_008_one_mistake_in_every_place(episodes: Episodes) -> None:
    """Of fields that all have the same mistake each is named: no number, a template's word, nothing, too much.

    Without it a motor of each control passes. The model provider is a stand-in: the gateway holds the
    planner's model.
    """
    async with planner_at_work(episodes, number=137) as planner:
        bundle = planner.sound()
        driven = changed(bundle.objectives, "moving_parts", [*_DRIVEN, _PASSIVE])
        sound = bundle.replaced(objectives=driven)
        expect_accepted(await planner.judged(sound), "objectives with a motor of each control")
        for name, (broken, says) in _everywhere(driven).items():
            answer = await planner.judged(bundle.replaced(objectives=broken))
            what = f"objectives with {name}"
            expect_found(answer, Stage.VALID, {OBJECTIVES}, what=what, says=says)
        expect_accepted(await planner.judged(sound), "the same objectives, mended")
