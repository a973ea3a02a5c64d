"""Waiting for what the product promises: it comes in time, or the product has failed.

Deadlines here bound hanging; they grow with the load of the machine and say nothing of how fast a
product must be.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from harness_core.base.slowness import patience, slowness
from harness_core.base.vain import VainWaits
from harness_core.base.wait import until

__all__ = [
    "COMMAND_S",
    "EPISODE_S",
    "SOON_S",
    "by_a_stack",
    "eventually",
    "factor_for_a_stack",
    "factor_of",
    "patience_with_a_stack",
]

#: An episode of a rehearsed model takes a second here; ten times that on a loaded machine.
EPISODE_S: Final = 40.0

#: What needs no work of an agent.
SOON_S: Final = 30.0

#: What a command may take that waits for the test, by the product's own clock: the contract's longest,
#: beyond any deadline of a test on a busy machine.
COMMAND_S: Final = 600.0


#: What the product owed and did not do, so that the next is not waited for as long.
_DUE: Final = VainWaits("integration", least_s=10.0)

#: What the stacks that this process booted multiply their timeouts by.
_factors: Final = [1]


def factor_for_a_stack() -> int:
    """By how much a stack that is booted now lengthens its timeouts."""
    _factors.append(factor_of(slowness()))
    return _factors[-1]


def factor_of(load: float) -> int:
    """What a stack multiplies its timeouts by.

    In whole steps, of which two threads for each core make none yet: the workers of a run load the
    machine that much by themselves, the timeouts of a stack allow for it, and every test of an outage
    would wait longer.

    Args:
        load: threads that want each core.
    """
    return math.floor((load + 1) / 2)


def patience_with_a_stack(seconds: float) -> float:
    """What a stack may take for an answer that waits for its own timeouts.

    Args:
        seconds: the deadline of a machine with nothing else to do, then and now.
    """
    return max(patience(seconds), seconds * max(_factors))


def by_a_stack(seconds: float) -> float:
    """What a stack makes of a timeout of its own.

    Args:
        seconds: the timeout on a machine with nothing else to do.
    """
    return seconds * max(_factors)


async def eventually(
    probe: Callable[[], Awaitable[Any]],
    *,
    seconds: float,
    expected: str,
    seen: Callable[[], object] = lambda: "nothing of it",
) -> Any:
    """The first answer of a probe that is neither ``None`` nor ``False``.

    Args:
        probe: observes once.
        seconds: how long it may take on a machine with nothing else to do.
        expected: what is waited for, for the message.
        seen: what was observed last instead.

    Raises:
        AssertionError: it did not come in time.
    """
    factor = slowness()
    with _DUE.waiting(seconds=seconds) as wait:
        with trio.move_on_after(wait.seconds * factor):
            found = await until(probe)
            wait.came = True
            return found
        busy = f" times {factor:.1f}, for a busy machine" if factor > 1 else ""
        within = f"{wait.seconds:g} s{wait.note}{busy}"
        raise AssertionError(f"expected {expected} within {within}, found {seen()}")
