"""Waiting until a daemon says of its health what is so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from harness_core.base.slowness import patience
from harness_core.base.vain import VainWaits, Wait
from harness_core.base.wait import until
from suites.daemon.daemon import Daemon
from suites.daemon.messages import expect_health
from suites.daemon.wire import NIL, Message, T

__all__ = ["NOTICED_S", "becomes", "noticed"]

#: Until health shows what has changed, on a machine with nothing else to do.
NOTICED_S: Final = 8.0

#: A daemon that looks every second or two is right; one that never looks is not waited for in full each time.
_NOTICED: Final = VainWaits("daemon-health", least_s=4.0)


async def noticed(so: Callable[[], Awaitable[bool]]) -> Wait:
    """Wait until something is so, as long as a daemon may take to notice it; the wait, and whether it came."""
    with _NOTICED.waiting(seconds=NOTICED_S) as wait, trio.move_on_after(patience(wait.seconds)):
        await until(so)
        wait.came = True
    return wait


async def becomes(daemon: Daemon, *wanted: str, since: str) -> Message:
    """Wait until health is one of some words; the answer that said it.

    Args:
        daemon: which.
        wanted: the words.
        since: what has happened, for the failure.

    Raises:
        AssertionError: it stays another, or says wrongly whether it was checked.
    """
    seen: Message | None = None

    async def is_said() -> bool:
        nonlocal seen
        seen = await daemon.health()
        return expect_health(seen).name in wanted

    wait = await noticed(is_said)

    assert seen is not None, f"contract 3: {since}, no answer to a health check"
    found = expect_health(seen).name

    assert found in wanted, (
        f"contract 3: {since}, expected {' or '.join(wanted)} within {wait.seconds:g} s"
        f"{wait.note}, found {seen.payload}"
    )
    checked = NIL if found == "UNKNOWN" else T

    assert checked == seen.get("CHECKED-P"), (
        f"contract 3: health is :{found}, expected :CHECKED-P {checked}, found {seen.payload}"
    )
    return seen
