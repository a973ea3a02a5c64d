"""``objectives.yaml``: is it whole, can it be met, and has the engineer left it as it was?

What touches does not meet (``boxes.py``), with one exception that the contract's word makes: an object
that *touches* the goal at its start is already there. A zone may touch the bounds from inside.

The moved object is taken as the smallest ball around it that holds however it is turned: the sphere
itself, half the diagonal of a box, of a cylinder the root of radius² + (height/2)²; times the largest
scale; around every centre that randomization and jitter together allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import TypeAdapter, ValidationError

from workbench_contract.findings import Finding
from workbench_contract.objectives import (
    Box,
    BoxSize,
    Constraints,
    CylinderSize,
    MovedBox,
    MovedCylinder,
    MovedObject,
    MovedSphere,
    MovingPart,
    Objectives,
    Oscillate,
    PartType,
    Position,
    ScaleRange,
    SphereSize,
    Waypoint,
)
from workbench_planning.boxes import AXES, Ball, Solid, exact, exact_point, leaves_room
from workbench_planning.schema import items_at, model_of, part_of, value_at
from workbench_planning.strict_yaml import Document, Path, dotted, read_yaml
from workbench_planning.templates import placeholders
from workbench_planning.text import finding, shortened
from workbench_planning.variants import spread_of

FILE = "objectives.yaml"

_MOVED: TypeAdapter[MovedSphere | MovedBox | MovedCylinder] = TypeAdapter(MovedObject)


def read_objectives(data: bytes) -> tuple[Objectives | None, list[Finding]]:
    """The objectives, or all that is wrong with them; what can be judged is, whatever else is wrong."""
    document, marks = read_yaml(data, file=FILE, with_gaps=True)
    if document is None:
        return None, marks
    marks += placeholders(document, file=FILE)
    objectives, findings = model_of(Objectives, document, file=FILE)
    if marks:
        # Neither a placeholder nor NaN is a number that is too small, which needs no second finding.
        told = {each.where for each in marks}
        findings = [*marks, *(each for each in findings if each.where not in told)]
    findings += _Judging(document).findings()
    return (None if findings else objectives), findings


def warnings_of(objectives: Objectives) -> list[Finding]:
    """What is allowed and probably not meant: forbid zones that leave no room to build in."""
    build = _solid_of(objectives.build_zone)
    taken = [_solid_of(zone) for zone in objectives.forbid_zones]
    if build is None or leaves_room(build, [each for each in taken if each is not None]):
        return []
    names = ", ".join(
        zone.name or f"forbid_zones[{index}]"
        for index, zone in enumerate(objectives.forbid_zones)
        if (solid := taken[index]) is not None and solid.meets(build)
    )
    found = f"forbid zones take all of it: {names}"
    return [finding(FILE, "build_zone", found, "room to build in beside the forbid zones")]


def over_caps(typed: Constraints, caps: Constraints) -> list[Finding]:
    """The constraints of a planner that are above the benchmark's; as high passes."""
    findings = []
    for key in ("max_unit_cost_usd", "max_weight_g"):
        value, cap = getattr(typed, key), getattr(caps, key)
        if value > cap:
            expected = f"at most the benchmark's {cap:g}"
            findings.append(finding(FILE, f"constraints.{key}", f"{value:g}", expected))
    return findings


def changed(objectives: Objectives, benchmark: Objectives) -> list[Finding]:
    """What the engineer's objectives have otherwise than the benchmark's; lower caps may be."""
    findings = over_caps(objectives.constraints, benchmark.constraints)
    typed, given = objectives.model_dump(), benchmark.model_dump()
    for key in typed:
        if key != "constraints":
            findings += _differences(typed[key], given[key], (key,))
    return findings


def _differences(typed: Any, given: Any, path: Path) -> list[Finding]:
    """Values that are not the benchmark's, each at its own place."""
    if isinstance(typed, dict) and isinstance(given, dict) and typed.keys() == given.keys():
        return [
            each for key in typed for each in _differences(typed[key], given[key], (*path, key))
        ]
    if isinstance(typed, list) and isinstance(given, list) and len(typed) == len(given):
        return [
            each
            for index, (one, other) in enumerate(zip(typed, given, strict=True))
            for each in _differences(one, other, (*path, index))
        ]
    if typed == given:
        return []
    expected = f"the benchmark's {shortened(given)}"
    return [finding(FILE, dotted(path), shortened(typed), expected)]


@dataclass(frozen=True, slots=True)
class _Zone:
    """A zone that is a box, and what findings call it."""

    path: Path
    name: str
    solid: Solid


