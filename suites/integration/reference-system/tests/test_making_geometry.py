"""What can be made of a solid, on solids whose undercuts, drafts, walls and overhangs are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from build123d import (
    Axis,
    Box,
    Circle,
    Compound,
    Cone,
    Cylinder,
    GeomType,
    Helix,
    Plane,
    Pos,
    Rectangle,
    RectangleRounded,
    Rotation,
    Shell,
    Sphere,
    Torus,
    export_brep,
    extrude,
    fillet,
    loft,
    mirror,
    sweep,
)
from workbench_contract.findings import Finding, Stage
from workbench_making import configuration, solid
from workbench_making.configuration import Configuration
from workbench_making.manufacturability import Asked, Measured, check

Maker = Callable[[], Any]


def _configuration() -> Configuration:
    found, _ = configuration.read(configuration.shipped())
    assert found is not None
    return found


CONFIG = _configuration()
MATERIALS = {
    "cnc": "aluminium_6061", "injection_moulding": "abs", "print": "pla_filament"
}


def judged(shape: Any, method: str, **asked: Any) -> tuple[Measured | None, list[Finding]]:
    """Measures or findings about a shape, in the shipped configuration's shop."""
    wanted = Asked(method=method, material=MATERIALS[method], **asked)
    found, findings = check(shape, wanted, CONFIG, file="part.py")
    assert (found is None) == bool(findings)
    assert {(Stage.VALID, "part.py")} >= {(row.stage, row.file) for row in findings}
    return found, findings


def seen(shape: Any, method: str, **asked: Any) -> dict[str, int]:
    """How often each kind of finding was made, by the words before its first number."""
    kinds: dict[str, int] = {}
    for row in judged(shape, method, **asked)[1]:
        words = [word for word in row.found.replace(":", " ").split() if not word[0].isdigit()]
        kind = " ".join(words[1:3] if words[0] in ("a", "an") else words[:2])
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


def block() -> Any:
    """40 × 30 × 20 mm."""
    return Box(40, 30, 20)


def pocket(radius_mm: float) -> Any:
    """A block with a pocket 8 mm deep; its inner corners have that radius."""
    outline = RectangleRounded(20, 10, radius_mm) if radius_mm else Rectangle(20, 10)
    return block() - extrude(Plane.XY.offset(2) * outline, amount=20)


def mouthed(radius_mm: float, mouth_mm: float) -> Any:
    """A hole through a block, one end of which is rounded outwards."""
    made = block() - Cylinder(radius_mm, 40)
    return fillet(made.edges().filter_by(GeomType.CIRCLE).sort_by(Axis.Z)[-1], mouth_mm)


def floored(radius_mm: float, floor_mm: float) -> Any:
    """A blind hole in a block, whose floor is rounded."""
    made = block() - Pos(0, 0, 5) * Cylinder(radius_mm, 12)
    return fillet(made.edges().filter_by(GeomType.CIRCLE).sort_by(Axis.Z)[0], floor_mm)


def boss(radius_mm: float) -> Any:
    """A boss on a plate, with a fillet around its foot."""
    made = Box(40, 30, 5) + Pos(0, 0, 5) * Cylinder(6, 10)
    foot = made.edges().filter_by(GeomType.CIRCLE).sort_by(Axis.Z)[0]
    return fillet(foot, radius_mm)


def tray(draft_deg: float, *, wall_mm: float = 2.0, height_mm: float = 15.0) -> Any:
    """An open tray, wider at its top; its floor is 2 mm thick."""
    slope, floor_mm = math.tan(math.radians(draft_deg)), 2.0

    def outline(z_mm: float, inset_mm: float) -> Any:
        x, y = (side - 2 * inset_mm + 2 * z_mm * slope for side in (40, 30))
        return Pos(0, 0, z_mm) * Rectangle(x, y)

    outer = loft([outline(0, 0), outline(height_mm, 0)])
    return outer - loft([outline(floor_mm, wall_mm), outline(height_mm, wall_mm)])


