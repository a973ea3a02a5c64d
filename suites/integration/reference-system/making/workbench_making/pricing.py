"""Cost and weight of one part, from its method, its material and its geometry.

Amounts here are exact fractions of dollars and grams; ``amounts.told`` rounds them. What is paid once
for an order (set-up, mould) is shared by all pieces ordered: quantity × units of the design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from workbench_contract.findings import Finding, Stage
from workbench_making.amounts import told
from workbench_making.configuration import (
    FILE,
    Cnc,
    Configuration,
    InjectionMoulding,
    Material,
    Method,
    Print,
    choose,
)
from workbench_making.findings import finding

_Found = TypeVar("_Found")

_MM3_PER_CM3 = 1000
_G_PER_KG = 1000
_S_PER_H = 3600
_MIN_PER_H = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CncPart:
    """A part that is milled.

    Attributes:
        quantity_n: pieces in one unit of the design.
        volume_mm3: of the finished part.
        stock_mm: sides of the box that it is cut from.
    """

    id: str
    material: str
    quantity_n: int
    volume_mm3: Decimal
    stock_mm: tuple[Decimal, Decimal, Decimal]
    method: Method = Method.CNC


@dataclass(frozen=True, slots=True, kw_only=True)
class MouldedPart:
    """A part that is moulded.

    Attributes:
        wall_mm: its thickest wall, which cools last.
        draft_deg: its least draft.
    """

    id: str
    material: str
    quantity_n: int
    volume_mm3: Decimal
    wall_mm: Decimal
    draft_deg: Decimal
    method: Method = Method.INJECTION_MOULDING


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedPart:
    """A part that is printed.

    Attributes:
        volume_mm3: within its outer faces; what is laid is that × infill.
        infill: share of the volume, over 0 to 1.
    """

    id: str
    material: str
    quantity_n: int
    volume_mm3: Decimal
    layer_mm: Decimal
    infill: Decimal
    method: Method = Method.PRINT


Part = CncPart | MouldedPart | PrintedPart


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPart:
    """What a part costs and weighs.

    Attributes:
        exact_usd: of one piece.
        exact_g: of one piece.
    """

    id: str
    method: Method
    material: str
    quantity_n: int
    exact_usd: Fraction
    exact_g: Fraction

    @property
    def unit_cost_usd(self) -> Decimal:
        """Of one piece."""
        return told(self.exact_usd)

    @property
    def cost_usd(self) -> Decimal:
        """Of all its pieces in one unit of the design."""
        return told(self.exact_usd * self.quantity_n)

    @property
    def unit_weight_g(self) -> Decimal:
        """Of one piece."""
        return told(self.exact_g)

    @property
    def weight_g(self) -> Decimal:
        """Of all its pieces in one unit of the design."""
        return told(self.exact_g * self.quantity_n)


def price(
    part: Part, configuration: Configuration, *, file: str, where: str, units_n: int = 1
) -> tuple[PricedPart | None, list[Finding]]:
    """Price one part, or say all that keeps it from being priced.

    Args:
        file: that describes the part.
        where: the part in it, ``manufactured_parts[2]``.
        units_n: of the design that are ordered together, at least 1.
    """
    material, findings = choose(
        configuration, method=part.method, material=part.material, file=file, where=where
    )
    for key, found, expected in _wrong(part, configuration):
        findings.append(
            finding(Stage.VALID, file=file, where=f"{where}.{key}", found=found, expected=expected)
        )
    if material is None or findings:
        return None, findings
    pieces_n = part.quantity_n * units_n
    match part:
        case CncPart():
            cost = _milled(part, material, _there(configuration.methods.cnc), pieces_n)
            mass = _mass_g(part.volume_mm3, material)
        case MouldedPart():
            machine = _there(configuration.methods.injection_moulding)
            cost = _moulded(part, material, machine, pieces_n)
            mass = _mass_g(part.volume_mm3, material)
        case PrintedPart():
            cost = _printed(part, material, _there(configuration.methods.print), pieces_n)
            mass = _mass_g(_laid_mm3(part), material)
    return PricedPart(
        id=part.id,
        method=part.method,
        material=part.material,
        quantity_n=part.quantity_n,
        exact_usd=cost,
        exact_g=mass,
    ), []


def _milled(part: CncPart, material: Material, mill: Cnc, pieces_n: int) -> Fraction:
    """set_up / pieces + stock mass × price + removed / removal rate × hourly rate.

    Removed is the stock box less the part. By hand, with the shipped configuration: 10 pieces of
    aluminium_6061, 84 000 mm³ out of 100 × 60 × 20 mm. Set-up 60 / 10 = 6.00. Stock 120 cm³ × 2.70 =
    324 g × 6.50 USD/kg = 2.106. Removed 36 000 mm³ / 12 000 mm³/min = 3 min × 75 USD/h = 3.75.
    Together 11.856, told as 11.86 USD; the piece weighs 84 × 2.70 = 226.80 g.
    """
    stock_mm3 = _box_mm3(part.stock_mm)
    minutes = (stock_mm3 - Fraction(part.volume_mm3)) / Fraction(mill.removal_mm3_min)
    return (
        Fraction(mill.set_up_usd) / pieces_n
        + _material_usd(stock_mm3, material)
        + minutes / _MIN_PER_H * Fraction(mill.rate_usd_h)
    )


def _moulded(
    part: MouldedPart, material: Material, machine: InjectionMoulding, pieces_n: int
) -> Fraction:
    """(mould + set_up) / pieces + shot mass × price + cycle × hourly rate.

    The shot is the part and its runner; the cycle is base + cooling × wall². By hand: 5000 pieces of
    abs, 20 000 mm³, wall 2 mm. (4500 + 150) / 5000 = 0.93. Shot 20 cm³ × 1.06 × 1.04 = 22.048 g ×
    2.60 USD/kg = 0.0573. Cycle 12 + 2.2 × 4 = 20.8 s × 45 USD/h = 0.26. Together 1.2473, told as
    1.25 USD; the piece weighs 20 × 1.04 = 20.80 g, its runner is cut off.
    """
    shot_mm3 = Fraction(part.volume_mm3) * (1 + Fraction(machine.runner_share))
    cooling_s = Fraction(machine.cooling_s_mm2) * Fraction(part.wall_mm) ** 2
    cycle_s = Fraction(machine.cycle_base_s) + cooling_s
    return (
        (Fraction(machine.mould_usd) + Fraction(machine.set_up_usd)) / pieces_n
        + _material_usd(shot_mm3, material)
        + cycle_s / _S_PER_H * Fraction(machine.rate_usd_h)
    )


def _printed(part: PrintedPart, material: Material, printer: Print, pieces_n: int) -> Fraction:
    """set_up / pieces + laid mass × price + laid / flow × hourly rate.

    Laid is volume × infill; the flow is line width × layer × speed. By hand: 1 piece of
    pla_filament, 30 000 mm³, infill 0.2, layer 0.2 mm. Set-up 5.00. Laid 6000 mm³: 6 cm³ × 1.24 =
    7.44 g × 22 USD/kg = 0.1637. Flow 0.45 × 0.2 × 60 = 5.4 mm³/s: 1111.1 s × 4 USD/h = 1.2346.
    Together 6.3983, told as 6.40 USD; the piece weighs 7.44 g.
    """
    laid_mm3 = _laid_mm3(part)
    flow_mm3_s = (
        Fraction(printer.line_width_mm) * Fraction(part.layer_mm) * Fraction(printer.speed_mm_s)
    )
    return (
        Fraction(printer.set_up_usd) / pieces_n
        + _material_usd(laid_mm3, material)
        + laid_mm3 / flow_mm3_s / _S_PER_H * Fraction(printer.rate_usd_h)
    )


def _laid_mm3(part: PrintedPart) -> Fraction:
    return Fraction(part.volume_mm3) * Fraction(part.infill)


def _box_mm3(sides_mm: tuple[Decimal, Decimal, Decimal]) -> Fraction:
    x, y, z = sides_mm
    return Fraction(x) * Fraction(y) * Fraction(z)


def _mass_g(volume_mm3: Decimal | Fraction, material: Material) -> Fraction:
    return Fraction(volume_mm3) / _MM3_PER_CM3 * Fraction(material.density_g_cm3)


def _material_usd(volume_mm3: Fraction, material: Material) -> Fraction:
    return _mass_g(volume_mm3, material) / _G_PER_KG * Fraction(material.price_usd_kg)


def _there(found: _Found | None) -> _Found:
    assert found is not None, "the method was chosen from those that there are"
    return found


def _wrong(part: Part, configuration: Configuration) -> Iterator[tuple[str, str, str]]:
    """Numbers that no part can have, or this shop cannot make: key, found, expected."""
    if part.quantity_n < 1:
        yield "quantity", str(part.quantity_n), "at least 1"
    if not (part.volume_mm3.is_finite() and part.volume_mm3 > 0):
        yield "volume_mm3", str(part.volume_mm3), "more than 0"
        return
    match part:
        case CncPart():
            yield from _wrong_stock(part, configuration.methods.cnc)
        case MouldedPart():
            yield from _wrong_wall(part, configuration.methods.injection_moulding)
        case PrintedPart():
            yield from _wrong_layer(part, configuration.methods.print)


def _wrong_stock(part: CncPart, mill: Cnc | None) -> Iterator[tuple[str, str, str]]:
    if not all(side.is_finite() and side > 0 for side in part.stock_mm):
        yield "stock_mm", _sides(part.stock_mm), "three sides of more than 0"
        return
    if _box_mm3(part.stock_mm) < part.volume_mm3:
        yield "stock_mm", _sides(part.stock_mm), f"a box of at least {part.volume_mm3} mm³"
    if mill is not None and mill.limits is not None:
        machine = mill.limits.machine_mm
        if any(side > most for side, most in zip(part.stock_mm, machine, strict=True)):
            yield "stock_mm", _sides(part.stock_mm), f"at most {_sides(machine)}, see {FILE}"


def _wrong_wall(
    part: MouldedPart, machine: InjectionMoulding | None
) -> Iterator[tuple[str, str, str]]:
    if machine is None or machine.limits is None:
        return
    limits = machine.limits
    least, most = limits.least_wall_mm, limits.most_wall_mm
    if not (part.wall_mm.is_finite() and least <= part.wall_mm <= most):
        yield "wall_mm", str(part.wall_mm), f"{least} to {most}, see {FILE}"
    if not (part.draft_deg.is_finite() and limits.least_draft_deg <= part.draft_deg <= 90):
        yield "draft_deg", str(part.draft_deg), f"{limits.least_draft_deg} to 90, see {FILE}"


def _wrong_layer(part: PrintedPart, printer: Print | None) -> Iterator[tuple[str, str, str]]:
    if printer is None or printer.limits is None:
        return
    limits = printer.limits
    if not (
        part.layer_mm.is_finite() and limits.least_layer_mm <= part.layer_mm <= limits.most_layer_mm
    ):
        expected = f"{limits.least_layer_mm} to {limits.most_layer_mm}, see {FILE}"
        yield "layer_mm", str(part.layer_mm), expected
    if not (part.infill.is_finite() and limits.least_infill <= part.infill <= limits.most_infill):
        yield (
            "infill",
            str(part.infill),
            f"{limits.least_infill} to {limits.most_infill}, see {FILE}",
        )


def _sides(sides_mm: tuple[Decimal, ...]) -> str:
    return " × ".join(str(side) for side in sides_mm) + " mm"