class _Judging:
    """The checks across fields, on all that is of the right form by itself."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Finding] = []

    def note(self, path: Path, found: str, expected: str) -> None:
        self.problems.append(finding(FILE, self.document.where(path), found, expected))

    def findings(self) -> list[Finding]:
        goal = self.zone(("goal_zone",))
        build = self.zone(("build_zone",))
        bounds = self.zone(("simulation_bounds",))
        forbidden = [
            self.zone(("forbid_zones", index))
            for index in range(len(items_at(self.document.value, ("forbid_zones",))))
        ]
        zones = [each for each in (goal, build, *forbidden) if each]
        if bounds:
            self.inside(zones, bounds)
        forbid = [each for each in forbidden if each]
        if goal:
            self.apart(goal, forbid)
        self.moved(goal, forbid, bounds)
        self.unique(("forbid_zones",), "name")
        self.unique(("moving_parts",), "name")
        self.moving_parts()
        return self.problems

    def zone(self, path: Path) -> _Zone | None:
        """The box at a path, if it is one; corners in the wrong order are findings."""
        value = value_at(self.document.value, path)
        name = value.get("name") if isinstance(value, dict) else None
        corners = {
            key: value[key]
            for key in ("min_mm", "max_mm")
            if isinstance(value, dict) and key in value
        }
        try:
            box = Box.model_validate(corners)
        except ValidationError:
            return None
        for axis, letter in enumerate(AXES):
            low, high = box.min_mm[axis], box.max_mm[axis]
            if low >= high:
                found = f"{letter} from {low:.12g} to {high:.12g}"
                self.note((*path, "min_mm", axis), found, f"min_mm below max_mm in {letter}")
        solid = _solid_of(box)
        if solid is None:
            return None
        label = str(path[0]) if len(path) == 1 else f"{path[0]}[{path[1]}]"
        if isinstance(name, str):
            label += f" {shortened(name)}"
        return _Zone(path, label, solid)

    def inside(self, zones: list[_Zone], bounds: _Zone) -> None:
        for zone in zones:
            for axis, letter in enumerate(AXES):
                low, high = zone.solid.low[axis], zone.solid.high[axis]
                least, most = bounds.solid.low[axis], bounds.solid.high[axis]
                if low < least or high > most:
                    found = f"{zone.name} has {_range(letter, low, high)}"
                    expected = f"inside simulation_bounds, {_range(letter, least, most)}"
                    self.note(zone.path, found, expected)

    def apart(self, goal: _Zone, forbid: list[_Zone]) -> None:
        for zone in forbid:
            if goal.solid.meets(zone.solid):
                common = ", ".join(
                    _range(
                        letter,
                        max(goal.solid.low[axis], zone.solid.low[axis]),
                        min(goal.solid.high[axis], zone.solid.high[axis]),
                    )
                    for axis, letter in enumerate(AXES)
                )
                found = f"goal_zone and {zone.name} have in common {common}"
                self.note(zone.path, found, "nothing in common with goal_zone")

    def moved(self, goal: _Zone | None, forbid: list[_Zone], bounds: _Zone | None) -> None:
        scale = part_of(
            ScaleRange, self.document, ("moved_object", "static_randomization", "scale")
        )
        if scale and scale.min > scale.max:
            where: Path = ("moved_object", "static_randomization", "scale")
            self.note(where, f"from {scale.min:g} to {scale.max:g}", "min at most max")
            return
        try:
            moved = _MOVED.validate_python(value_at(self.document.value, ("moved_object",)))
        except ValidationError:
            return
        ball = ball_of(moved)
        start: Path = ("moved_object", "start_mm")
        reach = f"its ball of radius {ball.radius_mm:.6g} mm around {_centres(ball)}"
        for zone in forbid:
            if ball.meets(zone.solid):
                found = f"{reach} can meet {zone.name}: {_apart(ball, zone.solid)}"
                self.note(start, found, f"a start farther from {zone.name}")
        if goal and ball.touches(goal.solid):
            found = f"{reach} can touch goal_zone at the start: {_apart(ball, goal.solid)}"
            self.note(start, found, "a start apart from goal_zone")
        if bounds:
            for side, distance in ball.leaves(bounds.solid):
                found = (
                    f"{reach} can leave simulation_bounds at {side}: "
                    f"its centre comes to {float(distance):.6g} mm"
                )
                expected = f"at least {ball.radius_mm:.6g} mm between centre and {side}"
                self.note(start, found, expected)

    def unique(self, path: Path, key: str) -> None:
        """No two items of a list have the same name."""
        first: dict[str, int] = {}
        for index, item in enumerate(items_at(self.document.value, path)):
            name = item.get(key) if isinstance(item, dict) else None
            if isinstance(name, str) and first.setdefault(name, index) != index:
                found = f"{shortened(name)}, which {path[0]}[{first[name]}] has"
                self.note((*path, index, key), found, "a name of its own")

    def moving_parts(self) -> None:
        for index in range(len(items_at(self.document.value, ("moving_parts",)))):
            path: Path = ("moving_parts", index)
            part = part_of(MovingPart, self.document, path)
            if part is None:
                continue
            if part.type is PartType.MOTOR and part.control is None:
                self.note((*path, "control"), "nothing", "how the motor is controlled")
            elif part.type is PartType.PASSIVE and part.control is not None:
                found = f"a control, {part.control.mode}"
                self.note((*path, "control"), found, "none: a passive part has no control")
            elif part.control is not None:
                self.control(part, (*path, "control"))

    def control(self, part: MovingPart, path: Path) -> None:
        unit, other = ("deg", "mm") if part.dof.rotates else ("mm", "deg")
        for steps, position in _positions(part.control):
            if getattr(position, unit) is None or getattr(position, other) is not None:
                given = [key for key in ("deg", "mm") if getattr(position, key) is not None]
                found = f"a position in {' and '.join(given) or 'no unit'}"
                expected = f"the key {unit} alone, since the part's dof is {part.dof.value}"
                self.note((*path, *steps), found, expected)
        if isinstance(part.control, Waypoint):
            times = [each.at_s for each in part.control.waypoints]
            for index in range(1, len(times)):
                if times[index] <= times[index - 1]:
                    found = f"{times[index]:g} after {times[index - 1]:g}"
                    self.note((*path, "waypoints", index, "at_s"), found, "times that rise")
        if isinstance(part.control, Oscillate):
            low, high = getattr(part.control.low, unit), getattr(part.control.high, unit)
            if low is not None and high is not None and low >= high:
                self.note((*path, "low"), f"from {low:g} to {high:g}", "low below high")


def ball_of(moved: MovedSphere | MovedBox | MovedCylinder) -> Ball:
    """Where the object can be at the start, however it is turned."""
    size = moved.size
    scale = exact(moved.static_randomization.scale.max)
    if isinstance(size, SphereSize):
        radius2 = exact(size.radius_mm) ** 2
    elif isinstance(size, BoxSize):
        radius2 = sum(
            ((exact(edge) / 2) ** 2 for edge in (size.x_mm, size.y_mm, size.z_mm)), Fraction(0)
        )
    else:
        radius2 = _cylinder(size)
    start, spread = exact_point(moved.start_mm), spread_of(moved)
    low, high = (
        (
            start[0] + sign * spread[0],
            start[1] + sign * spread[1],
            start[2] + sign * spread[2],
        )
        for sign in (-1, 1)
    )
    return Ball(Solid(low, high), radius2 * scale**2)


def _cylinder(size: CylinderSize) -> Fraction:
    return exact(size.radius_mm) ** 2 + (exact(size.height_mm) / 2) ** 2


def _solid_of(box: Box) -> Solid | None:
    low, high = exact_point(box.min_mm), exact_point(box.max_mm)
    return Solid(low, high) if all(low[axis] < high[axis] for axis in range(3)) else None


def _positions(control: Any) -> Iterator[tuple[Path, Position]]:
    """The positions that a control names, each with its path."""
    for key, value in control:
        if isinstance(value, Position):
            yield (key,), value
        elif isinstance(value, list):
            yield from (((key, index), each) for index, each in enumerate(value))


def _range(letter: str, low: Fraction, high: Fraction) -> str:
    return f"{letter} from {float(low):.12g} to {float(high):.12g}"


def _centres(ball: Ball) -> str:
    return ", ".join(
        f"{letter} {float(ball.centres.low[axis]):.6g}"
        if ball.centres.low[axis] == ball.centres.high[axis]
        else f"{letter} {float(ball.centres.low[axis]):.6g} to {float(ball.centres.high[axis]):.6g}"
        for axis, letter in enumerate(AXES)
    )


def _apart(ball: Ball, zone: Solid) -> str:
    """How far the nearest centre is from a zone, and by axis."""
    gaps = ball.centres.gaps(zone)
    by_axis = ", ".join(
        f"{letter} {float(gap):.6g}" for letter, gap in zip(AXES, gaps, strict=True)
    )
    return f"the nearest centre is {math.sqrt(ball.distance2(zone)):.6g} mm away ({by_axis})"
