"""How the harness waits: on an observable, under a deadline, never for a fixed time.

This is the only module that may sleep (ruff TID251 bans it elsewhere).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

from harness_core.base import limits
from harness_core.base.errors import NotReady
from harness_core.base.slowness import slowness

T = TypeVar("T")

#: The interval between two probes doubles up to this.
_SLOWEST_POLL_S = 0.1


async def until(
    probe: Callable[[], Awaitable[T | None]],
    *,
    poll_s: float = limits.POLL_S,
    slowest_s: float = _SLOWEST_POLL_S,
) -> T:
    """Call ``probe`` until it answers something other than ``None`` or ``False``.

    Wrap it in :func:`deadline`; on its own it waits for ever.

    Args:
        probe: asks once. What it raises is not caught.
        poll_s: first interval in seconds; doubles up to ``slowest_s``.
        slowest_s: the longest interval in seconds.

    Returns:
        The first answer of the probe that is neither ``None`` nor ``False``.
    """
    interval_s = poll_s
    while True:
        answer = await probe()
        if answer is not None and answer is not False:
            return answer
        await trio.sleep(interval_s)
        interval_s = min(interval_s * 2, slowest_s)


def until_blocking(
    probe: Callable[[], T | None], *, seconds: float, action: str, poll_s: float = limits.POLL_S
) -> T:
    """Like :func:`until`, for code that runs outside an event loop (the sweep, the CLI).

    Raises:
        NotReady: the probe gave no answer within ``seconds`` of a calm machine.
    """
    started, factor = time.monotonic(), slowness()
    interval_s = poll_s
    while True:
        answer = probe()
        if answer is not None and answer is not False:
            return answer
        waited_s = time.monotonic() - started
        if waited_s > seconds * factor:
            raise NotReady(action, observed=passed(seconds, factor), waited_s=waited_s)
        time.sleep(interval_s)
        interval_s = min(interval_s * 2, _SLOWEST_POLL_S)


@contextmanager
def deadline(
    action: str,
    *,
    seconds: float,
    observed: Callable[[], str] | None = None,
    tail: Callable[[], tuple[str, ...]] | None = None,
) -> Iterator[trio.CancelScope]:
    """Bound a block of waiting; expiry raises :class:`NotReady` that says what was seen.

    Args:
        action: verb and object, e.g. ``"get handshake from sexpd"``.
        seconds: how long the block may take on a machine with nothing else to do.
        observed: called on expiry for what was seen so far.
        tail: called on expiry for the last lines of output.

    Raises:
        NotReady: the time ran out.
    """
    factor = slowness()
    with trio.move_on_after(seconds * factor) as scope:
        yield scope
    if scope.cancelled_caught:
        seen = passed(seconds, factor)
        if observed is not None and (detail := observed()):
            seen += f", {detail}"
        raise NotReady(
            action,
            observed=seen,
            waited_s=seconds * factor,
            tail=tail() if tail is not None else (),
        )


def passed(seconds: float, factor: float) -> str:
    """How long a wait was, in words.

    Args:
        seconds: the deadline of a machine with nothing else to do.
        factor: by how much it was longer here.
    """
    if factor == 1:
        return f"{seconds:g} s passed"
    return f"{seconds * factor:g} s passed ({seconds:g} s, on a machine {factor:.1f} times as busy)"
