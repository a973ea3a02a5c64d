"""What solids share, and whether the moved object has room between them: against closed forms."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from build123d import Box, Cylinder, Pos, Solid, Sphere
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from workbench_contract.findings import Stage
from workbench_contract.objectives import MovedObject
from workbench_making.sharing import NamedSolid, intersects, named, passing_through, shared_mm3
from workbench_making.starts import object_at, without_room

_MOVED = TypeAdapter(MovedObject)


def solid(shape: Any, name: str = "one") -> NamedSolid:
    (only,) = shape.solids()
    return named(name, only)


def block(low: tuple[float, ...], high: tuple[float, ...], name: str = "block") -> NamedSolid:
    """A box between two corners."""
    sides = [most - least for least, most in zip(low, high, strict=True)]
    middle = [(most + least) / 2 for least, most in zip(low, high, strict=True)]
    return solid(Pos(*middle) * Box(*sides), name)


def moved(shape: str, **size: float) -> Any:
    value = {"label": "thing", "shape": shape, "size": size, "start_mm": [0, 0, 0]}
    return _MOVED.validate_python(value)


BALL = moved("sphere", radius_mm=5)
CUBE = moved("box", x_mm=2, y_mm=4, z_mm=6)
CAN = moved("cylinder", radius_mm=3, height_mm=8)
#: Its upper face is z = 0.
FLOOR = block((-50, -50, -10), (50, 50, 0), "floor")


def cap(radius: float, depth: float) -> float:
    """The volume of a sphere's cap."""
    return math.pi * depth**2 * (3 * radius - depth) / 3


@pytest.mark.parametrize(
    ("volume", "verdict"),
    [(0.0, False), (0.1, False), (0.1 + 4e-7, False), (0.100001, True), (0.11, True)],
)
def test_what_may_be_shared(volume: float, verdict: bool) -> None:
    """Exactly 0.1 mm³ is no intersection; a millionth more is one."""
    assert verdict is intersects(volume)


# 10 × 10 mm of the upper face, by so much.
@pytest.mark.parametrize(
    ("depth", "verdict"), [(-0.01, False), (0, False), (0.001, False), (0.0010001, True), (0.01, True)]
)
def test_two_solids(depth: float, verdict: bool) -> None:
    """Solids that touch, or share up to 0.1 mm³, are sound; else both are named, with what they share."""
    other = block((0, 0, -depth), (10, 10, 5), "cube")
    found = passing_through([FLOOR, other], file="geometry.py")

    assert 100 * max(depth, 0) == pytest.approx(shared_mm3(FLOOR, other), abs=1e-9)
    assert verdict is bool(found)
    for each in found:
        assert (Stage.PRICE, "geometry.py", "floor") == (each.stage, each.file, each.where)
        assert each.found.endswith("mm³ of it within cube")


def test_each_pair_is_named_though_names_are_the_same() -> None:
    """Of four solids that meet in three pairs, two of one name, each pair is a finding."""
    row = [block((x, 0, 0), (x + 11, 10, 10), name) for x, name in ((0, "a"), (10, "b"), (20, "a"))]
    found = passing_through([*row, block((30, 0, 0), (40, 9, 9), "c")], file="f")

    assert [("a", "b"), ("b", "a"), ("a", "c")] == [
        (each.where, each.found.rpartition("within ")[2]) for each in found
    ]


@pytest.mark.parametrize("depth", [-0.01, 0, 0.01, 0.08, 0.0801, 2.5, 5, 7.5, 10])
def test_a_ball_and_a_floor(depth: float) -> None:
    """A ball shares its cap with a floor; up to 0.1 mm³ it has room."""
    started = object_at(BALL, (1.5, -2.25, 5 - depth), 1)
    expected = cap(5, max(depth, 0))

    assert expected == pytest.approx(shared_mm3(started, FLOOR), abs=1e-6)
    assert (expected > 0.1) is bool(without_room(started, [FLOOR]))


