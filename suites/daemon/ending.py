"""Commands of the product that end by themselves."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import trio

from harness_core.base.slowness import patience
from harness_core.process import Child
from suites.daemon.waits import DUE

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
    with DUE.waiting(seconds=seconds) as wait:
        with trio.move_on_after(patience(wait.seconds)):
            status = await child.wait()
            wait.came = True
    printed = child.log.read_text(encoding="utf-8")

    assert wait.came, (
        f"contract {contract}: `{shlex.join(argv)}`: expected its end within {patience(wait.seconds):g} s"
        f"{wait.note}, found it running; it has printed:\n{printed}"
    )
    return status, printed
