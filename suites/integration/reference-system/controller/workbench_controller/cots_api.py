"""The endpoints of the catalogue of parts that can be bought; all of them only read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from workbench_contract.catalogue import PRICES, CatalogueAnswer, CatalogueQuery, PartPrices
from workbench_controller.catalogue.constraints import BadConstraint
from workbench_controller.catalogue.cursor import BadCursor
from workbench_controller.catalogue.reader import NoSuchVersion
from workbench_controller.catalogue.search import prices_of, search
from workbench_controller.parts import Controller, Refused, refusals
from workbench_foundation import faults

router = APIRouter(prefix="/cots")

PartId = Annotated[str, Query(min_length=1, max_length=100)]


@router.get("/search", responses=refusals(400))
async def get_search(
    asked: Annotated[CatalogueQuery, Query()], controller: Controller
) -> CatalogueAnswer:
    """The parts that meet all constraints, cheapest first; or why there are none.

    With 400 a specification, or the cursor, can be asked of no part.
    """
    if faults.on("catalogue-search-counted"):
        await controller.pool.execute("UPDATE catalogue_versions SET published_at = now()")
    try:
        return await search(controller.catalogue, asked)
    except (BadConstraint, BadCursor, NoSuchVersion) as error:
        raise Refused(400, str(error)) from error


@router.get("/prices")
async def get_prices(
    part_id: Annotated[list[PartId], Query(min_length=1, max_length=PRICES)], controller: Controller
) -> PartPrices:
    """What parts cost and weigh in the catalogue's latest version."""
    try:
        prices = await prices_of(controller.catalogue, part_id)
        if faults.on("fuzz-price-undocumented") and prices.unknown:
            raise Refused(410, "the catalogue has no such part")
        return prices
    except NoSuchVersion as error:
        raise Refused(503, str(error)) from error
