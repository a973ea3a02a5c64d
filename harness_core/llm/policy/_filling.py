"""What a parameter may be filled from, and what has been filled so far."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness_core.llm.policy._parameters import Parameter
from harness_core.llm.policy._prompt import Done
from harness_core.llm.policy._quantities import Quantity
from harness_core.llm.policy._verbs import Act
from harness_core.llm.policy._when import When
from harness_core.llm.policy._words import word_set

__all__ = [
    "AMOUNT_WORDS",
    "FREQUENCY_WORDS",
    "ITEM_WORDS",
    "PLACE_WORDS",
    "PROSE_WORDS",
    "UNIT_WORDS",
    "Source",
    "Span",
    "State",
    "Step",
    "is_free",
    "is_id",
    "overlaps",
]

Span = tuple[int, int]


PROSE_WORDS: Final = word_set(
    """
    content contents note notes text body message comment comments description details detail
    prompt summary instruction instructions remark remarks observation context memo fact
    """
)


ITEM_WORDS: Final = frozenset(["item", "items", "entry", "product", "thing", "element", "value"])


PLACE_WORDS: Final = frozenset(["list", "collection", "folder", "category", "board", "group"])


AMOUNT_WORDS: Final = frozenset(["dose", "dosage", "amount", "quantity", "strength", "portion"])


UNIT_WORDS: Final = frozenset(["unit", "units", "uom"])


FREQUENCY_WORDS: Final = frozenset(["frequency", "recurrence", "repeat", "repeats", "interval"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where values may come from.

    Attributes:
        text: the clause that asks for the call.
        message: the whole message.
        done: earlier calls of the conversation.
        tool_words: stems of the tool's name.
        act: what the tool does.
        supporting: the call only prepares another, which will hold what was said.
    """

    text: str
    message: str
    now: dt.datetime
    done: tuple[Done, ...] = ()
    tool_words: frozenset[str] = frozenset()
    tool_noun: str = ""
    supporting: bool = False
    act: Act = Act.CREATE


@dataclass(slots=True)
class State:
    source: Source
    when: When | None
    quantities: list[Quantity]
    parameters: tuple[Parameter, ...] = ()
    used: list[Span] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    evident: set[str] = field(default_factory=set)

    def put(self, parameter: Parameter, value: Any, *spans: Span, evident: bool = True) -> None:
        self.values[parameter.name] = value
        self.used += spans
        if evident:
            self.evident.add(parameter.name)


Step = Callable[[State, Sequence[Parameter]], None]


def overlaps(span: Span, state: State) -> bool:
    return any(low < span[1] and span[0] < high for low, high in state.used)


def is_free(parameter: Parameter) -> bool:
    """Takes a string of its own choosing."""
    return parameter.accepts("string") and not parameter.enum and not is_id(parameter)


def is_id(parameter: Parameter) -> bool:
    return "id" in parameter.words or "ids" in parameter.words or parameter.format == "uuid"
