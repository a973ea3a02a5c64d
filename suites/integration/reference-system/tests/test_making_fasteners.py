"""Rigid pairs are held by what is found on their solids, and joints start there."""

from __future__ import annotations

import math
from typing import Any

import pytest
from build123d import Box, Cone, Cylinder, Pos, Rotation
from pydantic import ValidationError
from workbench_contract.connections import Connections
from workbench_contract.findings import Finding, Stage
from workbench_making import fasteners
from workbench_making.holes import cylinders

#: Of the two screws in the plates below.
PLACES = ((-20.0, 0.0), (20.0, 0.0))


def drilled(solid: Any, tool: Any, places: tuple[tuple[float, float], ...] = PLACES) -> Any:
    """A solid with the same hole at each place."""
    for x, y in places:
        solid -= Pos(x, y, 0) * tool
    return solid.solids()[0]


def cover(diameter_mm: float = 4, *, tilt_deg: float = 0, shift_mm: float = 0, lift_mm: float = 0) -> Any:
    """A plate from z = 0 to 5 with two holes through it."""
    tool = Pos(shift_mm, 0, 0) * Rotation(tilt_deg, 0, 0) * Cylinder(diameter_mm / 2, 30)
    return Pos(0, 0, lift_mm) * drilled(Pos(0, 0, 2.5) * Box(60, 40, 5), tool)


def base(diameter_mm: float = 4, *, depth_mm: float = 8, tip: bool = False) -> Any:
    """A block from z = −20 to 0 with two blind holes."""
    tool = Pos(0, 0, -depth_mm / 2) * Cylinder(diameter_mm / 2, depth_mm)
    if tip:
        tool += Pos(0, 0, -depth_mm - 0.6) * Cone(0.001, diameter_mm / 2, 1.2)
    return drilled(Pos(0, 0, -10) * Box(60, 40, 20), tool)


def hole(of: str, x: float, z: float, **changed: Any) -> dict[str, Any]:
    """One side of a screw."""
    given = {"part": of, "at_mm": (x, 0.0, z), "axis": (0.0, 0.0, 1.0), "diameter_mm": 4.0,
             "holds": of == "base"}
    return given | changed


def screw(number: int, *, cover: dict[str, Any] | None = None, base: dict[str, Any] | None = None,
          **changed: Any) -> dict[str, Any]:
    """A screw of 4 × 10 mm: through 5 mm of the cover, 5 mm into the base."""
    x, _ = PLACES[number]
    given = {
        "name": f"screw{number}",
        "part_id": "m4x10",
        "diameter_mm": 4.0,
        "length_mm": 10.0,
        "holes": [hole("cover", x, 2.5, **(cover or {})), hole("base", x, -2.0, **(base or {}))],
    }
    return given | changed


def judged(
    screws: list[dict[str, Any]], *, parts: tuple[str, str] = ("cover", "base"), **solids: Any
) -> list[Finding]:
    """Findings about one pair, plates as above unless others are given."""
    given = {"cover": cover(), "base": base()} | solids
    connections = Connections.model_validate({"pairs": [{"parts": parts, "fasteners": screws}]})
    found = fasteners.check(connections, given, file="assembly.yaml")
    assert {(Stage.VALID, "assembly.yaml")} >= {(row.stage, row.file) for row in found}
    return found


def both(**changed: Any) -> list[dict[str, Any]]:
    """Two screws, changed alike."""
    return [screw(0, **changed), screw(1, **changed)]


def test_two_screws_hold_a_pair() -> None:
    """Nothing is found."""
    assert [] == judged(both())


def test_either_part_may_be_named_first() -> None:
    """Of the pair, and of the holes."""
    turned = [row | {"holes": row["holes"][::-1]} for row in both()]

    assert [] == judged(turned, parts=("base", "cover"))


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_fasteners_do_not_hold(count: int) -> None:
    """One is an axis to turn about."""
    (row,) = judged(both()[:count])

    assert "pairs[0].fasteners" == row.where
    assert f"{count} between cover and base" == row.found