def gate(span_mm: float) -> Any:
    """A block on two feet, that far apart."""
    return Pos(0, 0, 10) * Box(40, 20, 20) - Pos(0, 0, 5) * Box(span_mm, 20, 10)


def hopper(angle_deg: float) -> Any:
    """A cone that stands on its small end; its side hangs over by that angle."""
    return Cone(2, 2 + 20 * math.tan(math.radians(angle_deg)), 20)


MILLED: dict[str, tuple[Maker, dict[str, int]]] = {
    "block": (block, {}),
    "through hole": (lambda: block() - Cylinder(5, 40), {}),
    "hole of the smallest drill": (lambda: block() - Cylinder(0.5, 40), {}),
    "hole below the smallest drill": (lambda: block() - Cylinder(0.49, 40), {"hole of": 1}),
    "hole across": (lambda: block() - Rotation(0, 90, 0) * Cylinder(4, 60), {}),
    "crossing holes": (
        lambda: block() - Cylinder(4, 40) - Rotation(90, 0, 0) * Cylinder(2, 60), {}
    ),
    "slanted hole": (
        lambda: block() - Rotation(0, 30, 0) * Cylinder(3, 60), {"undercut no": 1}
    ),
    "counterbore": (
        lambda: block() - Pos(0, 0, 5) * Cylinder(3, 12) - Pos(0, 0, 9) * Cylinder(6, 4), {}
    ),
    "drilled tip": (
        lambda: block() - Pos(0, 0, 5) * Cylinder(3, 12) - Pos(0, 0, -2) * Cone(0.001, 3, 2), {}
    ),
    "hole with a rounded mouth": (lambda: mouthed(1.0, 1.0), {}),
    "hole with a rounded floor": (lambda: floored(4, 0.5), {}),
    "hole with a floor rounded too little": (lambda: floored(4, 0.4), {"inner radius": 1}),
    "pocket of the smallest tool": (lambda: pocket(1.5), {}),
    "pocket below the smallest tool": (lambda: pocket(1.49), {"inner radius": 4}),
    "pocket without radius": (lambda: pocket(0), {"inner corner": 4}),
    "step": (lambda: block() - Pos(10, 0, 5) * Box(20, 30, 10), {}),
    "slot of the smallest tool": (lambda: block() - Pos(0, 0, 5) * Box(40, 3, 10), {}),
    "slot below the smallest tool": (
        lambda: block() - Pos(0, 0, 5) * Box(40, 2.99, 10), {"gap of": 2}
    ),
    "groove of a sharp bottom": (
        lambda: block() - Pos(0, 0, 10) * Rotation(45, 0, 0) * Box(40, 6, 6), {"inner corner": 1}
    ),
    # Open at its ends: its walls are milled from there, four long corners are not.
    "t slot, open": (
        lambda: block() - Pos(0, 0, 5) * Box(40, 8, 10) - Box(40, 16, 4), {"inner corner": 4}
    ),
    # Closed: floor, both ends, both ceilings, both sides are out of reach.
    "t slot, closed": (
        lambda: Box(60, 60, 20) - Pos(0, 0, 5) * Box(20, 8, 10) - Box(20, 16, 4),
        {"undercut no": 7},
    ),
    "cavity": (lambda: block() - Box(10, 10, 10), {"undercut no": 6}),
    "boss": (lambda: Box(40, 30, 5) + Pos(0, 0, 5) * Cylinder(6, 10), {}),
    "boss, foot of the smallest ball": (lambda: boss(0.5), {}),
    "boss, foot below the smallest ball": (lambda: boss(0.45), {"inner radius": 1}),
    "sphere": (lambda: Sphere(10), {}),
    "ring": (lambda: Torus(30, 8), {}),
    "as large as the machine": (lambda: Box(500, 400, 300), {}),
    "larger than the machine": (lambda: Box(500.01, 400, 300.01), {"mm along": 2}),
}


@pytest.mark.parametrize("name", MILLED)
def test_what_a_mill_makes(name: str) -> None:
    """Findings of each kind are as many as faces or edges that cannot be made."""
    made, expected = MILLED[name]

    assert expected == seen(made(), "cnc")


