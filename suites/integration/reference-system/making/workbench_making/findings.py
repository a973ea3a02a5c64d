"""How what is found here is said: short, and with the place in millimetres."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench_contract.findings import Finding, Stage

#: Longer values are cut; a person reads the file for the rest.
_LONGEST_CHARS = 160


def finding(stage: Stage, *, file: str, where: str, found: str, expected: str) -> Finding:
    """A finding whose values are shortened where they are long."""
    return Finding(
        stage=stage,
        file=_written(file),
        where=shortened(where),
        found=shortened(found),
        expected=_written(expected),
    )


def shortened(text: str) -> str:
    """The text in one line, cut where it is long."""
    line = _written(" ".join(text.split()))
    return line if len(line) <= _LONGEST_CHARS else line[: _LONGEST_CHARS - 1] + "…"


def one_of(choices: Iterable[str]) -> str:
    """``one of a, b, c``; says so when there is none."""
    named = ", ".join(sorted(choices))
    return f"one of {named}" if named else "nothing: the file has none"


def position(point_mm: Iterable[Any]) -> str:
    """``(1.0, 2.5, -3.0) mm``; no minus before a zero."""
    return f"({', '.join(f'{round(float(value), 3) + 0.0:g}' for value in point_mm)}) mm"


def _written(text: str) -> str:
    """Names of files may have bytes that no JSON can carry."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
