"""Prices of catalogue parts, as the controller has them at this moment."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
from pydantic import ValidationError

from workbench_contract.catalogue import PRICES, PartPrice, PartPrices
from workbench_foundation.errors import describe
from workbench_foundation.keys import HEADER
from workbench_planning.agreement import CatalogueRow
from workbench_worker.refusal import Refused

#: Between two pages of prices a new version may come; then all are asked for again.
_TRIES = 3


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

    async def aclose(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def of(self, part_ids: Sequence[str]) -> dict[str, CatalogueRow]:
        """The rows of those parts that the latest version has, all of one version.

        Raises:
            Refused: 503 when they cannot be looked up; nothing is judged then.
        """
        for _ in range(_TRIES):
            pages = [
                await self._page(part_ids[at : at + PRICES])
                for at in range(0, len(part_ids), PRICES)
            ]
            if len({page.catalogue_version for page in pages}) <= 1:
                return {
                    price.part_id: _row(price, page.catalogue_version)
                    for page in pages
                    for price in page.prices
                }
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
        tiers=tuple((tier.from_quantity, tier.unit_cost_usd) for tier in price.quantity_tiers),
    )


def _away(why: str) -> Refused:
    detail = f"cannot judge the hand-over: the catalogue of parts does not answer ({why})"
    return Refused(503, f"{detail}. Submit again")
