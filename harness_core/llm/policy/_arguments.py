"""Arguments of a tool call: each parameter filled from the message by what its schema says.

What is not in the message is left out. A required parameter that cannot be filled makes the call
impossible, which the caller has to say; nothing is made up to satisfy a schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness_core.llm.policy import _phrases as phrases
from harness_core.llm.policy._fill_dates import fill_dates
from harness_core.llm.policy._fill_exact import (
    fill_addresses,
    fill_booleans,
    fill_constants,
    fill_enumerations,
    fill_ids,
)
from harness_core.llm.policy._fill_numbers import (
    fill_amounts,
    fill_frequencies,
    fill_numbers,
    fill_pairs_as_text,
    fill_units,
)
from harness_core.llm.policy._fill_words import (
    fill_known_terms,
    fill_names,
    fill_placed,
    fill_prose,
    fill_searches,
    fill_short_texts,
    fill_string_lists,
    fill_things,
)
from harness_core.llm.policy._filling import Source, State, Step
from harness_core.llm.policy._parameters import Parameter
from harness_core.llm.policy._quantities import find_quantities
from harness_core.llm.policy._when import find_when

__all__ = ["Filled", "fill"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """Arguments found.

    Attributes:
        missing: required parameters nothing was found for.
        evident: parameters filled by something that speaks for them in particular, rather than
            by the clause as a whole.
    """

    arguments: dict[str, Any]
    missing: tuple[str, ...] = ()
    evident: frozenset[str] = frozenset()

    @property
    def evidence(self) -> int:
        """How many parameters were filled by something that speaks for them."""
        return len(self.evident)


def fill(parameters: Sequence[Parameter], source: Source) -> Filled:
    """Fill what can be filled, surest kinds of value first; each piece of text is used once."""
    when = find_when(source.text, now=source.now)
    telephone = phrases.phone(source.text)
    closed = (*(when.spans if when is not None else ()), *([telephone[1]] if telephone else []))
    state = State(source, when, list(find_quantities(source.text, taken=closed)), tuple(parameters))
    for step in _STEPS:
        step(state, [p for p in parameters if p.name not in state.values])
    ordered = {p.name: state.values[p.name] for p in parameters if p.name in state.values}
    missing = tuple(p.name for p in parameters if p.required and p.name not in ordered)
    return Filled(arguments=ordered, missing=missing, evident=frozenset(state.evident))


def _nested(state: State, parameters: Sequence[Parameter]) -> None:
    """Objects are filled like a call of their own."""
    for parameter in parameters:
        if parameter.fields:
            inner = fill(parameter.fields, state.source)
            if inner.arguments and not inner.missing and (parameter.required or inner.evidence):
                state.put(parameter, inner.arguments, evident=inner.evidence > 0)


_STEPS: Final[tuple[Step, ...]] = (
    fill_constants,
    fill_addresses,
    fill_dates,
    fill_enumerations,
    fill_booleans,
    fill_numbers,
    fill_units,
    fill_amounts,
    fill_frequencies,
    fill_pairs_as_text,
    fill_ids,
    fill_known_terms,
    fill_names,
    fill_placed,
    fill_searches,
    _nested,
    fill_string_lists,
    fill_short_texts,
    fill_things,
    fill_prose,
)
