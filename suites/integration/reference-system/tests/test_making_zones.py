"""A design lies in its build zone, its border included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench_contract.findings import Stage
from workbench_making.solid import Box
from workbench_making.zones import around, outside

ZONE = Box(min_mm=(-10, 0, 5), max_mm=(10, 20, 25))


@pytest.mark.parametrize(
    ("low", "high", "where"),
    [
        ((-10, 0, 5), (10, 20, 25), []),
        ((0, 1, 6), (1, 2, 7), []),
        ((-10.001, 0, 5), (10, 20, 25), ["min_mm.x"]),
        ((-10, -0.001, 5), (10, 20.001, 25), ["min_mm.y", "max_mm.y"]),
        ((-10, 0, 4.999), (10, 20, 25.001), ["min_mm.z", "max_mm.z"]),
        ((-11, -1, 4), (11, 21, 26), ["min_mm.x", "max_mm.x", "min_mm.y", "max_mm.y", "min_mm.z",
                                      "max_mm.z"]),
        ((30, 1, 6), (31, 2, 7), ["max_mm.x"]),
        ((-10.000001, 0, 5), (10.000001, 20, 25), []),
    ],
)
def test_each_side_that_is_left_is_named(
    low: tuple[float, float, float], high: tuple[float, float, float], where: list[str]
) -> None:
    """Part, side and axis; touching is inside, and so is the noise of geometry."""
    found = outside("arm", Box(min_mm=low, max_mm=high), ZONE, file="design.py")

    assert [f"arm.{side}" for side in where] == [row.where for row in found]
    assert {Stage.PRICE} >= {row.stage for row in found}


def test_a_finding_names_value_and_limit() -> None:
    """Both in mm."""
    (row,) = outside(
        "arm", Box(min_mm=(-10.25, 0, 5), max_mm=(10, 20, 25)), ZONE, file="design.py"
    )

    assert ("-10.25 mm", "at least -10 mm, the build zone's border") == (row.found, row.expected)


_NUMBERS = st.floats(-100, 100)
_POINTS = st.tuples(_NUMBERS, _NUMBERS, _NUMBERS)


@given(st.lists(_POINTS, min_size=2, max_size=8))
def test_the_box_around_boxes_holds_each_and_no_more(points: list[tuple[float, float, float]]) -> None:
    """Every box is inside it, and each of its sides is some box's."""
    boxes = [Box(min_mm=point, max_mm=point) for point in points]
    found = around(boxes)
    assert found is not None

    assert not [row for box in boxes for row in outside("part", box, found, file="f")]
    for axis in range(3):
        assert {found.min_mm[axis], found.max_mm[axis]} <= {point[axis] for point in points}


def test_nothing_has_no_box() -> None:
    """A design without parts."""
    assert around([]) is None