def cup(wall_mm: float, *, radius_mm: float = 20, height_mm: float = 25) -> Any:
    """A round tray with 2° of draft; its floor is 2 mm thick."""
    slope, floor_mm = math.tan(math.radians(2)), 2.0

    def cone(inset_mm: float, low_mm: float) -> Any:
        low, high = (radius_mm - inset_mm + z * slope for z in (low_mm, height_mm))
        return Pos(0, 0, (low_mm + height_mm) / 2) * Cone(low, high, height_mm - low_mm)

    return cone(0, 0) - cone(wall_mm, floor_mm)


MOULDED: dict[str, tuple[Maker, dict[str, int]]] = {
    "tray": (lambda: tray(2), {}),
    "tray of the least draft": (lambda: tray(1), {}),
    "tray below the least draft": (lambda: tray(0.97), {"draft of": 8}),
    "tray without draft": (lambda: tray(0), {"draft of": 8}),
    # Outside and inside of the four walls.
    "tray of a thin wall": (lambda: tray(2, wall_mm=0.99), {"wall of": 8}),
    "tray of the least wall": (lambda: tray(2, wall_mm=1.002), {}),
    "tray of the greatest wall": (lambda: tray(2, wall_mm=4), {}),
    "tray of a thick wall": (lambda: tray(2, wall_mm=4.2), {"wall of": 8}),
    # Round faces are cut into few and long triangles.
    "cup": (lambda: cup(2), {}),
    "cup of a thin wall": (lambda: cup(0.9), {"wall of": 2}),
    "cup of a thick wall": (lambda: cup(4.6), {"wall of": 2}),
    # A hole through both walls: two short tunnels.
    "tray with a window": (
        lambda: tray(2) - Pos(0, 0, 8) * Rotation(90, 0, 0) * Cylinder(2, 100),
        {"undercut neither": 2},
    ),
    "half a ball, hollow": (
        lambda: Sphere(20) - Sphere(18) - Pos(0, 0, -20) * Box(80, 80, 40), {}
    ),
    "ball": (lambda: Sphere(2), {}),
    "thick ball": (lambda: Sphere(8), {"wall of": 1}),
    "plate without draft": (lambda: Box(40, 30, 2), {"draft of": 4}),
}


@pytest.mark.parametrize("name", MOULDED)
def test_what_a_mould_makes(name: str) -> None:
    """Findings of each kind are as many as faces that cannot be made."""
    made, expected = MOULDED[name]

    assert expected == seen(made(), "injection_moulding")


def test_a_mould_parts_along_the_axis_that_is_asked_for() -> None:
    """A tray on its side leaves its mould along y, and not along z."""
    lying = Rotation(90, 0, 0) * tray(2)

    assert {} == seen(lying, "injection_moulding", draw="y")
    assert "undercut neither" in seen(lying, "injection_moulding", draw="z")


PRINTED: dict[str, tuple[Maker, dict[str, int]]] = {
    "block": (block, {}),
    "hopper of the greatest overhang": (lambda: hopper(45), {}),
    "hopper over the greatest overhang": (lambda: hopper(45.2), {"overhang of": 1}),
    "the same upside down": (lambda: Rotation(180, 0, 0) * hopper(50), {}),
    "bridge of the greatest span": (lambda: gate(8), {}),
    "bridge over the greatest span": (lambda: gate(8.02), {"overhang of": 1}),
    # One side alone holds each ceiling.
    "mushroom": (
        lambda: Pos(0, 0, 10) * Box(5, 20, 20) + Pos(0, 0, 22) * Box(30, 20, 4),
        {"overhang of": 2},
    ),
    "hole across": (lambda: Box(20, 20, 20) - Rotation(90, 0, 0) * Cylinder(3, 30), {}),
    "large hole across": (
        lambda: Box(20, 20, 20) - Rotation(90, 0, 0) * Cylinder(8, 30), {"overhang of": 1}
    ),
    "ball": (lambda: Sphere(20), {"overhang of": 1}),
    "least wall": (lambda: Box(20, 0.9, 20), {}),
    "thin wall": (lambda: Box(20, 0.89, 20), {"wall of": 2}),
    "tube of the least wall": (lambda: Cylinder(10, 20) - Cylinder(9.1, 30), {}),
    "tube of a thin wall": (lambda: Cylinder(10, 20) - Cylinder(9.15, 30), {"wall of": 2}),
    "as large as the printer": (lambda: Box(250, 210, 200), {}),
    "larger than the printer": (lambda: Box(250, 210, 200.01), {"mm along": 1}),
}


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_printer_makes(name: str) -> None:
    """Findings of each kind are as many as faces that cannot be made."""
    made, expected = PRINTED[name]

    assert expected == seen(made(), "print")


