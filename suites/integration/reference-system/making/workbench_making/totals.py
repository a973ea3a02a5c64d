"""Cost and weight of a whole design, and whether they are within its caps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from workbench_contract.findings import Finding, Stage
from workbench_making.amounts import told
from workbench_making.configuration import Assembly, Configuration
from workbench_making.findings import finding
from workbench_making.pricing import Part, PricedPart, price

_S_PER_H = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """A part of the catalogue, so many in one unit of the design."""

    part_id: str
    quantity_n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CataloguePart:
    """What the catalogue says of a part.

    Attributes:
        unit_cost_usd: of one piece, when few are ordered.
        weight_g: of one piece.
        fastener: whether it takes time to fasten.
        tiers: (from how many pieces, USD of each), in any order.
    """

    part_id: str
    unit_cost_usd: Decimal
    weight_g: Decimal
    fastener: bool = False
    tiers: tuple[tuple[int, Decimal], ...] = ()

    def at(self, pieces_n: int) -> Decimal:
        """The price of each when so many are ordered together."""
        reached = [tier for tier in self.tiers if tier[0] <= pieces_n]
        return max(reached, key=lambda tier: tier[0])[1] if reached else self.unit_cost_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedBought:
    """A part of the catalogue at the price that its quantity has."""

    part_id: str
    quantity_n: int
    unit_cost_usd: Decimal
    unit_weight_g: Decimal
    fastener: bool

    @property
    def cost_usd(self) -> Decimal:
        """Of all its pieces in one unit of the design."""
        return told(Fraction(self.unit_cost_usd) * self.quantity_n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What is put together.

    Attributes:
        units_n: how many of it are ordered together; set-ups, moulds and tiers count all of them.
    """

    parts: tuple[Part, ...]
    bought: tuple[Bought, ...] = ()
    units_n: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """One unit of a design.

    Attributes:
        exact_assembly_usd: of putting it together.
        exact_usd: of everything, summed before it is rounded.
    """

    parts: tuple[PricedPart, ...]
    bought: tuple[PricedBought, ...]
    exact_assembly_usd: Fraction
    exact_usd: Fraction
    exact_g: Fraction

    @property
    def assembly_cost_usd(self) -> Decimal:
        """Of putting it together."""
        return told(self.exact_assembly_usd)

    @property
    def unit_cost_usd(self) -> Decimal:
        """Of everything."""
        return told(self.exact_usd)

    @property
    def weight_g(self) -> Decimal:
        """Of everything."""
        return told(self.exact_g)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most that one unit may cost and weigh; exactly that much is within."""

    max_unit_cost_usd: Decimal
    max_weight_g: Decimal


def total(
    design: Design,
    configuration: Configuration,
    lookup: Callable[[str], CataloguePart | None],
    *,
    file: str,
) -> tuple[Totals | None, list[Finding]]:
    """Price every part and sum up, or say all that keeps the design from being priced.

    Args:
        lookup: a part of the catalogue by its id, None when there is none.
        file: that describes the design.
    """
    findings: list[Finding] = []

    def wrong(where: str, found: str, expected: str) -> None:
        row = finding(Stage.VALID, file=file, where=where, found=found, expected=expected)
        findings.append(row)

    if design.units_n < 1:
        wrong("assembly.units", str(design.units_n), "at least 1")
    if not design.parts and not design.bought:
        wrong("manufactured_parts", "no part", "at least one part, made or bought")
    units_n = max(design.units_n, 1)
    parts = []
    for number, part in enumerate(design.parts):
        where = f"manufactured_parts[{number}]"
        priced, found = price(part, configuration, file=file, where=where, units_n=units_n)
        findings.extend(found)
        if priced is not None:
            parts.append(priced)
    ordered = Counter[str]()
    for row in design.bought:
        ordered[row.part_id] += max(row.quantity_n, 0) * units_n
    bought = []
    for number, row in enumerate(design.bought):
        where = f"cots_parts[{number}]"
        known = lookup(row.part_id)
        if row.quantity_n < 1:
            wrong(f"{where}.quantity", str(row.quantity_n), "at least 1")
        if known is None:
            wrong(f"{where}.part_id", row.part_id, "the id of a part in the catalogue")
        else:
            bought.append(_priced(row, known, ordered[row.part_id]))
    if findings:
        return None, findings
    return _summed(tuple(parts), tuple(bought), configuration.assembly), []


def over_caps(
    totals: Totals, caps: Caps, *, file: str, whose: str = "the benchmark's cap"
) -> list[Finding]:
    """What is over a cap, as it is told: one cent or a hundredth of a gram is over.

    Args:
        whose: what a finding calls the cap.
    """
    rows = [
        ("unit_cost_usd", totals.unit_cost_usd, caps.max_unit_cost_usd, "USD"),
        ("weight_g", totals.weight_g, caps.max_weight_g, "g"),
    ]
    return [
        finding(
            Stage.PRICE,
            file=file,
            where=f"totals.{key}",
            found=f"{value} {unit}, {value - most} {unit} over",
            expected=f"at most {most} {unit}, {whose}",
        )
        for key, value, most, unit in rows
        if value > most
    ]


def _priced(row: Bought, known: CataloguePart, ordered_n: int) -> PricedBought:
    return PricedBought(
        part_id=row.part_id,
        quantity_n=row.quantity_n,
        unit_cost_usd=known.at(ordered_n),
        unit_weight_g=known.weight_g,
        fastener=known.fastener,
    )


def _summed(
    parts: tuple[PricedPart, ...], bought: tuple[PricedBought, ...], assembly: Assembly
) -> Totals:
    """Everything, and putting it together: pieces × handling + fasteners × fastening.

    A design of one piece is not put together. By hand: 3 pieces of which 2 are fasteners,
    3 × 15 s + 2 × 20 s = 85 s × 36 USD/h = 0.85 USD.
    """
    pieces_n = sum(part.quantity_n for part in parts) + sum(row.quantity_n for row in bought)
    fasteners_n = sum(row.quantity_n for row in bought if row.fastener)
    seconds = Fraction(0)
    if pieces_n > 1:
        seconds = pieces_n * Fraction(assembly.handling_s)
        seconds += fasteners_n * Fraction(assembly.fastening_s)
    assembly_usd = seconds / _S_PER_H * Fraction(assembly.rate_usd_h)
    made_usd = sum((part.exact_usd * part.quantity_n for part in parts), Fraction(0))
    bought_usd = sum((Fraction(row.unit_cost_usd) * row.quantity_n for row in bought), Fraction(0))
    made_g = sum((part.exact_g * part.quantity_n for part in parts), Fraction(0))
    bought_g = sum((Fraction(row.unit_weight_g) * row.quantity_n for row in bought), Fraction(0))
    return Totals(
        parts=parts,
        bought=bought,
        exact_assembly_usd=assembly_usd,
        exact_usd=made_usd + bought_usd + assembly_usd,
        exact_g=made_g + bought_g,
    )
