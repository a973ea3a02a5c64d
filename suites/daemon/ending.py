"""Commands of the product that end by themselves."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import trio

from harness_core.base.slowness import patience
from harness_core.process import Child

__all__ = ["ended"]


async def ended(
    child: Child, argv: Sequence[str], *, seconds: float, contract: str
) -> tuple[int, str]:
    """Wait for the end of a command; its status, and what it printed.

    Args:
        child: the command, begun.
        argv: its words.
        seconds: that it has, on a machine with nothing else to do.
        contract: that says so.

    Raises:
        AssertionError: it goes on.
    """
    status = 0
    with trio.move_on_after(patience(seconds)) as limit:
        status = await child.wait()
    printed = child.log.read_text(encoding="utf-8")

    assert not limit.cancelled_caught, (
        f"contract {contract}: `{shlex.join(argv)}`: expected its end within {patience(seconds):g} s, found "
        f"it running; it has printed:\n{printed}"
    )
    return status, printed