@pytest.mark.parametrize(
    ("thing", "scale", "half", "face"),
    [
        *((CUBE, scale, half, math.prod(sides)) for scale in (1, 0.5) for half, sides in (
            ((1, 0, 0), (4, 6)), ((0, 2, 0), (2, 6)), ((0, 0, 3), (2, 4)))),
        *((CAN, scale, (0, 0, 4), math.pi * 9) for scale in (1, 2.5)),
    ],
)  # fmt: skip
def test_where_a_face_is(thing: Any, scale: float, half: Any, face: float) -> None:
    """A box lies along the axes, a cylinder is upright, both around their centres, times their scale."""
    axis = next(number for number, value in enumerate(half) if value)
    for sign, depth in itertools.product((-1, 1), (-0.01, 0.01)):
        centre = [0.0, 0.0, 0.0]
        centre[axis] = sign * (half[axis] * scale - depth)
        low, high = [-60.0] * 3, [60.0] * 3
        (high if sign > 0 else low)[axis] = 0.0
        wall = block(tuple(low), tuple(high), "wall")
        started = object_at(thing, (centre[0], centre[1], centre[2]), scale)
        expected = face * scale**2 * max(depth, 0)

        assert expected == pytest.approx(shared_mm3(started, wall), abs=1e-6)
        assert (expected > 0.1) is bool(without_room(started, [wall]))


def test_inside() -> None:
    """An object that is wholly inside is found however small it is; in a hollow of its size it has room."""
    for scale, whole in ((1, True), (0.02, True), (0.0002, True)):
        (met,) = without_room(object_at(BALL, (0, 0, -5), scale), [FLOOR])

        assert whole is met.whole
    # Half of so small a ball is less than solids may share.
    assert [] == without_room(object_at(BALL, (0, 0, 0), 0.04), [FLOOR])
    (met,) = without_room(object_at(BALL, (0, 0, 0), 1), [FLOOR])
    assert not met.whole
    hollow = solid(Box(40, 40, 40) - Sphere(5), "hollow")
    bore = solid(Box(40, 40, 40) - Cylinder(3, 40), "bore")
    assert [] == without_room(object_at(BALL, (0, 0, 0), 1), [hollow])
    assert [] == without_room(object_at(CAN, (0, 0, 2), 1), [bore])
    assert [0] == [met.index for met in without_room(object_at(BALL, (0, 0, 0), 1.01), [hollow])]
    assert [0] == [met.index for met in without_room(object_at(CAN, (0, 0, 2), 1.01), [bore])]


_NUMBERS = st.integers(-6, 6)
_CORNER = st.tuples(_NUMBERS, _NUMBERS, _NUMBERS)
_SIDES = st.tuples(*[st.integers(1, 6)] * 3)


@given(st.lists(st.tuples(_CORNER, _SIDES), min_size=1, max_size=4), _CORNER, st.integers(1, 2))
def test_boxes_by_intervals(boxes: Any, centre: Any, scale: int) -> None:
    """A box among boxes shares what their intervals share, and has no room just where that is something."""
    halves = [scale * edge / 2 for edge in (2, 4, 6)]
    solids, expected = [], {}
    for index, (low, sides) in enumerate(boxes):
        high = [least + side for least, side in zip(low, sides, strict=True)]
        solids.append(block(low, tuple(high), f"box-{index}"))
        lengths = [
            min(most, at + half) - max(least, at - half)
            for least, most, at, half in zip(low, high, centre, halves, strict=True)
        ]
        if min(lengths) > 0:
            expected[index] = math.prod(lengths)
    found = without_room(object_at(CUBE, tuple(map(float, centre)), scale), solids)

    assert expected == pytest.approx({met.index: met.volume_mm3 for met in found})
    whole = {index for index, volume in expected.items() if volume == 48 * scale**3}
    assert whole == {met.index for met in found if met.whole}


def test_a_solid_of_build123d_is_measured_as_it_lies() -> None:
    """A solid that was moved has its box, and meets what is there."""
    away = named("away", Solid.make_box(1, 1, 1).moved(Pos(100, 0, 0)))

    assert (100, 0, 0) == away.box.min_mm
    assert 1 == pytest.approx(shared_mm3(away, block((99, -1, -1), (102, 2, 2))))
