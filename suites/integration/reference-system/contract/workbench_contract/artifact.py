"""What the files that agents write are made of: strict models, and quantities with bounds.

Nothing is converted: text is no number, a boolean is no number, 1.5 is no whole number. Cross-checks
between fields are the planner's gate, not here, so that one mistake hides no other.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
)

from workbench_contract.base import Model

#: Further than this from the origin lies no workbench.
REACH_MM = 1_000_000.0
#: More than any design costs; keeps sums exact.
MOST_USD = 1_000_000_000

_CENTS = Decimal("0.01")


class Artifact(Model):
    """A part of a file that an agent writes."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _money(value: Any) -> Decimal:
    """Dollars and cents of a number as it was typed; 1.10 and 1.1 are the same amount."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ValueError("a number of USD")
    # The shortest text that reads as the same number is what was typed.
    amount = value if isinstance(value, Decimal) else Decimal(str(value))
    if not amount.is_finite() or not -MOST_USD <= amount <= MOST_USD:
        raise ValueError(f"a number of USD, at most {MOST_USD}")
    cents = amount.quantize(_CENTS)
    if cents != amount:
        raise ValueError("USD with at most two decimal places")
    return cents + 0  # no -0.00


def _from_zero(value: Any) -> Decimal:
    if (usd := _money(value)) < 0:
        raise ValueError("an amount of USD from 0 on")
    return usd


def _above_zero(value: Any) -> Decimal:
    if (usd := _money(value)) <= 0:
        raise ValueError("an amount of USD above 0")
    return usd


#: On the wire money is a number, as it is in the files.
_AS_NUMBER = PlainSerializer(float, return_type=float, when_used="json")

#: USD from 0.00 on, with two decimal places.
Usd = Annotated[Decimal, BeforeValidator(_from_zero), _AS_NUMBER]
#: USD above 0.00, with two decimal places.
PositiveUsd = Annotated[Decimal, BeforeValidator(_above_zero), _AS_NUMBER]


def _on_one_line(text: str) -> str:
    if text != text.strip() or len(text.splitlines()) != 1 or not text.isprintable():
        raise ValueError("printable text on one line, without space around it")
    return text


def _sha256(text: str) -> str:
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise ValueError("a sha256: 64 digits of 0-9 and a-f")
    return text


#: A name that stands in tables and sentences.
Name = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_on_one_line)]
Sha256 = Annotated[str, AfterValidator(_sha256)]
#: A coordinate.
Mm = Annotated[float, Field(ge=-REACH_MM, le=REACH_MM)]
#: A length.
LengthMm = Annotated[float, Field(gt=0, le=REACH_MM)]
#: A length that may be none.
SpreadMm = Annotated[float, Field(ge=0, le=REACH_MM)]
#: A point: x, y, z.
PointMm = Annotated[list[Mm], Field(min_length=3, max_length=3)]
#: Half the range in x, y, z.
SpreadsMm = Annotated[list[SpreadMm], Field(min_length=3, max_length=3)]
#: Edges of a box along x, y, z.
EdgesMm = Annotated[list[LengthMm], Field(min_length=3, max_length=3)]
#: A mass.
Grams = Annotated[float, Field(ge=0, le=1e9)]
PositiveGrams = Annotated[float, Field(gt=0, le=1e9)]
VolumeMm3 = Annotated[float, Field(gt=0, le=1e15)]
Seconds = Annotated[float, Field(gt=0, le=1e6)]
Quantity = Annotated[int, Field(ge=1, le=1_000_000)]