def open_box() -> Any:
    """Five faces of a cube, which some call a solid."""
    from build123d import Solid
    from OCP.BRep import BRep_Builder
    from OCP.TopoDS import TopoDS_Solid

    made = TopoDS_Solid()
    builder = BRep_Builder()
    builder.MakeSolid(made)
    builder.Add(made, Shell(Box(10, 10, 10).faces()[:5]).wrapped)
    return Solid(made)


NO_SOLIDS: dict[str, tuple[Maker, str]] = {
    "shell": (lambda: Shell(Box(10, 10, 10).faces()[:5]), "0 solids"),
    "two solids": (
        lambda: Compound([Box(1, 1, 1), Pos(5, 0, 0) * Box(1, 1, 1)]), "2 solids"
    ),
    "open solid": (open_box, "1 open shells"),
    "a face beside it": (
        lambda: Compound([Box(1, 1, 1), Pos(5, 0, 0) * Rectangle(1, 1).face()]),
        "1 faces beside the solid",
    ),
    "sketch": (lambda: Rectangle(10, 10), "0 solids"),
}


@pytest.mark.parametrize("method", MATERIALS)
@pytest.mark.parametrize("name", NO_SOLIDS)
def test_what_is_no_closed_valid_solid_is_refused_by_all(name: str, method: str) -> None:
    """One finding, and nothing else is looked at."""
    made, expected = NO_SOLIDS[name]
    _, findings = judged(made(), method)

    assert [("the solid", expected)] == [(row.where, row.found) for row in findings]


def coil(pitch_mm: float) -> Any:
    """Two turns of a round wire of 2 mm."""
    path = Helix(pitch=pitch_mm, height=2 * pitch_mm, radius=5)
    return sweep(Plane(path @ 0, z_dir=path % 0) * Circle(1), path=path)


def test_a_solid_that_passes_through_itself_is_refused() -> None:
    """Each turn of the wire is in the next one; the kernel calls that valid."""
    close, apart = judged(coil(1.5), "print")[1], judged(coil(3), "print")[1]

    assert any("it passes through itself" in row.found for row in close)
    assert not any("it passes through itself" in row.found for row in apart)


def test_a_part_inside_out_is_refused() -> None:
    """Its volume is less than nothing."""
    from build123d import Solid

    inside_out = Solid(Box(10, 10, 10).solids()[0].wrapped.Reversed())
    _, findings = solid.check(inside_out, file="part.py")

    assert ["a volume of -1000 mm³"] == [row.found for row in findings]


def test_findings_name_face_place_value_and_limit() -> None:
    """A gap: which face, where on it in mm, what it measures, what it must."""
    _, findings = judged(block() - Pos(0, 0, 5) * Box(40, 2.5, 10), "cnc")

    assert ["a gap of 2.5 mm"] * 2 == [row.found for row in findings]
    assert all("at least 3 mm" in row.expected for row in findings)
    assert all(row.where.startswith("face ") and "(plane) at (" in row.where for row in findings)
    assert {"-1.25", "1.25"} == {row.where.split(", ")[1] for row in findings}


def test_the_place_is_where_it_is_worst() -> None:
    """A hole's overhang is told at its crown, not where it begins."""
    hole = Pos(100, 0, 0) * (Box(40, 40, 40) - Rotation(90, 0, 0) * Cylinder(15, 60))
    _, (row,) = judged(hole, "print")
    x, _, z = (float(word) for word in row.where.split("(")[2].split(")")[0].split(", "))

    assert math.hypot(x - 100, z) == pytest.approx(15, abs=0.05)
    assert float(row.found.split(" of ")[1].split("°")[0]) == pytest.approx(
        math.degrees(math.asin(z / 15)), abs=1
    )


