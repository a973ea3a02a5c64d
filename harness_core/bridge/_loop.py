"""A trio loop in a thread: how synchronous code (fixtures, the CLI) holds async resources."""

from __future__ import annotations

import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

import trio

from harness_core.groups import unwrap

__all__ = ["Loop", "open_loop"]

T = TypeVar("T")


class Loop:
    """A running trio loop; built only by :func:`open_loop`."""

    def __init__(self, token: trio.lowlevel.TrioToken, nursery: trio.Nursery) -> None:
        self._token = token
        self._nursery = nursery

    def run(self, call: Callable[[], Awaitable[T]], /) -> T:
        """Run one async call on the loop and wait for its result (from any other thread)."""

        async def invoke() -> T:
            return await call()

        return trio.from_thread.run(invoke, trio_token=self._token)

    async def from_trio(self, call: Callable[[], Awaitable[T]], /) -> T:
        """Like :meth:`run`, for a caller that lives in another trio loop (an async test)."""
        return await trio.to_thread.run_sync(lambda: self.run(call))

    @contextmanager
    def hold(self, manager: AbstractAsyncContextManager[T], /) -> Iterator[T]:
        """Enter an async context manager on the loop and keep it open for the ``with`` block.

        The manager is entered and left in one task, so it may open nurseries. What it raises on
        the way in or out is raised here, unwrapped.
        """
        leave = self.run(_event)
        entered: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
        left: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

        async def keep() -> None:
            error: BaseException | None = None
            opened = False
            try:
                async with manager as value:
                    opened = True
                    entered.put((value, None))
                    await leave.wait()
            except BaseException as caught:  # noqa: BLE001 - handed to the other thread
                error = unwrap(caught)
                if isinstance(caught, trio.Cancelled):
                    raise
            finally:
                if not opened:
                    entered.put((None, error))
                left.put(error)

        async def start() -> None:
            self._nursery.start_soon(keep)

        self.run(start)
        value, error = entered.get()
        if error is not None:
            raise error
        try:
            yield value  # type: ignore[misc]  # None only together with an error
        finally:
            trio.from_thread.run_sync(leave.set, trio_token=self._token)
            failure = left.get()
            if failure is not None:
                raise failure


async def _event() -> trio.Event:
    return trio.Event()


@contextmanager
def open_loop() -> Iterator[Loop]:
    """Start a trio loop in a thread of its own and stop it at the end of the block."""
    started: queue.SimpleQueue[tuple[Loop, trio.Event] | BaseException] = queue.SimpleQueue()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            stop = trio.Event()
            started.put((Loop(trio.lowlevel.current_trio_token(), nursery), stop))
            await stop.wait()
            nursery.cancel_scope.cancel()

    def body() -> None:
        try:
            trio.run(main)
        except BaseException as error:  # noqa: BLE001 - a thread's edge: handed to the opener
            started.put(error)

    thread = threading.Thread(target=body, name="harness-loop", daemon=True)
    thread.start()
    first = started.get()
    if isinstance(first, BaseException):
        raise first
    loop, stop = first
    try:
        yield loop
    finally:
        trio.from_thread.run_sync(stop.set, trio_token=loop._token)  # noqa: SLF001
        thread.join()
