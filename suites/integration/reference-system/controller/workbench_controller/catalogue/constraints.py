"""What a search asks of a part: each constraint says whether a part meets it, and by how much."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from workbench_contract.catalogue import NUMBER_SPECS, WORD_SPECS, CatalogueQuery
from workbench_controller.catalogue.part import Part
from workbench_foundation import faults

_SPEC = re.compile(r"([a-z_]+) *(<=|>=|=) *(.+)", re.DOTALL)
#: Numbers as people write them; `Decimal` alone takes NaN and digits of every script.
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]{1,6})?")
#: How far a part is that lacks what is asked for: farther than any that has another value of it.
_NOT_THERE = math.inf


class BadConstraint(ValueError):
    """A constraint that can be asked of no part; says what could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How a part stands to a constraint.

    Attributes:
        value: what the part has, for people.
        meets: whether that is enough.
        margin: how far inside it is, in the constraint's unit; none where there is no distance.
        distance: how far outside it is, in parts of what was asked for; 0 when it meets it.
        says: a sentence without its end.
    """

    value: str
    meets: bool
    margin: Decimal | None
    distance: float
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One constraint of a search.

    Attributes:
        name: the parameter; of a specification its whole text.
        asked: its value, as it is shown.
        advice: what to do when nothing meets it.
    """

    name: str
    asked: str
    advice: str
    look: Callable[[Part], Found]


def constraints_of(query: CatalogueQuery) -> list[Constraint]:
    """The constraints of a search, in the order of its parameters; each word is one.

    Raises:
        BadConstraint: a specification that there is not, or a comparison that it does not have.
    """
    found = [_word(word) for word in dict.fromkeys(query.q.casefold().split())]
    if query.category is not None:
        found.append(_category(query.category.value))
    if query.max_unit_cost_usd is not None:
        found.append(
            _at_most("max_unit_cost_usd", "USD", query.max_unit_cost_usd, lambda part: part.unit_cost_usd)
        )
    if query.max_weight_g is not None:
        found.append(_at_most("max_weight_g", "g", query.max_weight_g, lambda part: part.weight_g))
    for text in query.spec:
        if faults.on("catalogue-spec-ignored") and _key(text) not in NUMBER_SPECS | WORD_SPECS:
            continue
        found.append(_specification(text))
    return found


def _key(text: str) -> str:
    return re.split("[<>=]", text)[0].strip()


def _word(word: str) -> Constraint:
    def look(part: Part) -> Found:
        meets = word in part.text()
        says = f"{word!r} occurs in {_where(word, part)}" if meets else f"{word!r} does not occur"
        return Found(
            value=part.name, meets=meets, margin=None, distance=0.0 if meets else 1.0, says=says
        )

    advice = f"leave out the word {word!r}, or search for another"
    return Constraint(name="q", asked=word, advice=advice, look=look)


def _where(word: str, part: Part) -> str:
    told = {"its name": part.name, "its id": part.part_id, "its manufacturer": part.manufacturer}
    return next(
        (where for where, text in told.items() if word in text.casefold()), "its specifications"
    )


def _category(asked: str) -> Constraint:
    def look(part: Part) -> Found:
        meets = part.category == asked
        return Found(
            value=part.category, meets=meets, margin=None, distance=0.0 if meets else 1.0,
            says=f"it is a {part.category}" + ("" if meets else f", not a {asked}"),
        )  # fmt: skip

    advice = f"search in all categories, or in another than {asked}"
    return Constraint(name="category", asked=asked, advice=advice, look=look)


def _at_most(name: str, unit: str, most: Decimal, value: Callable[[Part], Decimal]) -> Constraint:
    def look(part: Part) -> Found:
        found = _compared("<=", value(part), most)
        return _number(f"{value(part)} {unit}", f"{most} {unit}", found)

    return Constraint(
        name=name, asked=str(most), advice=f"allow more than {most} {unit}", look=look
    )


def _specification(text: str) -> Constraint:
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise BadConstraint(
            f"cannot search by {_short(text)}: expected a key, one of = <= >=, and a value. Write "
            "it like thread=M4 or torque_n_m>=1.5"
        )
    key, sign, value = match[1], match[2], match[3].strip()
    if key in WORD_SPECS:
        if sign != "=":
            raise BadConstraint(
                f"cannot search by {_short(text)}: {key} is a word, and words are not more or less "
                f"than others. Write {key}=…"
            )
        return _word_spec(key, value)
    if key not in NUMBER_SPECS:
        known = ", ".join(sorted(NUMBER_SPECS | WORD_SPECS))
        raise BadConstraint(
            f"cannot search by {_short(key)}: there is no such specification. Use one of {known}"
        )
    if not _NUMBER.fullmatch(value):
        raise BadConstraint(
            f"cannot search by {_short(text)}: {key} is a number. Write it in digits, like {key}{sign}1.5"
        )
    try:
        return _number_spec(key, sign, Decimal(value))
    except InvalidOperation as error:  # beyond the digits of a number that can be compared
        raise BadConstraint(f"cannot search by {_short(text)}: that is no number. Correct it") from error


def _word_spec(key: str, asked: str) -> Constraint:
    def look(part: Part) -> Found:
        value = part.specs.get(key)
        if value is None:
            return _missing(key)
        meets = str(value).casefold() == asked.casefold()
        return Found(
            value=str(value), meets=meets, margin=None, distance=0.0 if meets else 1.0,
            says=f"its {key} is {value}" + ("" if meets else f", not {asked}"),
        )  # fmt: skip

    advice = f"search for another {key} than {asked}"
    return Constraint(name=f"{key}={asked}", asked=asked, advice=advice, look=look)


def _number_spec(key: str, sign: str, asked: Decimal) -> Constraint:
    def look(part: Part) -> Found:
        value = part.specs.get(key)
        if not isinstance(value, Decimal):
            return _missing(key)
        return _number(f"{key} {value}", str(asked), _compared(sign, value, asked))

    ways = {"<=": f"allow more {key} than {asked}", ">=": f"ask for less {key} than {asked}"}
    advice = ways.get(sign, f"ask for a range of {key} with >= and <=")
    return Constraint(name=f"{key}{sign}{asked}", asked=str(asked), advice=advice, look=look)


def _compared(sign: str, value: Decimal, asked: Decimal) -> tuple[bool, Decimal, float]:
    """Whether it meets, by how much, and how far it is outside."""
    inside = {"<=": asked - value, ">=": value - asked, "=": -abs(asked - value)}[sign]
    meets = inside >= 0
    if faults.on("catalogue-cap-exclusive") and sign == "<=":
        meets = inside > 0
    outside = 0.0 if meets else float(abs(inside)) / max(float(abs(asked)), 0.001)
    return meets, Decimal(0) if faults.on("catalogue-margin-invented") else inside, outside


def _number(value: str, asked: str, found: tuple[bool, Decimal, float]) -> Found:
    meets, inside, outside = found
    away = f"{abs(inside).normalize():f}"
    says = f"{value} is {away} {'inside' if meets else 'outside'} {asked}"
    if inside == 0:
        says = f"{value} is exactly {asked}"
    return Found(value=value, meets=meets, margin=inside, distance=outside, says=says)


def _missing(key: str) -> Found:
    return Found(
        value="nothing", meets=False, margin=None, distance=_NOT_THERE, says=f"it has no {key}"
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