def test_two_fasteners_in_one_hole_are_one() -> None:
    """Each needs a hole of its own, in both parts."""
    found = judged([screw(0), screw(0)])

    assert ["screw0 in a hole of screw0"] * 2 == [row.found for row in found]


@pytest.mark.parametrize(("apart_mm", "fits"), [(0.0, True), (0.01, True), (0.011, False), (-0.02, False)])
def test_holes_are_equally_wide_to_a_hundredth(apart_mm: float, fits: bool) -> None:
    """As wide as the solids have them, whatever is claimed."""
    wide = 4 + apart_mm
    found = judged(both(base={"diameter_mm": wide}, diameter_mm=3.9), base=base(wide))

    assert fits == (not found)
    assert all("equal diameters" in row.expected for row in found)


def test_a_claimed_diameter_is_the_solids() -> None:
    """A description that is right about nothing but itself."""
    found = judged(both(cover={"diameter_mm": 4.02}))

    assert ["4.02 mm"] * 2 == [row.found for row in found]
    assert {"4 mm, as on the solid of cover"} == {row.expected for row in found}


@pytest.mark.parametrize(("tilt_deg", "fits"), [(0.0, True), (0.5, True), (0.52, False), (3.0, False)])
def test_axes_are_aligned_to_half_a_degree(tilt_deg: float, fits: bool) -> None:
    """A hole that was drilled aslant."""
    slope = math.radians(tilt_deg)
    claimed = {"axis": (0.0, -math.sin(slope), math.cos(slope)),
               "at_mm": (0.0, -2.5 * math.tan(slope), 2.5)}
    screws = [
        screw(number, cover=claimed | {"at_mm": (x, *claimed["at_mm"][1:])})
        for number, (x, _) in enumerate(PLACES)
    ]
    found = judged(screws, cover=cover(tilt_deg=tilt_deg))

    assert fits == (not found)
    assert {"axes aligned to 0.5°"} >= {row.expected for row in found}


def test_a_claimed_axis_is_the_solids() -> None:
    """Its direction either way and its length say nothing."""
    assert [] == judged(both(cover={"axis": (0.0, 0.0, -7.0)}))
    found = judged(both(cover={"axis": (0.0, 1.0, 0.0)}))

    assert ["90.00° off the hole's"] * 2 == [row.found for row in found]
    assert ["a vector of length 0"] * 2 == [
        row.found for row in judged(both(cover={"axis": (0.0, 0.0, 0.0)}))
    ]


@pytest.mark.parametrize(("shift_mm", "fits"), [(0.0, True), (0.1, True), (0.12, False), (2.0, False)])
def test_axes_are_one_axis(shift_mm: float, fits: bool) -> None:
    """Parallel is not aligned."""
    screws = [
        screw(number, cover={"at_mm": (x + shift_mm, 0.0, 2.5)}) for number, (x, _) in enumerate(PLACES)
    ]
    found = judged(screws, cover=cover(shift_mm=shift_mm))

    assert fits == (not found)
    assert {"one axis, to 0.1 mm"} >= {row.expected for row in found}


@pytest.mark.parametrize(
    ("holds", "found"),
    [((False, False), "neither side holds it"), ((True, True), "both sides hold it")],
)
def test_one_side_holds_a_fastener(holds: tuple[bool, bool], found: str) -> None:
    """Neither none nor both."""
    rows = judged(both(cover={"holds": holds[0]}, base={"holds": holds[1]}))

    assert [found] * 2 == [row.found for row in rows]


@pytest.mark.parametrize(("length_mm", "fits"), [(13.0, True), (9.0, True), (8.99, False), (5.0, False), (4.0, False)])
def test_a_fastener_engages_by_its_diameter(length_mm: float, fits: bool) -> None:
    """Of 9 mm, 5 are in the cover and 4 in the base."""
    found = judged(both(length_mm=length_mm))

    assert fits == (not found)
    assert {"at least 4 mm, one diameter"} >= {row.expected for row in found}


