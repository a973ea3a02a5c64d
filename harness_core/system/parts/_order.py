"""Who waits for whom: every name is known, and none waits for itself, by whatever detour."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from harness_core.base.errors import BadInput
from harness_core.base.reading import did_you_mean

__all__ = ["Condition", "bottom_up", "check_order", "everything_below"]


class Condition(StrEnum):
    """What a part waits for in another one."""

    STARTED = "service_started"
    HEALTHY = "service_healthy"
    COMPLETED = "service_completed_successfully"


def check_order(
    where: Path | str,
    waits: Mapping[str, Sequence[str]],
    *,
    key: str = "services.{name}.depends_on",
    known: Collection[str] | None = None,
) -> None:
    """Check who waits for whom, all together.

    Args:
        where: what errors name: a file, or a system.
        waits: for each, what it waits for.
        key: what errors call the place, with ``{name}``.
        known: the names there are; those that wait when left out.

    Raises:
        BadInput: a name that does not exist, or a circle.
    """
    names = waits if known is None else known
    for name, others in waits.items():
        for other in (name, *others):
            if other not in names:
                raise BadInput(
                    where,
                    key=key.format(name=name),
                    found=other,
                    expected=f"one of {', '.join(names)}",
                    next_step=did_you_mean(other, names),
                )
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]  # each before the one it waits for
        raise BadInput(
            where,
            key=key.format(name=circle[0]),
            found=" -> ".join(circle),
            expected="no circle: none of these could ever start",
        ) from error


def bottom_up(waits: Mapping[str, Collection[str]]) -> list[str]:
    """The names in an order in which each comes after those that it waits for."""
    return list(TopologicalSorter(waits).static_order())


def everything_below(name: str, waits: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Everything that ``name`` waits for, at whatever distance; the nearest first."""
    found: dict[str, None] = {}
    waiting = list(waits.get(name, ()))
    while waiting:
        other = waiting.pop(0)
        if other not in found:
            found[other] = None
            waiting.extend(waits.get(other, ()))
    return tuple(found)
