"""What a token means: a number, a keyword or a symbol, by the rules of the standard reader."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

__all__ = ["TERMINATING", "WHITESPACE", "as_number", "is_plain", "upcase"]

WHITESPACE: Final = frozenset(" \t\r\n\f\v")

#: These end a token.
TERMINATING: Final = WHITESPACE | frozenset("()\"';`,")

_INTEGER: Final = re.compile(r"[+-]?[0-9]+\.?")
_RATIO: Final = re.compile(r"[+-]?[0-9]+/[0-9]+")
_FLOAT: Final = re.compile(
    r"[+-]?(?:[0-9]*\.[0-9]+(?:[esfdl][+-]?[0-9]+)?|[0-9]+(?:\.[0-9]*)?[esfdl][+-]?[0-9]+)",
    re.IGNORECASE,
)
_EXPONENT: Final = re.compile(r"[sfdl]", re.IGNORECASE)
_QUALIFIED: Final = re.compile(r"[^:]+(?:::?[^:]+)?")


def upcase(text: str) -> str:
    """Upper case, character by character; one that would become two stays as it is."""
    return "".join(
        upper if len(upper := character.upper()) == 1 else character for character in text
    )


def as_number(token: str) -> int | float | Fraction | None:
    """The number a token stands for, or ``None`` when it is a symbol.

    Raises:
        ValueError: it has the form of a number that has no value here (a zero denominator).
        OverflowError: it has more digits, or a larger exponent, than is converted.
    """
    if _INTEGER.fullmatch(token):
        return _integer(token.rstrip("."))
    if _RATIO.fullmatch(token):
        numerator, _, denominator = token.partition("/")
        if not int(denominator.strip("0") or "0"):
            message = f"{token} divides by zero"
            raise ValueError(message)
        ratio = Fraction(_integer(numerator), _integer(denominator))
        return ratio.numerator if ratio.denominator == 1 else ratio
    if _FLOAT.fullmatch(token):
        value = float(_EXPONENT.sub("e", token))
        if value in (float("inf"), float("-inf")):
            message = f"{token} is too large for a float"
            raise OverflowError(message)
        return value
    return None


#: Python converts longer ones only on request, because that takes quadratic time.
_DIGITS: Final = 1000


def _integer(token: str) -> int:
    if len(token) > _DIGITS:
        message = f"a number of {len(token)} digits, at most {_DIGITS} are converted"
        raise OverflowError(message)
    return int(token)


def is_plain(name: str) -> bool:
    """Whether colons in a symbol's name are a package marker: ``A:B`` or ``A::B``, or none."""
    return _QUALIFIED.fullmatch(name) is not None
