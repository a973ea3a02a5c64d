"""Numbers in a text: their value, their unit, and what they are part of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Quantity", "find_quantities", "unit_of"]

#: Spellings of a unit → its symbol; general knowledge, the commonest ones.
_UNITS: Final = {
    spelling: symbol
    for symbol, spellings in {
        "kg": "kg kgs kilo kilos kilogram kilograms",
        "lb": "lb lbs pound pounds",
        "g": "g gram grams",
        "mg": "mg milligram milligrams",
        "mcg": "mcg µg microgram micrograms",
        "ml": "ml millilitre millilitres milliliter milliliters",
        "l": "l litre litres liter liters",
        "bpm": "bpm",
        "mmHg": "mmhg",
        "°C": "°c c celsius",
        "°F": "°f f fahrenheit",
        "°": "° degrees degree",
        "%": "% percent",
        "cm": "cm centimetre centimetres centimeter centimeters",
        "m": "metre metres meter meters",
        "km": "km kilometre kilometres kilometer kilometers",
        "mi": "mile miles",
        "h": "h hr hrs hour hours",
        "min": "min mins minute minutes",
        "s": "sec secs second seconds",
        "kcal": "kcal calories calorie cal",
        "mg/dL": "mg/dl",
        "mmol/L": "mmol/l",
        "steps": "steps",
        "IU": "iu",
        "USD": "usd dollar dollars",
        "EUR": "eur euro euros",
        "tablets": "tablet tablets pill pills capsule capsules",
    }.items()
    for spelling in spellings.split()
}

_WORDS: Final = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
} | {"fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}

_UNIT_PATTERN: Final = "|".join(
    re.escape(spelling) for spelling in sorted(_UNITS, key=len, reverse=True)
)
_DIGITS: Final = r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?"
_QUANTITY: Final = re.compile(
    rf"(?<![\w.,/-])(?P<sign>-)?(?:(?P<digits>{_DIGITS})|(?P<word>\b(?:{'|'.join(_WORDS)})\b))"
    rf"(?:\s*(?:/|\bout of\b|\bover\b)\s*(?P<second>{_DIGITS}|ten|five))?"
    rf"(?:\s?-?(?P<unit>(?:{_UNIT_PATTERN})(?![\w])))?(?![\w:]|[-/.]\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number of a text.

    Attributes:
        second: what stands behind the slash of "7/10" or "120/80".
        unit: symbol of its unit; empty when none is written.
        unit_text: the unit as written.
        text: number and unit as written.
        spelled: written as a word ("two").
    """

    value: float
    start: int
    end: int
    text: str
    second: float | None = None
    unit: str = ""
    unit_text: str = ""
    spelled: bool = False

    @property
    def pair(self) -> str:
        """``120/80``; empty without a second number."""
        return f"{self.value:g}/{self.second:g}" if self.second is not None else ""


def unit_of(text: str) -> str:
    """The symbol of a unit's spelling; empty for what is no unit."""
    return _UNITS.get(text.strip().lower(), "")


def find_quantities(text: str, *, taken: tuple[tuple[int, int], ...] = ()) -> tuple[Quantity, ...]:
    """Numbers of a text, in order, without those inside ``taken`` spans."""
    found: list[Quantity] = []
    for match in _QUANTITY.finditer(text):
        if any(low < match.end() and match.start() < high for low, high in taken):
            continue
        word = match["word"]
        value = float(_WORDS[word.lower()]) if word else _value(match["digits"])
        unit_text = match["unit"] or ""
        found.append(
            Quantity(
                value=-value if match["sign"] else value,
                start=match.start(),
                end=match.end(),
                text=match[0],
                second=_value(match["second"]) if match["second"] else None,
                unit=unit_of(unit_text),
                unit_text=unit_text,
                spelled=bool(word),
            )
        )
    return tuple(found)


def _value(digits: str) -> float:
    if digits.lower() in _WORDS:
        return float(_WORDS[digits.lower()])
    if re.fullmatch(r"\d+(?:,\d{3})+(?:\.\d+)?", digits):
        return float(digits.replace(",", ""))
    return float(digits.replace(",", "."))
