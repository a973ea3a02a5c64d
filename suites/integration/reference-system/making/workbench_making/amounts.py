"""Exact amounts, and the two places in which they are told.

All sums are of fractions, so that a third of a set-up, three times, is the set-up; they are rounded
half up once, when they are told.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

_PLACES = 2
#: Volumes come from geometry whose last digits are noise.
_VOLUME_PLACES = 4


def told(amount: Fraction) -> Decimal:
    """Dollars or grams with two places, rounded half up (half away from zero).

    >>> told(Fraction(1005, 1000)), told(Fraction(1004999, 1000000))
    (Decimal('1.01'), Decimal('1.00'))
    """
    scale = 10**_PLACES
    whole = math.floor(abs(amount) * scale + Fraction(1, 2))
    return Decimal(whole if amount >= 0 else -whole).scaleb(-_PLACES)


def volume_mm3(measured: float) -> Decimal:
    """A volume as geometry measured it, without the noise of its last digits.

    Raises:
        ValueError: not finite.
    """
    if not math.isfinite(measured):
        raise ValueError(f"cannot use a volume of {measured}: it is not finite. Measure the solid")
    return Decimal(repr(round(measured, _VOLUME_PLACES)))
