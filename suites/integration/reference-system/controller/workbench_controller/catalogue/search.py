"""A search of the catalogue, whole: the parts that meet every constraint, or why there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from workbench_contract.catalogue import (
    Candidate,
    CatalogueAnswer,
    CatalogueQuery,
    Fit,
    NearestPart,
    NoMatch,
    PartCategory,
    PartPrice,
    PartPrices,
    QuantityTier,
    Relaxation,
)
from workbench_controller.catalogue.constraints import Constraint, Found, constraints_of
from workbench_controller.catalogue.cursor import Cursor, read_cursor, write_cursor
from workbench_controller.catalogue.part import Part
from workbench_controller.catalogue.reader import Catalogue
from workbench_foundation import faults

#: For the planted fault `catalogue-answer-remembered` alone.
_remembered: dict[object, CatalogueAnswer] = {}


async def search(catalogue: Catalogue, query: CatalogueQuery) -> CatalogueAnswer:
    """One page of a search.

    Raises:
        BadConstraint, BadCursor, NoSuchVersion: the search cannot be carried out; each says why.
        OSError, asyncpg.PostgresError, asyncpg.InterfaceError: the database is away.
    """
    constraints = constraints_of(query)
    cursor = None if query.cursor is None else read_cursor(query.cursor, query)
    place = (query.category, query.limit, query.cursor)
    if faults.on("catalogue-answer-remembered") and place in _remembered:
        return _remembered[place]
    version, parts = await catalogue.parts(cursor and cursor.version, words=query.q, spec=" ".join(query.spec))
    answer = _answer(query, constraints, cursor, version, parts)
    if faults.on("catalogue-answer-remembered"):
        _remembered[place] = answer
    return answer


async def prices_of(catalogue: Catalogue, part_ids: Sequence[str]) -> PartPrices:
    """What parts cost and weigh in the latest version, by their ids."""
    version, parts = await catalogue.parts()
    by_id = {part.part_id: part for part in parts}
    wanted = list(dict.fromkeys(part_ids))
    return PartPrices(
        catalogue_version=version,
        prices=[
            PartPrice(
                part_id=part_id,
                category=PartCategory(by_id[part_id].category),
                unit_cost_usd=by_id[part_id].unit_cost_usd,
                quantity_tiers=_tiers(by_id[part_id]),
                weight_g=float(by_id[part_id].weight_g),
                torque_n_m=_torque(by_id[part_id]),
            )
            for part_id in wanted
            if part_id in by_id
        ],
        unknown=[part_id for part_id in wanted if part_id not in by_id],
    )


def _torque(part: Part) -> float | None:
    """Of what moves; a number alone is one."""
    found = part.specs.get("torque_n_m")
    return None if found is None or isinstance(found, str) else float(found)


def _answer(
    query: CatalogueQuery,
    constraints: Sequence[Constraint],
    cursor: Cursor | None,
    version: int,
    parts: Iterable[Part],
) -> CatalogueAnswer:
    looked = {part: [each.look(part) for each in constraints] for part in _ordered(parts)}
    matches = [part for part, found in looked.items() if all(each.meets for each in found)]
    if not matches and faults.on("catalogue-nearest-offered"):
        matches = [min(looked, key=lambda part: _distance(part, looked[part]))]
    no_match = None if matches else _no_match(constraints, looked)
    left = [part for part in matches if cursor is None or _follows(part, cursor)]
    page = left[: query.limit]
    following = None
    full = faults.on("catalogue-cursor-to-nothing") and len(page) == query.limit
    if full or len(left) > len(page):
        following = write_cursor(Cursor(version=version, after=page[-1].order), query)
    return CatalogueAnswer(
        catalogue_version=version,
        total=len(matches),
        candidates=[_candidate(part, version, constraints, looked[part]) for part in page],
        next_cursor=following,
        no_match=no_match,
    )


def _ordered(parts: Iterable[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: part.order)


def _follows(part: Part, cursor: Cursor) -> bool:
    if faults.on("catalogue-page-skips"):
        return part.unit_cost_usd > cursor.after[0]
    return part.order > cursor.after


def _candidate(
    part: Part, version: int, constraints: Sequence[Constraint], looked: Sequence[Found]
) -> Candidate:
    fit = [
        Fit(
            constraint=constraint.name,
            found=found.value,
            margin=None if found.margin is None else float(found.margin),
            says=found.says,
        )
        for constraint, found in zip(constraints, looked, strict=True)
    ]
    told = "; ".join(each.says for each in fit)
    return Candidate(
        part_id=part.part_id,
        category=PartCategory(part.category),
        manufacturer=part.manufacturer,
        name=part.name,
        specs={key: _shown(value) for key, value in sorted(part.specs.items())},
        unit_cost_usd=part.unit_cost_usd,
        quantity_tiers=_tiers(part),
        weight_g=float(part.weight_g),
        source=part.source,
        catalogue_version=version,
        fit=fit,
        fit_rationale=told or "nothing was asked of it; the cheapest parts come first",
    )


def _shown(value: str | Decimal) -> str | float:
    return float(value) if isinstance(value, Decimal) else value


def _tiers(part: Part) -> list[QuantityTier]:
    return [
        QuantityTier(from_quantity=quantity, unit_cost_usd=cost) for quantity, cost in part.tiers
    ]


def _distance(part: Part, looked: Sequence[Found]) -> tuple[int, float, tuple[Decimal, str]]:
    """How far a part is from what is looked for; no two are equally far."""
    missed = [found.distance for found in looked if not found.meets]
    return len(missed), sum(missed), part.order


def _no_match(
    constraints: Sequence[Constraint], looked: dict[Part, list[Found]]
) -> NoMatch:
    nearest = min(looked, key=lambda part: _distance(part, looked[part]))
    missed = [place for place, found in enumerate(looked[nearest]) if not found.meets]
    relax = [
        Relaxation(
            constraint=constraints[place].name,
            asked=constraints[place].asked,
            found=looked[nearest][place].value,
            alone=any(_only_misses(found, place) for found in looked.values()),
            says=f"{constraints[place].advice}: of {nearest.part_id}, {looked[nearest][place].says}",
        )
        for place in missed
    ]
    count = f"{len(constraints)} constraints" if len(constraints) > 1 else "constraint"
    return NoMatch(
        reason=(
            f"none of {len(looked)} parts meets the {count}; the nearest, {nearest.part_id}, misses "
            f"{', '.join(each.constraint + ' ' + each.asked for each in relax)}"
        ),
        relax=relax,
        nearest=NearestPart(
            part_id=nearest.part_id,
            category=PartCategory(nearest.category),
            manufacturer=nearest.manufacturer,
            name=nearest.name,
            unit_cost_usd=nearest.unit_cost_usd,
            weight_g=float(nearest.weight_g),
        ),
    )


def _only_misses(found: Sequence[Found], place: int) -> bool:
    return all(each.meets for at, each in enumerate(found) if at != place)
