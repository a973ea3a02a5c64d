"""``validate_and_price``: the whole verdict about a design that was built, before it is simulated or submitted.

First all that is wrong with parts and connections; of a design that can be made, all that is wrong with
its price, weight and place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from workbench_contract.connections import Connections
from workbench_contract.findings import Finding, Stage
from workbench_making import fasteners, solid, zones
from workbench_making.configuration import Configuration, Method
from workbench_making.findings import finding
from workbench_making.manufacturability import Asked, Measured, check
from workbench_making.pricing import CncPart, MouldedPart, Part, PrintedPart
from workbench_making.solid import Box
from workbench_making.totals import Bought, Caps, CataloguePart, Design, Totals, over_caps, total

if TYPE_CHECKING:
    from build123d import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePart:
    """A part as its script left it, where it is put together.

    Attributes:
        layer_mm: of a print, else None.
        infill: of a print, else None.
    """

    name: str
    shape: Shape[Any]
    asked: Asked
    quantity_n: int = 1
    layer_mm: Decimal | None = None
    infill: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a design is given.

    Attributes:
        build_zone: in the frame in which the design is put together; its border is inside.
    """

    caps: Caps
    build_zone: Box


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a design costs and weighs, and what keeps it from going on.

    Attributes:
        totals: None if it cannot be priced.
        findings: all of the first stage that has any.
    """

    totals: Totals | None
    findings: tuple[Finding, ...]


def validate_and_price(
    parts: Sequence[MadePart],
    bought: Sequence[Bought],
    connections: Connections,
    configuration: Configuration,
    lookup: Callable[[str], CataloguePart | None],
    *,
    limits: Limits,
    file: str,
    units_n: int = 1,
) -> Judgement:
    """Judge a design.

    Args:
        lookup: a part of the catalogue by its id, None when there is none.
        file: the script that made the parts.
        units_n: how many of the design are ordered together.
    """
    priced, findings = _parts(parts, configuration, file)
    if not findings:
        solids = {part.name: part.shape.solids()[0] for part in parts}
        findings = fasteners.check(connections, solids, file=file)
        findings += _unbought(connections, bought, file)
    if findings:
        return Judgement(totals=None, findings=tuple(findings))
    design = Design(parts=tuple(priced), bought=tuple(bought), units_n=units_n)
    totals, findings = total(design, configuration, lookup, file=file)
    if totals is None:
        return Judgement(totals=None, findings=tuple(findings))
    findings = over_caps(totals, limits.caps, file=file)
    for part in parts:
        findings += zones.outside(part.name, solid.box_of(part.shape), limits.build_zone, file=file)
    return Judgement(totals=totals, findings=tuple(findings))


def _parts(
    parts: Sequence[MadePart], configuration: Configuration, file: str
) -> tuple[list[Part], list[Finding]]:
    """Each part as pricing takes it, or all that is wrong with any; a finding begins with the part."""
    priced: list[Part] = []
    findings = [
        finding(
            Stage.VALID,
            file=file,
            where=name,
            found=f"{count} parts of that name",
            expected="a name of its own for each",
        )
        for name, count in Counter(part.name for part in parts).items()
        if count > 1
    ]
    for part in parts:
        measured, found = check(part.shape, part.asked, configuration, file=file)
        findings += [row.model_copy(update={"where": f"{part.name}: {row.where}"}) for row in found]
        missing = [key for key in ("layer_mm", "infill") if getattr(part, key) is None]
        if part.asked.method == Method.PRINT and missing:
            expected = "how it is printed"
            findings += [
                finding(
                    Stage.VALID,
                    file=file,
                    where=f"{part.name}: {key}",
                    found="nothing",
                    expected=expected,
                )
                for key in missing
            ]
        elif measured is not None:
            priced.append(_priced(part, measured, configuration))
    return priced, findings


def _unbought(connections: Connections, bought: Sequence[Bought], file: str) -> list[Finding]:
    """Fasteners that are used and not paid for."""
    used = Counter(row.part_id for pair in connections.pairs for row in pair.fasteners)
    paid = Counter[str]()
    for row in bought:
        paid[row.part_id] += row.quantity_n
    return [
        finding(
            Stage.VALID,
            file=file,
            where="pairs",
            found=f"{count} × {part_id}, of which {paid[part_id]} are bought",
            expected="as many bought as are used, or more",
        )
        for part_id, count in used.items()
        if paid[part_id] < count
    ]


def _priced(part: MadePart, measured: Measured, configuration: Configuration) -> Part:
    common: dict[str, Any] = {
        "id": part.name,
        "material": part.asked.material,
        "quantity_n": part.quantity_n,
        "volume_mm3": measured.volume_mm3,
    }
    match Method(part.asked.method):
        case Method.CNC:
            # Without a stock the smallest box that holds the part.
            sides = part.asked.stock_mm or measured.box.size_mm
            x, y, z = (Decimal(repr(float(side))) for side in sides)
            return CncPart(**common, stock_mm=(x, y, z))
        case Method.INJECTION_MOULDING:
            machine = configuration.methods.injection_moulding
            assert machine is not None
            assert machine.limits is not None
            assert measured.wall_mm is not None
            # The part has passed its limits; what it measures beyond them is the mesh's.
            limits = machine.limits
            wall = min(max(measured.wall_mm, limits.least_wall_mm), limits.most_wall_mm)
            return MouldedPart(**common, wall_mm=wall, draft_deg=limits.least_draft_deg)
        case Method.PRINT:
            assert part.layer_mm is not None
            assert part.infill is not None
            return PrintedPart(**common, layer_mm=part.layer_mm, infill=part.infill)
