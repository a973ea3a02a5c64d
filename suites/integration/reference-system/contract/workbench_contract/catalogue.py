"""The catalogue of parts that can be bought: what is asked of it, and what it answers.

A search names constraints; every candidate meets all of them, and says by how much. A constraint on
a specification is one text: its key, ``=``, ``<=`` or ``>=``, and a value; ``thread=M4``,
``length_mm=20``, ``torque_n_m>=1.5``.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from workbench_contract.base import Model, Text

#: The longest words, the most constraints on specifications and the most candidates of one search.
WORDS_CHARS = 200
SPECS = 8
CANDIDATES = 25
#: The most parts whose prices are asked for at once.
PRICES = 100

#: Specifications that are words: they equal, in any case, or do not.
WORD_SPECS = frozenset({"drive", "material", "standard", "strength_class", "thread"})
#: Specifications that are numbers, in the unit of their name.
NUMBER_SPECS = frozenset(
    {
        "across_flats_mm",
        "bore_mm",
        "current_a",
        "dynamic_load_n",
        "head_diameter_mm",
        "head_height_mm",
        "height_mm",
        "length_mm",
        "outer_diameter_mm",
        "socket_mm",
        "speed_rpm",
        "static_load_n",
        "thickness_mm",
        "torque_n_m",
        "voltage_v",
        "width_mm",
    }
)


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "cannot use this text: it holds half of a surrogate pair. Leave it out"
        ) from error
    return text


#: Text that can be sent on: no U+0000, no half of a character.
_Sound = Annotated[Text, AfterValidator(_encodable)]
#: An amount in USD, to the cent.
_Usd = Annotated[Decimal, Field(ge=0, le=1_000_000, max_digits=9, decimal_places=2)]
#: A mass in grams, to the milligram.
_Grams = Annotated[Decimal, Field(ge=0, le=1_000_000, max_digits=10, decimal_places=3)]


class PartCategory(StrEnum):
    SCREW = "screw"
    NUT = "nut"
    WASHER = "washer"
    INSERT = "insert"
    BEARING = "bearing"
    SERVO = "servo"
    MOTOR = "motor"


class CatalogueQuery(Model):
    """What parts are looked for; each constraint narrows the others.

    Attributes:
        q: words; each must occur in the part's id, name, manufacturer or specifications, in any case.
        max_unit_cost_usd: the most that one costs when one is bought; itself included.
        max_weight_g: the most that one weighs; itself included.
        spec: constraints on specifications.
        cursor: `next_cursor` of the page before, with the same constraints.
    """

    q: _Sound = Field(
        default="",
        max_length=WORDS_CHARS,
        description="words that all occur in the part's id, name, manufacturer or specifications",
    )
    category: PartCategory | None = None
    max_unit_cost_usd: _Usd | None = None
    max_weight_g: _Grams | None = None
    spec: list[Annotated[_Sound, Field(min_length=1, max_length=100)]] = Field(
        default_factory=list,
        max_length=SPECS,
        description="constraints such as thread=M4, length_mm=20, torque_n_m>=1.5, speed_rpm<=60",
    )
    limit: int = Field(default=10, ge=1, le=CANDIDATES)
    cursor: _Sound | None = Field(default=None, min_length=1, max_length=400)


class QuantityTier(Model):
    """What one costs when at least so many are bought."""

    from_quantity: int
    unit_cost_usd: Decimal


class Fit(Model):
    """How a part stands to one constraint that it meets.

    Attributes:
        constraint: name of the parameter; of a specification its text.
        found: what the part has.
        margin: how far it is inside, in the unit of the constraint; none where there is no distance.
        says: the same for people.
    """

    constraint: str
    found: str
    margin: float | None
    says: str


class Candidate(Model):
    """A part that meets every constraint.

    Attributes:
        specs: key to word, or to number in the unit of the key.
        unit_cost_usd: of one, when one is bought.
        source: where its data come from.
        fit: one for each constraint of the search, in the order of its parameters.
        fit_rationale: the same in a sentence.
    """

    part_id: str
    category: PartCategory
    manufacturer: str
    name: str
    specs: dict[str, str | float]
    unit_cost_usd: Decimal
    quantity_tiers: list[QuantityTier]
    weight_g: float
    source: str
    catalogue_version: int
    fit: list[Fit]
    fit_rationale: str


class Relaxation(Model):
    """A constraint that nearest part does not meet.

    Attributes:
        asked: as it was given.
        found: what the nearest part has.
        alone: whether there are parts when this constraint alone is left out.
        says: what to change, for people.
    """

    constraint: str
    asked: str
    found: str
    alone: bool
    says: str


class NearestPart(Model):
    """The part that misses the fewest constraints, and of those the one that misses them least."""

    part_id: str
    category: PartCategory
    manufacturer: str
    name: str
    unit_cost_usd: Decimal
    weight_g: float


class NoMatch(Model):
    """Why there is no candidate.

    Attributes:
        reason: one sentence.
        relax: the constraints that the nearest part misses.
    """

    reason: str
    relax: list[Relaxation]
    nearest: NearestPart


class CatalogueAnswer(Model):
    """A page of the parts that meet the constraints, cheapest first, then by id.

    Attributes:
        catalogue_version: of every part of the walk that this page is of.
        total: parts that meet the constraints, on all pages together.
        next_cursor: of the page that follows; none on the last one.
        no_match: there, and only there, when no part meets the constraints.
    """

    catalogue_version: int
    total: int
    candidates: list[Candidate]
    next_cursor: str | None
    no_match: NoMatch | None


class PartPrice(Model):
    """What a part costs, weighs and can move in one version of the catalogue.

    Attributes:
        torque_n_m: of a servo or motor; none of what moves nothing.
    """

    part_id: str
    category: PartCategory
    unit_cost_usd: Decimal
    quantity_tiers: list[QuantityTier]
    weight_g: float
    torque_n_m: float | None = None


class PartPrices(Model):
    """Prices of the parts that were named.

    Attributes:
        prices: in the order of the names, each part once.
        unknown: names that are no part of this version.
    """

    catalogue_version: int
    prices: list[PartPrice]
    unknown: list[str]
