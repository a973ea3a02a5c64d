"""Who calls, and how each of them waits: a trio task, an asyncio task, a thread without a loop.

All three wait in the same way: when the wait is cut off (a cancellation, a deadline, Ctrl-C), so is
the call, and the caller goes on once it has ended; nothing is left running behind its back.
"""

from __future__ import annotations

import asyncio
import queue
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import StrEnum
from typing import TypeVar

import trio

from harness_core.base.bridge._errand import Errand

T = TypeVar("T")

#: Makes the errand, given what it calls, on its loop, when it has ended.
Make = Callable[[Callable[[], None]], Errand[T]]


class Library(StrEnum):
    """Whose event loop runs."""

    TRIO = "trio"
    ASYNCIO = "asyncio"
    NONE = "none"


def library_of_task() -> Library:
    """The library whose task calls; anyio runs on either."""
    with suppress(RuntimeError):
        trio.lowlevel.current_task()
        return Library.TRIO
    with suppress(RuntimeError):
        if asyncio.current_task() is not None:
            return Library.ASYNCIO
    return Library.NONE


def library_of_thread() -> Library:
    """The library whose loop this thread runs, which stands still while the thread waits."""
    with suppress(RuntimeError):
        trio.lowlevel.current_trio_token()
        return Library.TRIO
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        return Library.ASYNCIO
    return Library.NONE


@trio.lowlevel.enable_ki_protection
async def in_trio(make: Make[T]) -> T:
    """Wait in a trio task."""
    here = trio.lowlevel.current_trio_token()
    ended = trio.Event()

    def tell() -> None:
        with suppress(trio.RunFinishedError):  # the caller is gone: a second Ctrl-C
            here.run_sync_soon(ended.set)

    errand = make(tell)
    try:
        errand.send()
        await ended.wait()
    except GeneratorExit:  # its task is no more: it cannot wait
        errand.cut_off()
        raise
    except BaseException as reason:
        errand.cut_off()
        with trio.CancelScope(shield=True):
            await ended.wait()
        if isinstance(reason, trio.Cancelled):
            errand.check()  # what went wrong on the way out says more than that it was cut off
        raise
    return errand.take()


async def in_asyncio(make: Make[T]) -> T:
    """Wait in an asyncio task."""
    here = asyncio.get_running_loop()
    ended = asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # the caller's loop was closed
            here.call_soon_threadsafe(ended.set)

    errand = make(tell)
    try:
        errand.send()
        await ended.wait()
    except GeneratorExit:
        errand.cut_off()
        raise
    except BaseException as reason:
        errand.cut_off()
        with _anyio_shield():
            while not ended.is_set():
                with suppress(asyncio.CancelledError):
                    await ended.wait()
        if isinstance(reason, asyncio.CancelledError):
            errand.check()
        raise
    return errand.take()


def _anyio_shield() -> AbstractContextManager[object]:
    """Where anyio is in use, it cancels a task of a cancelled scope again and again, for ever.

    Without the shield a wait of one second costs 0.7 s of a core.
    """
    anyio = sys.modules.get("anyio")
    return anyio.CancelScope(shield=True) if anyio is not None else nullcontext()


def in_thread(make: Make[T]) -> T:
    """Wait in a thread without a loop."""
    ended: queue.SimpleQueue[None] = queue.SimpleQueue()
    errand = make(lambda: ended.put(None))
    try:
        errand.send()
        ended.get()
    except BaseException:
        errand.cut_off()
        ended.get()
        raise
    return errand.take()
