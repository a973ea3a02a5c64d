"""A part of the catalogue, as its rows and its files hold it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """One part of one version; two of them are never equal.

    Attributes:
        tiers: from quantity to the cost of one, in USD; the first is from 1.
        specs: key to word, or to number in the unit of the key.
    """

    part_id: str
    category: str
    manufacturer: str
    name: str
    unit_cost_usd: Decimal
    tiers: tuple[tuple[int, Decimal], ...]
    weight_g: Decimal
    source: str
    specs: dict[str, str | Decimal]

    @property
    def order(self) -> tuple[Decimal, str]:
        """Cheapest first, then by id: no two parts are equal in it."""
        return self.unit_cost_usd, self.part_id

    def text(self) -> str:
        """All that words are looked for in, in the case that they are compared in."""
        specs = (f"{key} {value}" for key, value in sorted(self.specs.items()))
        told = (self.part_id, self.category, self.manufacturer, self.name, *specs)
        return "\n".join(told).casefold()
