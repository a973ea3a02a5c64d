"""The whole verdict about a design: made, held together, paid for, in its place."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from build123d import Box as Block
from build123d import Cylinder, Pos
from workbench_contract.connections import Connections
from workbench_contract.findings import Stage
from workbench_making import configuration
from workbench_making.configuration import Configuration
from workbench_making.judgement import Judgement, Limits, MadePart, validate_and_price
from workbench_making.manufacturability import Asked
from workbench_making.solid import Box
from workbench_making.totals import Bought, Caps, CataloguePart

D = Decimal


def _configuration() -> Configuration:
    found, _ = configuration.read(configuration.shipped())
    assert found is not None
    return found


CONFIG = _configuration()
SCREW = CataloguePart(part_id="m4x10", unit_cost_usd=D("0.15"), weight_g=D("1.5"), fastener=True)


def drilled(block: Any, tool: Any) -> Any:
    """With holes of 4 mm, 40 mm apart."""
    for x in (-20, 20):
        block -= Pos(x, 0, 0) * tool
    return block


COVER = MadePart(
    name="cover",
    shape=drilled(Pos(0, 0, 2.5) * Block(60, 40, 5), Cylinder(2, 30)),
    asked=Asked(method="print", material="pla_filament"),
    layer_mm=D("0.2"),
    infill=D("0.5"),
)
BASE = MadePart(
    name="base",
    shape=drilled(Pos(0, 0, -10) * Block(60, 40, 20), Pos(0, 0, -4) * Cylinder(2, 8)),
    asked=Asked(method="cnc", material="aluminium_6061", stock_mm=(60, 40, 20)),
)
ROOM = Limits(
    caps=Caps(max_unit_cost_usd=D(100), max_weight_g=D(200)),
    build_zone=Box(min_mm=(-30, -20, -20), max_mm=(30, 20, 5)),
)


def connections(screws: int = 2) -> Connections:
    """Cover and base, held by screws."""
    fasteners = [
        {
            "name": f"screw{number}",
            "part_id": "m4x10",
            "diameter_mm": 4.0,
            "length_mm": 10.0,
            "holes": [
                {"part": "cover", "at_mm": (x, 0.0, 2.5), "axis": (0.0, 0.0, 1.0), "diameter_mm": 4.0,
                 "holds": False},
                {"part": "base", "at_mm": (x, 0.0, -2.0), "axis": (0.0, 0.0, 1.0), "diameter_mm": 4.0,
                 "holds": True},
            ],
        }
        for number, x in enumerate((-20.0, 20.0)[:screws])
    ]
    return Connections.model_validate(
        {"pairs": [{"parts": ("cover", "base"), "fasteners": fasteners}]}
    )


def judged(
    *parts: MadePart, limits: Limits = ROOM, screws: int = 2, bought: tuple[Bought, ...] = ()
) -> Judgement:
    """The verdict about cover and base unless others are given."""
    return validate_and_price(
        parts or (COVER, BASE),
        bought or (Bought(part_id="m4x10", quantity_n=2),),
        connections(screws),
        CONFIG,
        {"m4x10": SCREW}.get,
        limits=limits,
        file="model.py",
    )


def test_a_design_that_can_be_made_is_priced() -> None:
    """By hand, in its zone to the border.

    Cover: 12 000 − 2 × π × 4 × 5 = 11 874.336 mm³, half of it laid: 5.937168 cm³ × 1.24 = 7.36209 g ×
    0.022 = 0.16197; 5937.168 / 5.4 s × 4/3600 = 1.22164; with its set-up of 5: 6.38361. Base: 48 000 −
    2 × π × 4 × 8 = 47 798.938 mm³ × 2.70 = 129.05713 g; stock 129.6 g × 0.0065 = 0.8424; removed 201.062 /
    12 000 × 1.25 = 0.02094; set-up 60: 60.86334. Screws 0.30, 3 g. Together 4 × 15 + 2 × 20 = 100 s: 1.00.
    Sum 68.54695 → 68.55 USD; 139.41922 → 139.42 g.
    """
    found = judged()

    assert () == found.findings
    assert found.totals is not None
    assert (D("68.55"), D("139.42")) == (found.totals.unit_cost_usd, found.totals.weight_g)


def test_what_cannot_be_made_is_not_priced() -> None:
    """All parts are looked at, and each finding names its own; nothing is said of the price."""
    hollow = replace(BASE, shape=BASE.shape - Pos(0, 0, -15) * Block(10, 10, 4))
    bare = replace(COVER, layer_mm=None, asked=Asked(method="print", material="abs"))
    found = judged(bare, hollow, limits=replace(ROOM, caps=Caps(max_unit_cost_usd=D(1), max_weight_g=D(1))))

    assert found.totals is None
    assert {Stage.VALID} == {row.stage for row in found.findings}
    assert {"cover", "base"} == {row.where.split(":")[0] for row in found.findings}
    assert {"cover: the part.material", "cover: layer_mm"} <= {row.where for row in found.findings}


def test_what_does_not_hold_together_is_not_priced() -> None:
    """One screw."""
    found = judged(screws=1)

    assert found.totals is None
    assert ["pairs[0].fasteners"] == [row.where for row in found.findings]


@pytest.mark.parametrize(
    ("limits", "where"),
    [
        (replace(ROOM, caps=Caps(max_unit_cost_usd=D("68.55"), max_weight_g=D("139.42"))), []),
        (replace(ROOM, caps=Caps(max_unit_cost_usd=D("68.54"), max_weight_g=D("139.41"))),
         ["totals.unit_cost_usd", "totals.weight_g"]),
        (replace(ROOM, build_zone=Box(min_mm=(-30, -20, -20), max_mm=(30, 20, 4.99))),
         ["cover.max_mm.z"]),
        (Limits(caps=Caps(max_unit_cost_usd=D(1), max_weight_g=D(200)),
                build_zone=Box(min_mm=(-29, -20, -20), max_mm=(30, 20, 5))),
         ["totals.unit_cost_usd", "cover.min_mm.x", "base.min_mm.x"]),
    ],
)
def test_price_weight_and_zone_are_told_together(limits: Limits, where: list[str]) -> None:
    """Exactly at a limit passes; what was computed is told with what is wrong."""
    found = judged(limits=limits)

    assert where == [row.where for row in found.findings]
    assert {Stage.PRICE} >= {row.stage for row in found.findings}
    assert found.totals is not None


def test_a_part_that_is_not_in_the_catalogue_is_refused() -> None:
    """Whatever it would cost."""
    screws = Bought(part_id="m4x10", quantity_n=2)
    found = judged(bought=(screws, Bought(part_id="m4x11", quantity_n=1)))

    assert ["cots_parts[1].part_id"] == [row.where for row in found.findings]


@pytest.mark.parametrize(
    ("bought", "paid"), [(("m4x10",), 1), (("m4x11", "m4x11"), 0), (("m4x10", "m4x10"), None)]
)
def test_fasteners_that_are_used_are_bought(bought: tuple[str, ...], paid: int | None) -> None:
    """Otherwise they would cost and weigh nothing."""
    rows = tuple(Bought(part_id=part_id, quantity_n=1) for part_id in bought)
    expected = [] if paid is None else [f"2 × m4x10, of which {paid} are bought"]

    assert expected == [row.found for row in judged(bought=rows).findings]


def test_two_parts_of_one_name_are_refused() -> None:
    """Which of them would be connected?"""
    found = judged(COVER, BASE, replace(COVER))

    assert [("cover", "2 parts of that name")] == [(row.where, row.found) for row in found.findings]


def test_a_milled_part_without_stock_is_cut_from_its_box() -> None:
    """Which is the smallest that there is."""
    found = judged(COVER, replace(BASE, asked=Asked(method="cnc", material="aluminium_6061")))

    assert found.totals is not None
    assert D("68.55") == found.totals.unit_cost_usd


def test_a_moulded_part_is_priced_by_its_wall() -> None:
    """A disc of 2 mm with a side of 2° draft: cycle 12 + 2.2 × 4 = 20.8 s.

    Volume π × 2 × (10² + 10 × 10.07 + 10.07²) / 3 ≈ 632.72 mm³: 0.6327 cm³ × 1.06 × 1.04 × 0.0026 = 0.0018;
    20.8 × 0.0125 = 0.26; 4650 / 5000 = 0.93. Sum 1.1918 → 1.19 USD.
    """
    from build123d import Cone

    disc = MadePart(
        name="disc",
        shape=Cone(10, 10.07, 2),
        asked=Asked(method="injection_moulding", material="abs"),
        quantity_n=5000,
    )
    found = validate_and_price(
        [disc],
        [],
        Connections(pairs=[]),
        CONFIG,
        {}.get,
        limits=replace(ROOM, caps=Caps(max_unit_cost_usd=D(10_000), max_weight_g=D(10_000))),
        file="model.py",
    )

    assert () == found.findings
    assert found.totals is not None
    assert D("1.19") == found.totals.parts[0].unit_cost_usd
