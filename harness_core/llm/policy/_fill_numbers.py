"""Arguments that are numbers, or belong to one: units, amounts, frequencies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from harness_core.llm.policy._fill_dates import is_calendar_part
from harness_core.llm.policy._filling import (
    AMOUNT_WORDS,
    FREQUENCY_WORDS,
    UNIT_WORDS,
    State,
    is_free,
    is_id,
)
from harness_core.llm.policy._parameters import Parameter
from harness_core.llm.policy._quantities import Quantity, unit_of
from harness_core.llm.policy._words import tokens

__all__ = ["fill_amounts", "fill_frequencies", "fill_numbers", "fill_pairs_as_text", "fill_units"]

#: Units that the last word of a parameter's name can demand.
_NAME_UNITS: Final = {"kg": "kg", "mg": "mg", "g": "g", "ml": "ml", "bpm": "bpm", "cm": "cm",
                      "km": "km", "minutes": "min", "min": "min", "mins": "min", "hours": "h",
                      "seconds": "s", "kcal": "kcal", "calories": "kcal", "lbs": "lb",
                      "percent": "%", "steps": "steps"}  # fmt: skip


#: Words this far from a number speak of it.
_NEAR_WORDS: Final = 4


#: Evidence an optional number needs before it is filled.
_EVIDENCE: Final = 1.0


_FREQUENCY: Final = re.compile(
    r"\b(?:(?:once|twice|three times|four times|\d+ times|\d+x)\s+(?:(?:a|per)\s+)?"
    r"(?:daily|weekly|monthly|day|week|month)|every\s+(?:other\s+)?(?:\d+\s+)?"
    r"(?:hours?|days?|weeks?|months?|morning|evening|night|monday|tuesday|wednesday|thursday"
    r"|friday|saturday|sunday)|hourly|daily|nightly|weekly|monthly|yearly|annually|as needed)\b",
    re.IGNORECASE,
)


def fill_numbers(state: State, parameters: Sequence[Parameter]) -> None:
    """Numbers go to the parameters they speak for, the best pair first, each used once."""
    numeric = [p for p in parameters if _is_numeric(p)]
    open_quantities = list(state.quantities)
    pairs = sorted(
        (
            (-score, at, number, parameter, quantity)
            for at, parameter in enumerate(numeric)
            for number, quantity in enumerate(open_quantities)
            if (score := _affinity(parameter, quantity, state, numeric)) is not None
        ),
        key=lambda pair: pair[:3],
    )
    taken: set[tuple[int, bool]] = set()
    for negative, _, number, parameter, quantity in pairs:
        second = _wants_second(parameter, quantity)
        if parameter.name in state.values or (number, second) in taken:
            continue
        if not parameter.required and -negative < _EVIDENCE:
            continue
        value = quantity.second if second and quantity.second is not None else quantity.value
        whole = "integer" in parameter.types and "number" not in parameter.types
        state.put(
            parameter,
            int(value) if whole or value.is_integer() else value,
            (quantity.start, quantity.end),
        )
        taken.add((number, second))
    for parameter in parameters:
        if parameter.name in state.values or parameter in numeric or not parameter.required:
            continue
        if parameter.types == () and state.quantities:  # any JSON value: the number as it is
            quantity = state.quantities[0]
            plain = int(quantity.value) if quantity.value.is_integer() else quantity.value
            state.put(parameter, quantity.pair or plain, (quantity.start, quantity.end))


def _is_numeric(parameter: Parameter) -> bool:
    numeric = {"integer", "number"} & set(parameter.types)
    if not numeric or parameter.enum:
        return False
    return not is_id(parameter) and not is_calendar_part(parameter)


def _wants_second(parameter: Parameter, quantity: Quantity) -> bool:
    if quantity.second is None:
        return False
    named = (
        parameter.words & {"diastolic", "lower", "bottom", "second"} or parameter.name[-1] == "2"
    )
    return bool(named) or re.search(r"\bsecond\b", parameter.description.lower()) is not None


def _affinity(
    parameter: Parameter, quantity: Quantity, state: State, rivals: Sequence[Parameter]
) -> float | None:
    """How much a number speaks for a parameter; ``None`` when it cannot be its value."""
    second = quantity.second if _wants_second(parameter, quantity) else None
    value = quantity.value if second is None else second
    by_unit = _unit_affinity(parameter, quantity)
    whole = value.is_integer() or "number" in parameter.types
    if by_unit is None or not whole or not parameter.admits(value):
        return None
    score = by_unit + _nearness(parameter, quantity, state.source.text)
    if quantity.second is not None and parameter.maximum == quantity.second:
        score += 3.0  # "7/10" for a scale that ends at 10
    if quantity.second is not None and (
        _wants_second(parameter, quantity) or "systolic" in parameter.words
    ):
        score += 3.0
    if len(rivals) == 1 and parameter.required:
        score += 0.5
    # "one of my friends": a number word alone is no evidence.
    return None if not score and quantity.spelled else score


def _unit_affinity(parameter: Parameter, quantity: Quantity) -> float | None:
    demanded = next((_NAME_UNITS[w] for w in parameter.words if w in _NAME_UNITS), "")
    if not quantity.unit:
        return 0.0
    if demanded:
        return 3.0 if demanded == quantity.unit else None
    return 2.0 if _mentions_unit(parameter, quantity) else 0.0


def _mentions_unit(parameter: Parameter, quantity: Quantity) -> bool:
    written = {unit_of(word) for word in re.findall(r"[\w°%/]+", parameter.description.lower())}
    return quantity.unit in written


def _nearness(parameter: Parameter, quantity: Quantity, text: str) -> float:
    words = [token for token in tokens(text) if token.kind == "word"]
    before = [token for token in words if token.end <= quantity.start]
    after = [token for token in words if token.start >= quantity.end]
    best = 0.0
    for sequence, weight in ((reversed(before), 3.0), (after, 2.2)):
        for distance, token in enumerate(sequence):
            if distance >= _NEAR_WORDS:
                break
            if token.stem in parameter.name_stems:
                best = max(best, weight - 0.4 * distance)
            elif token.is_content and token.stem in parameter.description_stems:
                best = max(best, weight / 2 - 0.3 * distance)
    return best


def fill_units(state: State, parameters: Sequence[Parameter]) -> None:
    chosen = [q for q in state.quantities if (q.start, q.end) in state.used] or state.quantities
    with_unit = next((quantity for quantity in chosen if quantity.unit), None)
    for parameter in parameters:
        if not parameter.words & UNIT_WORDS or not parameter.accepts("string"):
            continue
        offered = [str(value) for value in (*parameter.enum, *parameter.examples)]
        pressure = any(q.second is not None and q.second > 20 for q in chosen)  # noqa: PLR2004
        symbol = with_unit.unit if with_unit is not None else ("mmHg" if pressure else "")
        if not symbol:
            continue
        match = next((o for o in offered if unit_of(o) == symbol or o == symbol), None)
        if match is not None:
            state.put(parameter, match)
        elif not parameter.enum:
            state.put(parameter, symbol)


def fill_amounts(state: State, parameters: Sequence[Parameter]) -> None:
    for parameter in parameters:
        if not parameter.words & AMOUNT_WORDS or not parameter.accepts("string"):
            continue
        quantity = next((q for q in state.quantities if q.unit), None)
        if quantity is not None:
            state.put(parameter, quantity.text.strip(), (quantity.start, quantity.end))


def fill_frequencies(state: State, parameters: Sequence[Parameter]) -> None:
    for parameter in parameters:
        found = _FREQUENCY.search(state.source.text)
        if parameter.words & FREQUENCY_WORDS and is_free(parameter) and found is not None:
            state.put(parameter, found[0], found.span())


def fill_pairs_as_text(state: State, parameters: Sequence[Parameter]) -> None:
    """Where text is taken for a value: 120/80 as it is."""
    for parameter in parameters:
        if parameter.words & {"value", "reading", "measurement"} and "string" in parameter.types:
            quantity = next(iter(state.quantities), None)
            if quantity is not None:
                value = quantity.pair or f"{quantity.value:g}"
                state.put(parameter, value, (quantity.start, quantity.end))
