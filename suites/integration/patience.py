"""Waiting for what the product promises: it comes in time, or the product has failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import until

__all__ = ["EPISODE_S", "SOON_S", "eventually"]

#: An episode of a rehearsed model takes a second here; ten times that on a loaded machine.
EPISODE_S: Final = 40.0

#: What needs no work of an agent.
SOON_S: Final = 30.0


async def eventually(
    probe: Callable[[], Awaitable[Any]],
    *,
    seconds: float,
    expected: str,
    seen: Callable[[], object] = lambda: "nothing of it",
) -> Any:
    """The first answer of a probe that is neither ``None`` nor ``False``.

    Args:
        probe: looks once.
        seconds: how long it may take on a machine with nothing else to do.
        expected: what is waited for, for the message.
        seen: what was seen last instead.

    Raises:
        AssertionError: it did not come in time.
    """
    with trio.move_on_after(patience(seconds)):
        return await until(probe)
    raise AssertionError(f"expected {expected} within {seconds:g} s, found {seen()}")
