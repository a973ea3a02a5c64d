"""Boots parts side by side, each as soon as what it waits for is there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import trio

from harness_core.base.errors import HarnessError
from harness_core.base.groups import lone_error, unwrap
from harness_core.system.parts._failed import culprit
from harness_core.system.parts._order import Condition
from harness_core.system.parts._part import Part

__all__ = ["boot"]


async def boot(
    parts: Mapping[str, Part],
    waits: Mapping[str, Mapping[str, Condition]],
    *,
    title: str,
    at_once: int | None = None,
    say: Callable[[str], None],
) -> None:
    """Start every part.

    Args:
        parts: by name.
        waits: for each, which others it waits for, and for what in each.
        title: what messages call the whole.
        at_once: how many may be starting at a time; all when left out.
        say: gets a line for each part that is ready.

    Raises:
        ServiceFailed: one did not come up; names the culprit. What had been started stays up, for
            the caller to take down.
    """
    places = trio.CapacityLimiter(math.inf if at_once is None else at_once)
    begun = {name: trio.Event() for name in parts}
    serves = {name: trio.Event() for name in parts}

    async def bring_up(part: Part) -> None:
        for other, condition in waits[part.name].items():
            event = begun if condition is Condition.STARTED else serves
            await event[other].wait()
        begun[part.name].set()
        try:
            async with places:
                await part.start()
        except (HarnessError, BaseExceptionGroup) as raised:
            error = unwrap(raised)
            if not isinstance(error, HarnessError):
                raise
            raise await culprit(part, error, parts=parts, waits=waits, title=title) from error
        serves[part.name].set()
        say(f"{part.name} ready" + (f" at {part.address}" if part.address else ""))

    async with lone_error(), trio.open_nursery() as nursery:
        for part in parts.values():
            nursery.start_soon(bring_up, part)