@pytest.mark.parametrize("name", ["t slot, closed", "pocket below the smallest tool", "ring"])
def test_a_mill_of_six_axes_does_not_mind_how_a_part_lies(name: str) -> None:
    """Turned about each axis and mirrored, the same is found."""
    made, expected = MILLED[name]
    turned = [Rotation(90, 0, 0), Rotation(0, 90, 0), Rotation(0, 180, 90)]

    assert [expected] * 3 == [seen(turn * made(), "cnc") for turn in turned]
    assert expected == seen(mirror(made(), Plane.YZ), "cnc")


def test_a_mill_of_one_axis_reaches_one_side() -> None:
    """From above a block's underside is out of reach; a hole through it is not."""
    text = configuration.shipped().replace(
        b'["+x", "-x", "+y", "-y", "+z", "-z"]', b'["+z"]'
    )
    config, _ = configuration.read(text)
    assert config is not None
    asked = Asked(method="cnc", material="aluminium_6061")
    _, findings = check(block() - Cylinder(5, 40), asked, config, file="part.py")

    assert ["open towards one of +z"] == [row.expected for row in findings]
    assert "-10) mm" in findings[0].where


@pytest.mark.parametrize(
    ("stock_mm", "axes"),
    [((40, 30, 20), []), ((40, 29.99, 20), ["y"]), ((30, 40, 20), ["x"]), ((39, 29, 19), list("xyz"))],
)
def test_a_part_is_cut_from_its_stock_as_it_lies(
    stock_mm: tuple[float, float, float], axes: list[str]
) -> None:
    """Exactly as large fits; a box of the same volume that lies another way does not."""
    _, findings = judged(block(), "cnc", stock_mm=stock_mm)

    assert axes == [row.found[-1] for row in findings]


def test_the_same_part_is_judged_the_same(tmp_path: Path) -> None:
    """Twice, and from a file: the very same sentences."""
    made, _ = MILLED["t slot, closed"]
    export_brep(made(), tmp_path / "part.brep")
    read, findings = solid.read(tmp_path / "part.brep", file="part.py")
    assert [] == findings

    first = judged(made(), "cnc")
    assert first == judged(made(), "cnc") == judged(read, "cnc")


@pytest.mark.parametrize("data", [b"", b"DBRep_DrawableShape\n", b"\0" * 100, b"nonsense"])
def test_a_file_that_is_no_brep_is_a_finding(tmp_path: Path, data: bytes) -> None:
    """Whatever an agent's script left."""
    path = tmp_path / "part.brep"
    path.write_bytes(data)
    found, findings = solid.read(path, file="part.py")

    assert found is None
    assert 1 == len(findings)


def test_a_part_that_can_be_made_is_measured() -> None:
    """Volume 40 × 30 × 20 − π × 5² × 20 = 22 429.2037 mm³, and where it lies."""
    found, _ = judged(Pos(1, 2, 3) * (block() - Cylinder(5, 40)), "cnc")

    assert found is not None
    assert Decimal("22429.2037") == found.volume_mm3
    assert ((-19, -13, -7), (21, 17, 13)) == (found.box.min_mm, found.box.max_mm)
    assert found.wall_mm is None


def test_the_wall_of_a_moulded_part_is_measured() -> None:
    """The floor of 2 mm, and a little more where it meets the walls."""
    found, _ = judged(tray(2), "injection_moulding")

    assert found is not None
    assert found.wall_mm is not None
    assert 2.0 == pytest.approx(float(found.wall_mm), abs=0.05)


def test_a_material_of_another_method_stops_before_geometry() -> None:
    """The choices are named."""
    asked = Asked(method="cnc", material="abs")
    _, findings = check(block(), asked, CONFIG, file="part.py")

    assert ["the part.material"] == [row.where for row in findings]
