"""Who waits for whom: every name is known and nobody waits for itself, by whatever detour."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_core.errors import BadInput

__all__ = ["check_order", "everything_below"]


def check_order(path: Path, waits: Mapping[str, Sequence[str]]) -> None:
    """Check the ``depends_on`` of all services together.

    Raises:
        BadInput: a service that does not exist, or a circle of services.
    """
    for name, others in waits.items():
        for other in others:
            if other not in waits:
                near = difflib.get_close_matches(other, waits, n=1)
                raise BadInput(
                    path,
                    key=f"services.{name}.depends_on",
                    found=other,
                    expected=f"a service of this file: {', '.join(waits)}",
                    next_step=f"Did you mean {near[0]}?" if near else "",
                )
    for name in waits:
        if circle := _circle(name, waits):
            raise BadInput(
                path,
                key=f"services.{name}.depends_on",
                found=" -> ".join(circle),
                expected="no circle: none of these could ever start",
            )


def everything_below(name: str, waits: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Every service that ``name`` waits for, at whatever distance; the nearest first."""
    found: dict[str, None] = {}
    waiting = list(waits.get(name, ()))
    while waiting:
        other = waiting.pop(0)
        if other not in found:
            found[other] = None
            waiting.extend(waits.get(other, ()))
    return tuple(found)


def _circle(start: str, waits: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A way from ``start`` back to itself; empty when there is none."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for other in waits[way[-1]]:
            if other == start:
                return (*way, other)
            if other not in seen:
                seen.add(other)
                ways.append((*way, other))
    return ()
