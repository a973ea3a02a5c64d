"""Threads, and locks between them: how to call a blocking library (psycopg, alembic, testcontainers) from trio code."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

import trio

from harness_core.base.groups import lone_error, unwrap

P = ParamSpec("P")
T = TypeVar("T")

#: Mutual exclusion between threads, and so between event loops, for handles used from any of them.
Mutex = threading.Lock

#: The same for threads that wait for what another one does.
Condition = threading.Condition


def beside(work: Callable[[], None], *, name: str) -> threading.Thread:
    """Start a thread for the life of something that synchronous code opens and closes.

    It does not hold up the end of the process; whoever started it joins it.
    """
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


async def blocking(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``call`` in a worker thread and wait for it.

    Cancellation takes effect when the call returns: a thread cannot be stopped from outside, so
    give the library itself a timeout when the call may hang.
    """
    return await trio.to_thread.run_sync(lambda: call(*args, **kwargs))


@trio.lowlevel.enable_ki_protection
async def interruptible(call: Callable[[], T], /, *, abort: Callable[[], None]) -> T:
    """Run ``call`` in a worker thread, and end it there when the wait for it is cut off.

    Args:
        call: blocks.
        abort: called on cancellation and Ctrl-C; makes the call end soon, by whatever error.
    """
    ended = trio.Event()
    answers: list[T] = []
    errors: list[Exception] = []

    async def work() -> None:
        try:
            answers.append(await blocking(call))
        except Exception as error:  # noqa: BLE001 - raised by the task that waits
            errors.append(error)
        finally:
            ended.set()

    # In a task of its own: one that waits for a thread is deaf to Ctrl-C.
    async with lone_error(), trio.open_nursery() as nursery:
        nursery.start_soon(work)
        try:
            await ended.wait()
        except BaseException:
            abort()
            with trio.CancelScope(shield=True):
                await ended.wait()
            raise
    for error in errors:
        raise error
    return answers[0]


def from_thread(call: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Await ``call`` on the loop whose :func:`blocking` runs this thread; a lone error as itself.

    Raises:
        trio.Cancelled: what waits for this thread was cancelled.
    """

    async def wait() -> T:
        return await call(*args, **kwargs)

    try:
        return trio.from_thread.run(wait)
    except BaseExceptionGroup as group:
        error = unwrap(group)
        if error is group:
            raise
        raise error from error.__cause__


def check_cancelled() -> None:
    """End a thread of :func:`blocking` whose caller was cancelled; elsewhere nothing.

    Raises:
        trio.Cancelled: it was.
    """
    with suppress(RuntimeError):  # of a thread that no loop started
        trio.from_thread.check_cancelled()


async def reading(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a call that reads for as long as there is something to read, in a thread of its own.

    It takes none of the threads that :func:`blocking` shares: forty such readers would stop
    everything else. Cancellation takes effect at once; the thread itself ends when what it reads
    is closed, and does not keep the process alive.
    """
    return await trio.to_thread.run_sync(
        lambda: call(*args, **kwargs), abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
    )
