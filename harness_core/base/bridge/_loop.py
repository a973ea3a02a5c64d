"""A trio loop that resources live on, for callers anywhere: other loops, threads, synchronous code."""

from __future__ import annotations

import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import NoReturn, TypeVar

import trio

from harness_core.base.bridge._call import Call, closed
from harness_core.base.bridge._callers import (
    in_asyncio,
    in_thread,
    in_trio,
    library_of_task,
    library_of_thread,
)
from harness_core.base.errors import HarnessError
from harness_core.base.groups import lone_error, unwrap

T = TypeVar("T")


class Loop:
    """A running trio loop; built only by :func:`open_loop` and :func:`this_loop`.

    A call whose caller is cancelled (by a scope, a deadline, Ctrl-C) is cancelled on the loop, and the
    caller goes on once it has ended there.

    Attributes:
        name: what errors call it.
    """

    def __init__(self, name: str, *, token: trio.lowlevel.TrioToken, nursery: trio.Nursery) -> None:
        self.name = name
        self._token = token
        self._nursery = nursery
        self._closed = False

    def run(self, call: Callable[[], Awaitable[T]], /) -> T:
        """Run one async call on the loop and wait for its result, in a thread without a loop.

        Raises:
            HarnessError: this thread runs an event loop, which would stand still; or this loop was
                closed.
        """
        self._check_thread()
        return in_thread(self._made(call))

    async def call(self, call: Callable[[], Awaitable[T]], /) -> T:
        """Run one async call on the loop and wait for its result, in a task of any loop.

        Raises:
            HarnessError: the task belongs neither to trio nor to asyncio (anyio runs on either);
                or this loop was closed.
        """
        library = library_of_task()
        if library == "asyncio":
            return await in_asyncio(self._made(call))
        if not library:
            refuse_caller(f"use {self.name}")
        if trio.lowlevel.current_trio_token() is not self._token:
            return await in_trio(self._made(call))
        if self._closed:
            raise closed(self.name)
        return await call()

    @contextmanager
    def hold(self, manager: AbstractAsyncContextManager[T], /) -> Iterator[T]:
        """Enter an async context manager on the loop and keep it open for the ``with`` block.

        The manager is entered and left in one task, so it may open nurseries. What it raises on
        the way in or out is raised here, unwrapped. An error of the block reaches the manager, as
        it would in an ``async with``, and is raised again unless the manager swallows it.
        """
        self._check_thread()
        leave = trio.Event()
        news: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
        in_block: list[BaseException] = []

        async def keep() -> None:
            async with manager as value:
                news.put((value,))
                await leave.wait()
                _raise_first(in_block)

        keeping = self._made(keep)
        keeping.outcome.add_done_callback(lambda _outcome: news.put(None))
        try:
            keeping.send()
            entered = news.get()
        except BaseException:  # Ctrl-C: what is entered now would never be left
            keeping.cancel()
            while news.get() is not None:
                pass
            raise
        if entered is None:
            _answer(keeping)
            raise AssertionError(f"expected {manager!r} to be entered or to raise")
        try:
            yield entered[0]
        except GeneratorExit:
            raise  # the block will not go on; the manager is left as usual
        except BaseException as error:  # noqa: BLE001 - goes to the manager, and from there on
            in_block.append(error)
        finally:
            with suppress(trio.RunFinishedError):  # then the manager was left already
                self._token.run_sync_soon(leave.set)
            news.get()
        _answer(keeping)

    def _check_thread(self) -> None:
        if library := library_of_thread():
            raise HarnessError(
                f"wait for {self.name}",
                observed=f"this thread runs a loop of {library}, which would stand still",
                next_step="Await the handle's own method, or `await loop.call(lambda: …)`",
            )

    def _made(self, function: Callable[[], Awaitable[T]]) -> Call[T]:
        return Call(function, where=self.name, token=self._token, begin=self._begin)

    def _begin(self, task: Callable[[], Awaitable[None]]) -> bool:
        if not self._closed:
            self._nursery.start_soon(task)
        return not self._closed


def refuse_caller(action: str) -> NoReturn:
    """Refuse a call whose caller cannot wait for it."""
    raise HarnessError(
        action,
        observed="it is awaited in no task of trio or asyncio",
        next_step="Await it in a task of trio, asyncio or anyio; in synchronous code call "
        "`loop.run(lambda: …)`",
    ) from None


def _answer(call: Call[T]) -> T:
    try:
        return call.answer()
    except BaseExceptionGroup as group:
        error = unwrap(group)
        if error is group:
            raise
        raise error from error.__cause__


def _raise_first(errors: Sequence[BaseException]) -> None:
    for error in errors:
        raise error


@asynccontextmanager
async def this_loop(name: str) -> AsyncIterator[Loop]:
    """The trio loop that runs here, for the block: so that others can use what is opened on it.

    Calls that still run at the end of the block are cancelled; later ones are refused.

    Args:
        name: what errors call it.
    """
    async with lone_error(), trio.open_nursery() as nursery:
        loop = Loop(name, token=trio.lowlevel.current_trio_token(), nursery=nursery)
        try:
            yield loop
        finally:
            loop._closed = True  # noqa: SLF001 - its opener
            nursery.cancel_scope.cancel()


@contextmanager
def open_loop(name: str = "the harness loop") -> Iterator[Loop]:
    """Start a trio loop in a thread of its own and stop it at the end of the block."""
    started: Future[Loop] = Future()
    stop = trio.Event()

    async def main() -> None:
        async with this_loop(name) as loop:
            started.set_result(loop)
            await stop.wait()

    def body() -> None:
        try:
            trio.run(main)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=body, name="harness-loop", daemon=True)
    thread.start()
    try:
        yield started.result()
    finally:
        if started.exception() is None:
            with suppress(trio.RunFinishedError):
                started.result()._token.run_sync_soon(stop.set)  # noqa: SLF001 - its opener
        thread.join()
