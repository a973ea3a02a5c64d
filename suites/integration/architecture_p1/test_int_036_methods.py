"""INT-036: each method validates and prices what is made for it, by its own rules."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, Final

import pytest
from workbench_contract.design import DesignJudged
from workbench_contract.findings import Stage

from suites.integration.bundles import Bundle, Made, changed, milled, moulded, printed, sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import Coder, Planner, coder_at_work, expect_found
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-036"), pytest.mark.integration_p1]

_UNITS: Final = 1000
_WIDE: Final = {"min_mm": [0, -40, 0], "max_mm": [145, 45, 90]}


def _drafted(x_mm: float, y_mm: float, height_mm: float, draft_deg: float = 2) -> float:
    """The volume of a plate that tapers towards its top."""
    less = 2 * height_mm * math.tan(math.radians(draft_deg))
    middle = (x_mm - less / 2) * (y_mm - less / 2)
    return height_mm / 6 * (x_mm * y_mm + 4 * middle + (x_mm - less) * (y_mm - less))


def _disc(radius_mm: float, height_mm: float, draft_deg: float = 2) -> float:
    top = radius_mm - height_mm * math.tan(math.radians(draft_deg))
    return math.pi * height_mm / 3 * (radius_mm**2 + radius_mm * top + top**2)


def _nine(number: int) -> tuple[list[Made], str]:
    """Three parts of each method, and the script that makes them.

    Milled: 40 by 30 by 10 mm of aluminium; a cylinder of radius 10, height 20 of steel; a brass plate with a
    hole of 6. Moulded, with 2 degrees of draft: plates of 3 and 2 mm, a disc of 2.5 mm. Printed: a block at
    30 %, a cylinder at half, a cube without hollows. One of each method is above the others: where a part
    is in the design says nothing of how it is made.
    """
    cylinder, plate = math.pi * 100 * 20, 30 * 20 * 5 - math.pi * 9 * 5
    names = [f"{kind}-{place}-{number}" for kind in ("cnc", "mould", "print") for place in range(3)]
    made = [
        milled(names[0], 12_000, (42, 32, 12), units=_UNITS),
        milled(names[1], f"{cylinder:.4f}", (21, 21, 21), units=_UNITS, material="steel_1018"),
        milled(names[2], f"{plate:.4f}", (30, 20, 5), units=_UNITS, material="brass_c360", quantity=2),
        moulded(names[3], f"{_drafted(30, 20, 3):.4f}", 3, units=_UNITS),
        moulded(names[4], f"{_drafted(24, 24, 2):.4f}", 2, units=_UNITS, material="pom", quantity=3),
        moulded(names[5], f"{_disc(12, 2.5):.4f}", 2.5, units=_UNITS, material="polypropylene"),
        printed(names[6], 4_000, units=_UNITS),
        printed(names[7], f"{math.pi * 64 * 12:.4f}", units=_UNITS, material="petg_filament", layer_mm="0.3", infill="0.5"),
        printed(names[8], 3_375, units=_UNITS, material="abs_filament", layer_mm="0.1", infill="1"),
    ]  # fmt: skip
    shapes = [
        "Pos(21, 0, 5) * Box(40, 30, 10)",
        "Pos(60, 0, 60) * Cylinder(10, 20)",
        "Pos(90, 0, 2.5) * (Box(30, 20, 5) - Cylinder(3, 9))",
        "Pos(120, 0, 0) * extrude(Rectangle(30, 20), amount=3, taper=2)",
        "Pos(20, 30, 0) * extrude(Rectangle(24, 24), amount=2, taper=2)",
        "Pos(50, 30, 40) * extrude(Circle(12), amount=2.5, taper=2)",
        "Pos(80, 30, 5) * Box(20, 20, 10)",
        "Pos(105, 30, 36) * Cylinder(8, 12)",
        "Pos(130, 30, 7.5) * Box(15, 15, 15)",
    ]
    rows = "\n".join(f'    "{name}": {shape},' for name, shape in zip(names, shapes, strict=True))
    return made, f"from build123d import *\n\nparts = {{\n{rows}\n}}\n"


def _plan(number: int, made: list[Made]) -> Any:
    def plan(planner: Planner) -> Bundle:
        own = planner.sound().objectives
        wide = changed(changed(own, "build_zone", _WIDE), "forbid_zones", [])
        return sound(planner.issued, number=number, made=made, units=_UNITS, objectives=wide)

    return plan


async def test_int_036_nine_parts_are_priced_by_their_methods(episodes: Episodes) -> None:
    """Three parts of each method cost and weigh what the rules of the method say, within 1 %.

    Simulated and handed over as they are. The model provider is a stand-in: the gateway holds the models.
    """
    made, script = _nine(361)
    async with coder_at_work(episodes, number=361, plan=_plan(361, made)) as coder:
        judged = await coder.judged(script)
        assert judged.passed, f"expected nine parts to pass, found {judged.findings}"
        found = {row.id: row for row in judged.parts}
        expect_same(
            {str(each.fields["id"]) for each in made}, set(found), what="parts with a price"
        )
        for each in made:
            row = found[str(each.fields["id"])]
            near = float(row.unit_cost_usd) == pytest.approx(float(each.usd), rel=0.01, abs=0.005)
            assert near, f"expected {float(each.usd):.4f} USD for {each.fields}, found {row}"
            near = row.unit_weight_g == pytest.approx(float(each.grams), rel=0.01)
            assert near, f"expected {float(each.grams):.4f} g for {each.fields}, found {row}"
        simulated = await coder.simulate()
        assert 200 == simulated.status, f"expected nine parts to be simulated, found {simulated}"
        submitted = await coder.submit()
        assert 200 == submitted.status, f"expected nine parts handed over, found {submitted}"


_POCKET: Final = (
    "Pos(21, 0, 5) * (Box(40, 30, 10) - extrude(RectangleRounded(20, 10, {}), amount=6))"
)
_GROOVED: Final = "Pos(90, 0, 2.5) * (Box(30, 20, 5) - Pos(0, 0, 2) * Box(40, {}, 3))"
#: Printed on its two feet: a ceiling that spans so many mm.
_ARCH: Final = "Pos(130, 30, 7.5) * (Box(15, 15, 15) - Pos(0, 0, -3) * Box({}, 20, 9))"
_DRILLED: Final = "Pos(21, 0, 5) * (Box(40, 30, 10) - Cylinder({}, 30))"

#: A part, a shape that its method cannot make, and what is said of it: some just beyond what a tool does.
_IMPOSSIBLE: Final = (
    (
        "cnc-0",
        "Pos(21, 0, 5) * (Box(40, 30, 10) - Pos(0, 0, 3) * Box(20, 10, 8))",
        "corner|radius|sharp",
    ),
    ("cnc-0", _POCKET.format(1.45), "radius"),
    ("cnc-0", _DRILLED.format(0.45), "hole|diameter"),
    # Its stock is 42 by 32 by 12 mm: no side of the part is as long as the longest of those.
    ("cnc-0", "Pos(21, 0, 6.1) * Box(40, 30, 12.2)", "stock"),
    ("mould-0", "Pos(120, 0, 1.5) * Box(30, 20, 3)", "draft"),
    ("mould-1", "Pos(20, 30, 0) * extrude(Rectangle(24, 24), amount=6, taper=2)", "wall"),
    (
        "print-0",
        "Pos(80, 30, 5) * Box(20, 20, 10) + Pos(80, 30, 12) * Box(40, 20, 4)",
        "overhang|hang",
    ),
    # A shelf as long as a bridge may be, and held at one side alone.
    (
        "print-0",
        "Pos(80, 30, 5) * Box(20, 20, 10) + Pos(93, 30, 8) * Box(8, 20, 4)",
        "overhang|hang",
    ),
    ("print-2", "Pos(130, 30, 0.3) * Box(15, 15, 0.6)", "wall"),
)

#: Each part just beyond what its method can do, in one design: no finding hides another.
_BEYOND: Final = (
    ("cnc-0", _POCKET.format(1.45), "radius"),
    # Its stock is 21 by 21 by 21 mm.
    ("cnc-1", "Pos(60, 0, 60) * Cylinder(10, 21.2)", "stock"),
    ("cnc-2", _GROOVED.format(2.9), "gap"),
    ("mould-0", "Pos(120, 0, 0) * extrude(Rectangle(30, 20), amount=3, taper=0.8)", "draft"),
    ("mould-1", "Pos(20, 30, 0) * extrude(Rectangle(24, 24), amount=0.9, taper=2)", "wall"),
    ("mould-2", "Pos(50, 30, 40) * extrude(Circle(12), amount=4.4, taper=2)", "wall"),
    ("print-0", "Pos(80, 30, 5) * Rot(180, 0, 0) * Cone(14, 3.3, 10)", "overhang|hang"),
    ("print-1", "Pos(105, 30, 36) * Cylinder(8, 0.8)", "wall"),
    (
        "print-2",
        "Pos(105, -30, 7.5) * Box(15, 15, 15) + Pos(105, -30, 14) * Box(24, 15, 2)",
        "overhang|hang",
    ),
)

#: As well: what no tool and no half of a mould gets out of, too wide a ceiling, and what is larger than a machine,
#: some of it along a side that is not the machine's longest.
_BEYOND_TOO: Final = (
    # Wider below than where it opens.
    (
        "cnc-0",
        "Pos(21, 0, 5) * (Box(40, 30, 10) - Pos(0, 0, 3) * Cylinder(4, 6) - Pos(0, 0, -1) * Cylinder(9, 4))",
        "undercut|reach|access",
    ),
    ("cnc-1", "Pos(60, 0, 60) * Box(510, 20, 20)", "machine|500"),
    # Bored through from side to side, across the way in which its mould opens.
    (
        "mould-0",
        "Pos(120, 0, 0) * (extrude(Rectangle(30, 20), amount=4, taper=2) - Pos(0, 0, 2) * Rot(0, 90, 0) * Cylinder(0.9, 40))",
        "undercut|reach|core",
    ),
    (
        "mould-1",
        "Pos(20, 30, 0) * extrude(Rectangle(30, 260), amount=2, taper=2)",
        "machine|mould|250",
    ),
    ("print-1", "Pos(105, 30, 36) * Box(16, 216, 12)", "machine|printer|210"),
    ("print-2", _ARCH.format(8.5), "overhang|hang|bridge"),
)

#: Each part just within, and what is not said of it.
_WITHIN: Final = (
    ("cnc-0", _POCKET.format(1.55), "radius|corner|sharp"),
    ("cnc-1", "Pos(60, 0, 60) * Cylinder(10, 20.9)", "stock"),
    ("cnc-2", _GROOVED.format(3.1), "gap|corner|radius"),
    ("mould-0", "Pos(120, 0, 0) * extrude(Rectangle(30, 20), amount=3, taper=1.2)", "draft"),
    ("mould-1", "Pos(20, 30, 0) * extrude(Rectangle(24, 24), amount=1.1, taper=2)", "wall"),
    ("mould-2", "Pos(50, 30, 40) * extrude(Circle(12), amount=3.8, taper=2)", "wall"),
    ("print-0", "Pos(80, 30, 5) * Rot(180, 0, 0) * Cone(12.5, 3.3, 10)", "overhang|hang"),
    ("print-1", "Pos(105, 30, 36) * Cylinder(8, 1)", "wall"),
    ("print-2", _ARCH.format(7.5), "overhang|hang|bridge"),
)

#: What is no closed solid of one piece, of a part of each method.
_NO_SOLIDS: Final = (
    ("cnc-0", "Part(children=[Pos(12, 0, 5) * Box(9, 9, 9), Pos(30, 0, 5) * Box(9, 9, 9)])"),
    ("mould-1", "Solid(Shell((Pos(20, 30, 4) * Box(9, 9, 9)).faces()[:5]))"),
    (
        "print-1",
        "Part(children=[Pos(100, 30, 4.5) * Box(9, 9, 9), Pos(120, 30, 4.5) * Cylinder(3, 9)])",
    ),
)


def _with(script: str, name: str, shape: str) -> str:
    """The script with another shape for a part."""
    return "\n".join(
        f'    "{name}": {shape},' if line.strip().startswith(f'"{name}"') else line
        for line in script.split("\n")
    )


async def _is_no_solid(coder: Coder, script: str) -> None:
    """Two pieces, or an open shell: refused of a part of each method, by verdict or before one, and named."""
    for part, shape in _NO_SOLIDS:
        await coder.session.write("model.py", _with(script, f"{part}-362", shape))
        answer = await coder.validated()
        if answer.status == 200:
            judged = DesignJudged.model_validate_json(answer.body)
            assert not judged.passed, f"expected {part} as {shape} to be no part, found {judged}"
            places = {each.where.partition(":")[0] for each in judged.findings}
            expect_same({f"{part}-362"}, places, what=f"parts with findings, beside {part}")
            told = " ".join(f"{each.found} {each.expected}" for each in judged.findings)
        else:
            told = expect_refused(answer, 409, 422)
        said = [word for word in ("solid", "shell", "piece", "closed") if word in told]
        assert said, f"expected that {shape} is no closed solid of one piece, found {told}"
        expect_refused(await coder.simulate(), 409, 422)


async def _each_is_told_of(
    coder: Coder, script: str, beyond: tuple[tuple[str, str, str], ...]
) -> None:
    """Of several parts that cannot be made each has findings with its own reason, and no other part has any."""
    several = script
    for part, shape, _ in beyond:
        several = _with(several, f"{part}-362", shape)
    judged = await coder.judged(several)
    told = {f"{kind}-{place}-362": "" for kind in ("cnc", "mould", "print") for place in range(3)}
    for name, each in itertools.product(told, judged.findings):
        if each.where.startswith(name):
            told[name] += f"{each.found} {each.expected}; "
    wrong = {name for name, words in told.items() if words}
    expected = {f"{part}-362" for part, *_ in beyond}
    expect_same(expected, wrong, what="parts with findings, of several that cannot be made")
    for part, shape, reason in beyond:
        words = told[f"{part}-362"]
        assert re.search(reason, words), f"expected {reason!r} for {shape}, found {words}"


async def test_int_036_what_a_method_cannot_make(episodes: Episodes) -> None:
    """A part that its method cannot make is refused with that method's reason, and only that part.

    Of several each is told of. In a later round too; it is neither simulated nor handed over. The model provider is a stand-in: the
    gateway holds the models.
    """
    made, script = _nine(362)
    async with coder_at_work(episodes, number=362, plan=_plan(362, made)) as coder:
        within = script
        for part, shape, _ in _WITHIN:
            within = _with(within, f"{part}-362", shape)
        judged = await coder.judged(within)
        for part, shape, reason in _WITHIN:
            about = [each for each in judged.findings if each.where.startswith(f"{part}-362")]
            told = " ".join(each.found for each in about)
            said = [word for word in reason.split("|") if word in told]
            assert not said, f"expected {shape} to be possible, found {told}"
        for part, shape, reason in _IMPOSSIBLE:
            name = f"{part}-362"
            judged = await coder.judged(_with(script, name, shape))
            assert not judged.passed, f"expected {name} as {shape} not to pass, found {judged}"
            others = [each.where for each in judged.findings if not each.where.startswith(name)]
            assert not others, f"{name} cannot be made, and findings are about {others}"
            told = " ".join(f"{each.found} {each.expected}" for each in judged.findings)
            said = [word for word in reason.split("|") if word in told]
            assert said, f"expected a reason like {reason!r} for {name} as {shape}, found {told}"
            expect_refused(await coder.simulate(), 409, 422, says=name)
        for beyond in (_BEYOND_TOO, _BEYOND):
            await _each_is_told_of(coder, script, beyond)
        answer = await coder.submit()
        expect_found(answer, Stage.PRICE, {"model.py"}, what="a part that cannot be made")
        await _is_no_solid(coder, script)
        missing = "\n".join(line for line in script.split("\n") if "mould-2" not in line)
        judged = await coder.judged(missing)
        assert not judged.passed, f"expected a part of the plan to be missed, found {judged}"
        judged = await coder.judged(script)
        assert judged.passed, f"expected the parts, mended, to pass, found {judged.findings}"
