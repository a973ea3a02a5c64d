"""Catalogue parts, as the controller has them at this moment: price, tiers, weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import httpx
from pydantic import ValidationError

from workbench_contract.catalogue import PRICES, PartCategory, PartPrice, PartPrices
from workbench_foundation import faults
from workbench_foundation.errors import describe
from workbench_foundation.keys import HEADER
from workbench_making.totals import CataloguePart
from workbench_planning.agreement import CatalogueRow
from workbench_worker.refusal import Refused

#: Between two pages of prices a new version may come; then all are asked for again.
_TRIES = 3


#: Parts that take time to fasten, besides being handled.
_FASTENERS = frozenset({PartCategory.SCREW, PartCategory.NUT, PartCategory.INSERT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was looked up; parts that the catalogue does not have are not in it."""

    version: int = 0
    prices: Mapping[str, PartPrice] = field(default_factory=dict)

    def rows(self) -> dict[str, CatalogueRow]:
        """As files are held against it."""
        return {each: _row(price, self.version) for each, price in self.prices.items()}

    def torque_n_m(self, part_id: str) -> float | None:
        """Of a servo or motor; none of what moves nothing, or is not there."""
        price = self.prices.get(part_id)
        return None if price is None else price.torque_n_m

    def part(self, part_id: str) -> CataloguePart | None:
        """As designs are priced with it."""
        price = self.prices.get(part_id)
        if price is None:
            return None
        return CataloguePart(
            part_id=part_id,
            unit_cost_usd=price.unit_cost_usd,
            weight_g=Decimal(repr(price.weight_g)),
            fastener=price.category in _FASTENERS,
            tiers=_tiers(price),
        )


class Prices:
    """The controller's prices.

    Args:
        url: of the controller.
        key: its API key.
        timeout_s: of one request.
    """

    def __init__(self, url: str, *, key: str, timeout_s: float) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, headers={HEADER: key}, timeout=timeout_s, trust_env=False
        )
        self._first: Looked | None = None

    async def aclose(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def of(self, part_ids: Sequence[str]) -> Looked:
        """Those of the parts that the latest version has, all of one version.

        Raises:
            Refused: 503 when they cannot be looked up; nothing is judged then.
        """
        for _ in range(_TRIES):
            pages = [
                await self._page(part_ids[at : at + PRICES])
                for at in range(0, len(part_ids), PRICES)
            ]
            if len({page.catalogue_version for page in pages}) <= 1:
                version = pages[0].catalogue_version if pages else 0
                found = {price.part_id: price for page in pages for price in page.prices}
                looked = Looked(version=version, prices=found)
                if faults.on("prices-of-first-look"):
                    self._first = self._first or (looked if found else None)
                    return self._first or looked
                return looked
        raise _away("its version changes too often")

    async def _page(self, part_ids: Sequence[str]) -> PartPrices:
        try:
            answer = await self._http.get("/cots/prices", params={"part_id": list(part_ids)})
            answer.raise_for_status()
            return PartPrices.model_validate_json(answer.content)
        except (httpx.HTTPError, ValidationError) as error:
            raise _away(describe(error)) from error


def _row(price: PartPrice, version: int) -> CatalogueRow:
    return CatalogueRow(
        part_id=price.part_id,
        version=version,
        unit_cost_usd=price.unit_cost_usd,
        tiers=_tiers(price),
    )


def _tiers(price: PartPrice) -> tuple[tuple[int, Decimal], ...]:
    return tuple((tier.from_quantity, tier.unit_cost_usd) for tier in price.quantity_tiers)


def _away(why: str) -> Refused:
    detail = f"cannot judge the hand-over: the catalogue of parts does not answer ({why})"
    return Refused(503, f"{detail}. Submit again")
