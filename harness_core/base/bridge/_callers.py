"""How each kind of caller waits: a trio task, an asyncio task, a thread without a loop.

All three wait in the same way: when the wait is cancelled (by a scope, a deadline, Ctrl-C), so is the
call, and the caller goes on once it has ended; nothing is left running.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Literal, TypeVar

import trio

from harness_core.base.bridge._call import Call

T = TypeVar("T")

#: Whose event loop runs; empty for none.
Library = Literal["trio", "asyncio", ""]


def library_of_task() -> Library:
    """The library whose task calls; anyio runs on either."""
    if trio.lowlevel.in_trio_task():
        return "trio"
    with suppress(RuntimeError):
        if asyncio.current_task() is not None:
            return "asyncio"
    return ""


def library_of_thread() -> Library:
    """The library whose loop this thread runs, which stands still while the thread waits."""
    if trio.lowlevel.in_trio_run():
        return "trio"
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        return "asyncio"
    return ""


@trio.lowlevel.enable_ki_protection
async def in_trio(call: Call[T]) -> T:
    """Wait in a trio task."""
    here = trio.lowlevel.current_trio_token()
    ended = trio.Event()

    def wake(_outcome: object) -> None:
        with suppress(trio.RunFinishedError):  # the caller is gone: a second Ctrl-C
            here.run_sync_soon(ended.set)

    call.outcome.add_done_callback(wake)
    try:
        call.send()
        await ended.wait()
    except GeneratorExit:  # its task is no more: it cannot wait
        call.cancel()
        raise
    except BaseException as reason:
        call.cancel()
        with trio.CancelScope(shield=True):
            await ended.wait()
        if isinstance(reason, trio.Cancelled):
            call.check()  # what went wrong on the way out says more than that it was cancelled
        raise
    return call.answer()


async def in_asyncio(call: Call[T]) -> T:
    """Wait in an asyncio task."""
    here = asyncio.get_running_loop()
    ended = asyncio.Event()

    def wake(_outcome: object) -> None:
        with suppress(RuntimeError):  # the caller's loop was closed
            here.call_soon_threadsafe(ended.set)

    call.outcome.add_done_callback(wake)
    try:
        call.send()
        await ended.wait()
    except GeneratorExit:
        call.cancel()
        raise
    except BaseException as reason:
        call.cancel()
        with _anyio_shield():
            while not ended.is_set():
                with suppress(asyncio.CancelledError):
                    await ended.wait()
        if isinstance(reason, asyncio.CancelledError):
            call.check()
        raise
    return call.answer()


def _anyio_shield() -> AbstractContextManager[object]:
    """Where anyio is in use, it cancels a task of a cancelled scope again and again, for ever.

    Without the shield a wait of one second costs 0.7 s of a core.
    """
    anyio = sys.modules.get("anyio")
    return anyio.CancelScope(shield=True) if anyio is not None else nullcontext()


def in_thread(call: Call[T]) -> T:
    """Wait in a thread without a loop."""
    try:
        call.send()
        _join(call)
    except BaseException:
        call.cancel()
        _join(call)
        raise
    return call.answer()


def _join(call: Call[T]) -> None:
    with suppress(CancelledError):
        call.outcome.exception()
