"""One version of the catalogue, as a file: comments, a line of names, a line for each part."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

from workbench_contract.catalogue import NUMBER_SPECS, WORD_SPECS, PartCategory
from workbench_controller.catalogue.part import Part

_FOLDER = Path(__file__).parent


def path_of(version: int) -> Path:
    """The file of a version."""
    return _FOLDER / f"parts-{version}.csv"


def read_parts(path: Path) -> list[Part]:
    """The parts of a file.

    Raises:
        ValueError: a line is no part, or an id is there twice; names the part.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    parts = [_part(row) for row in rows]
    seen: set[str] = set()
    for part in parts:
        if part.part_id in seen:
            raise ValueError(f"cannot read {path.name}: {part.part_id} is there twice. Remove one")
        seen.add(part.part_id)
    return parts


def _part(row: dict[str, str]) -> Part:
    part_id = row["part_id"]
    tiers = tuple(_tier(tier) for tier in row["quantity_tiers"].split(";"))
    part = Part(
        part_id=part_id,
        category=PartCategory(row["category"]).value,
        manufacturer=row["manufacturer"],
        name=row["name"],
        unit_cost_usd=Decimal(row["unit_cost_usd"]),
        tiers=tiers,
        weight_g=Decimal(row["weight_g"]),
        source=row["source"],
        specs=dict(_spec(part_id, spec) for spec in row["specs"].split(";")),
    )
    quantities = [quantity for quantity, _ in tiers]
    costs = [cost for _, cost in tiers]
    if tiers[0] != (1, part.unit_cost_usd) or quantities != sorted(set(quantities)):
        raise ValueError(f"cannot use the tiers of {part_id}: found {row['quantity_tiers']}. Begin "
                         "with 1 and the unit cost, and let quantities rise")  # fmt: skip
    if costs != sorted(costs, reverse=True):
        raise ValueError(f"cannot use the tiers of {part_id}: more of them cost more each. Correct it")
    return part


def _tier(text: str) -> tuple[int, Decimal]:
    quantity, _, cost = text.partition(":")
    return int(quantity), Decimal(cost)


def _spec(part_id: str, text: str) -> tuple[str, str | Decimal]:
    key, _, value = text.partition("=")
    if key in NUMBER_SPECS:
        return key, Decimal(value)
    if key in WORD_SPECS:
        return key, value
    raise ValueError(f"cannot use {text!r} of {part_id}: no such specification. Add it to the contract")
