"""Waiting until a daemon says of its health what is so."""

from __future__ import annotations

from typing import Final

import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import until
from suites.daemon.daemon import Daemon
from suites.daemon.messages import expect_health
from suites.daemon.wire import NIL, Message, T

__all__ = ["NOTICED_S", "becomes"]

#: Until health shows what has changed, on a machine with nothing else to do.
NOTICED_S: Final = 8.0


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

    with trio.move_on_after(patience(NOTICED_S)):
        await until(is_said)

    assert seen is not None, f"contract 3: {since}, no answer to a health check"
    found = expect_health(seen).name

    assert found in wanted, (
        f"contract 3: {since}, expected {' or '.join(wanted)} within {NOTICED_S:g} s, found "
        f"{seen.payload}"
    )
    checked = NIL if found == "UNKNOWN" else T

    assert checked == seen.get("CHECKED-P"), (
        f"contract 3: health is :{found}, expected :CHECKED-P {checked}, found {seen.payload}"
    )
    return seen
