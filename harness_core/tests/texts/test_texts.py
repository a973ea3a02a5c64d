"""Values made of texts, changed text by text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from msgspec import Struct

from harness_core.base.texts import map_texts


class Named(NamedTuple):
    """A tuple with names."""

    text: str
    number: int = 1


class Struct_(Struct, frozen=True):  # noqa: N801 - beside the one of the library
    """A struct."""

    text: str
    inner: Any = None


@dataclass(frozen=True)
class Plain:
    """A dataclass."""

    text: str
    length: int = field(init=False, default=0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", "A"),
        (3, 3),
        (None, None),
        ({"a": ["a", 1]}, {"a": ["A", 1]}),
        (("a", {"b"}), ("A", {"B"})),
        (frozenset({"a"}), frozenset({"A"})),
        (Named("a"), Named("A")),
        (Struct_("a", inner=[Struct_("b")]), Struct_("A", inner=[Struct_("B")])),
        (Plain("a"), Plain("A")),
        (str, str),
    ],
)
def test_every_text_is_changed_and_nothing_else(value, expected) -> None:
    """Keys, numbers and types stay; containers keep their kind."""
    assert expected == map_texts(value, str.upper)