def test_a_hole_may_be_too_shallow_to_engage() -> None:
    """3 mm deep is not 4, and the screw does not go in."""
    found = judged(both(), base=base(depth_mm=3))

    assert {"3 mm in the part that holds it", "10 mm, 2 mm beyond the hole's bottom"} == {
        row.found for row in found
    }


@pytest.mark.parametrize("tip", [False, True])
def test_a_fastener_ends_above_the_bottom(tip: bool) -> None:
    """A bottom that is flat, or the tip of a drill."""
    assert [] == judged(both(length_mm=13.0), base=base(tip=tip))
    found = judged(both(length_mm=13.1), base=base(tip=tip))

    assert ["13.1 mm, 0.1 mm beyond the hole's bottom"] * 2 == [row.found for row in found]


def test_it_may_be_held_by_the_upper_part() -> None:
    """Screwed in from below: through the base, which is drilled through, into the cover."""
    through = drilled(Pos(0, 0, -10) * Box(60, 40, 20), Cylinder(2, 60))
    screws = both(length_mm=24.0, cover={"holds": True}, base={"holds": False})

    assert [] == judged(screws, base=through)


def test_parts_that_do_not_touch_are_not_held() -> None:
    """A tenth of a millimetre is as good as touching."""
    high = [screw(n, cover={"at_mm": (x, 0.0, 3.0)}) for n, (x, _) in enumerate(PLACES)]

    assert [] == judged(high, cover=cover(lift_mm=0.1))
    (row,) = judged(high, cover=cover(lift_mm=0.5))
    assert "cover and base, 0.5 mm apart" == row.found


@pytest.mark.parametrize(
    ("diameter_mm", "expected"),
    [(4.0, set()), (3.2, set()), (3.1, {"a hole of at most 3.875 mm"}),
     (4.02, {"a shank that goes into its holes"})],
)
def test_a_shank_fits_its_holes(diameter_mm: float, expected: set[str]) -> None:
    """It goes in, and does not fall through."""
    assert expected == {row.expected for row in judged(both(diameter_mm=diameter_mm, length_mm=12.0))}


@pytest.mark.parametrize(
    "at_mm", [(0.0, 0.0, 2.5), (-20.0, 0.2, 2.5), (-20.0, 0.0, 7.0), (-20.0, 0.0, -2.0)]
)
def test_a_hole_that_is_not_there_holds_nothing(at_mm: tuple[float, float, float]) -> None:
    """Nowhere, beside its axis, above it, in the other part."""
    found = judged([screw(0, cover={"at_mm": at_mm}), screw(1)])

    assert ["pairs[0].fasteners[0].holes[0]"] == [row.where for row in found]
    assert "no hole of cover at" in found[0].found


def test_a_boss_is_no_hole() -> None:
    """A cylinder of the right size, full of material."""
    bossed = (Pos(0, 0, 2.5) * Box(60, 40, 5)).solids()[0]
    for x, y in PLACES:
        bossed = bossed + Pos(x, y, 5) * Cylinder(2, 10)
    found = judged(both(), cover=bossed.solids()[0])

    assert 2 == sum("no hole of cover" in row.found for row in found)


def test_parts_are_those_of_the_design() -> None:
    """The choices are named; nothing else is said of the pair."""
    (row,) = judged(both(), parts=("cover", "bottom"))

    assert ("bottom, no part of the design", "one of base, cover") == (row.found, row.expected)
    assert ["cover twice"] == [row.found for row in judged(both(), parts=("cover", "cover"))]


def test_a_fastener_is_in_both_parts_of_its_pair() -> None:
    """Twice in one part is in one part."""
    found = judged([screw(0, base={"part": "cover"}), screw(1)])

    assert ["holes in cover and cover"] == [row.found for row in found]


