"""The rows of the catalogue, read through a database role that can do nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import asyncpg

from workbench_contract.catalogue import WORD_SPECS
from workbench_controller.catalogue.part import Part
from workbench_foundation import faults

#: Of one version; without one, the latest. What is searched for is no part of it.
_PARTS = (
    "SELECT * FROM catalogue_parts"
    " WHERE version = coalesce($1::integer, (SELECT max(version) FROM catalogue_versions))"
)


class NoSuchVersion(ValueError):
    """The catalogue does not have a version, or has none at all."""


class Catalogue:
    """Reads the catalogue.

    Args:
        pool: connections as the role that can only read.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._lost: Exception | None = None

    async def parts(self, version: int | None = None, *, words: str = "", spec: str = "") -> tuple[int, list[Part]]:
        """All parts of a version, and which version that is; the latest when none is named.

        Args:
            version: which one.
            words, spec: for the planted faults `catalogue-words-in-sql`, `catalogue-value-in-sql` alone.

        Raises:
            NoSuchVersion: there are no parts of it.
            OSError, asyncpg.PostgresError, asyncpg.InterfaceError: the database is away.
        """
        sql = _PARTS
        if words and faults.on("catalogue-words-in-sql"):
            sql += f" AND part_id || ' ' || name || specs::text ILIKE '%{words}%'"
        if spec and faults.on("catalogue-value-in-sql"):
            sql += f" AND '{spec}' <> ''"
        if self._lost is not None:
            raise self._lost
        try:
            rows = await self._pool.fetch(sql, version)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if faults.on("catalogue-lost-for-good"):
                self._lost = error
            raise
        if not rows:
            which = "parts" if version is None else f"version {version}"
            raise NoSuchVersion(
                f"cannot search the catalogue: it has no {which}. Begin without a cursor"
            )
        return rows[0]["version"], [_part(row) for row in rows]

    def close(self) -> None:
        """Give the connections up."""
        self._pool.terminate()


def _measured(key: str, value: Decimal) -> Decimal:
    if faults.on("catalogue-in-inches") and key.endswith("_mm"):
        return round(value / Decimal("25.4"), 3)
    if faults.on("catalogue-torque-in-kgf") and key == "torque_n_m":
        return round(value * Decimal("10.197"), 3)
    return value


def _part(row: Mapping[str, Any]) -> Part:
    return Part(
        part_id=row["part_id"],
        category=row["category"],
        manufacturer=row["manufacturer"],
        name=row["name"],
        unit_cost_usd=row["unit_cost_usd"],
        tiers=tuple((quantity, Decimal(cost)) for quantity, cost in row["quantity_tiers"]),
        weight_g=row["weight_g"],
        source=row["source"],
        specs={
            key: value if key in WORD_SPECS else _measured(key, Decimal(value))
            for key, value in row["specs"].items()
        },
    )