@pytest.mark.parametrize(
    ("movement", "at_mm", "axis", "starts"),
    [
        ("revolute", (-20.0, 0.0, 2.5), (0.0, 0.0, 1.0), True),
        ("revolute", (-20.0, 0.0, 2.5), (1.0, 0.0, 0.0), False),
        ("revolute", (0.0, 0.0, 2.5), (0.0, 0.0, 1.0), False),
        ("revolute", (0.0, 0.0, 5.0), (1.0, 0.0, 0.0), False),
        ("prismatic", (0.0, 0.0, 5.0), (1.0, 0.0, 0.0), True),
        ("prismatic", (0.0, 0.0, 5.0), (0.0, 0.0, 1.0), False),
        ("prismatic", (0.0, 0.0, 9.0), (1.0, 0.0, 0.0), False),
        ("prismatic", (-20.0, 0.0, 2.5), (0.0, 0.0, 1.0), True),
        ("revolute", (-20.0, 0.0, 2.5), (0.0, 0.0, 0.0), False),
    ],
)
def test_a_joint_starts_from_a_feature(
    movement: str, at_mm: tuple[float, ...], axis: tuple[float, ...], starts: bool
) -> None:
    """An axis of a hole or boss, or for a slide a plane; not from the air."""
    joint = {"name": "j", "part": "cover", "movement": movement, "at_mm": at_mm, "axis": axis}
    connections = Connections.model_validate({"pairs": [], "joints": [joint]})
    found = fasteners.check(connections, {"cover": cover()}, file="assembly.yaml")

    assert starts == (not found)
    assert {"joints[0]", "joints[0].axis"} >= {row.where for row in found}


def test_a_joint_of_no_part_is_refused() -> None:
    """The choices are named."""
    joint = {"name": "j", "part": "arm", "movement": "revolute", "at_mm": (0.0, 0.0, 0.0),
             "axis": (0.0, 0.0, 1.0)}
    connections = Connections.model_validate({"pairs": [], "joints": [joint]})
    (row,) = fasteners.check(connections, {"cover": cover()}, file="assembly.yaml")

    assert ("joints[0].part", "one of cover") == (row.where, row.expected)


def test_it_does_not_matter_where_an_assembly_lies() -> None:
    """Turned and moved as a whole, it still holds; turned without its holes, it does not."""
    move = Pos(100, -50, 30) * Rotation(90, 0, 0)
    turned = [
        row | {"holes": [
            use | {"at_mm": (use["at_mm"][0] + 100, -use["at_mm"][2] - 50, 30.0),
                   "axis": (0.0, -1.0, 0.0)}
            for use in row["holes"]
        ]}
        for row in both()
    ]

    assert [] == judged(turned, cover=move * cover(), base=move * base())
    assert 4 == sum("no hole of" in row.found for row in judged(turned))


def test_holes_are_read_from_the_solid() -> None:
    """Diameter, depth, and whether there is a bottom."""
    found = cylinders(base(tip=True))

    assert [(4.0, 8.0, True, True)] * 2 == [
        (round(row.diameter_mm, 6), round(row.depth_mm, 6), row.hollow, row.blind_start != row.blind_end)
        for row in found
    ]
    assert all(not row.blind_start and not row.blind_end for row in cylinders(cover()))


@pytest.mark.parametrize(
    "changed", [{"diameter_mm": 0.0}, {"diameter_mm": "4"}, {"at_mm": (0.0, 0.0)}, {"holds": 1},
                {"axis": (math.nan, 0.0, 1.0)}, {"more": 1}]
)
def test_a_description_is_read_strictly(changed: dict[str, Any]) -> None:
    """No text for numbers, no unknown keys."""
    with pytest.raises(ValidationError):
        Connections.model_validate({"pairs": [{"parts": ("a", "b"), "fasteners": both(cover=changed)}]})
