"""A trio loop in a thread: how synchronous code (fixtures, the CLI) holds async resources."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import Generic, TypeVar, cast

import trio

from harness_core.errors import HarnessError
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
        """Like :meth:`run`, for a caller that lives in another trio loop (an async test).

        When the caller is cancelled, so is the call: a deadline around it holds.
        """
        here = trio.lowlevel.current_trio_token()
        scope = trio.CancelScope()
        ended = trio.Event()
        answer = _Answer[T]()

        async def invoke() -> None:
            try:
                with scope:
                    answer.value = await call()
                    answer.given = True
            except BaseException as error:
                answer.error = error
                if isinstance(error, trio.Cancelled):
                    raise
            finally:
                here.run_sync_soon(ended.set)

        self._token.run_sync_soon(self._nursery.start_soon, invoke)
        try:
            await ended.wait()
        except trio.Cancelled:
            self._token.run_sync_soon(scope.cancel)
            with trio.CancelScope(shield=True):
                await ended.wait()
            raise
        return answer.take()

    @contextmanager
    def hold(self, manager: AbstractAsyncContextManager[T], /) -> Iterator[T]:
        """Enter an async context manager on the loop and keep it open for the ``with`` block.

        The manager is entered and left in one task, so it may open nurseries. What it raises on
        the way in or out is raised here, unwrapped. An error of the block reaches the manager, as
        it would in an ``async with``, and is raised again unless the manager swallows it.
        """
        leave = self.run(_event)
        entered: queue.SimpleQueue[_Answer[T]] = queue.SimpleQueue()
        left: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        in_block: list[BaseException] = []

        async def keep() -> None:
            error: BaseException | None = None
            opened = False
            try:
                async with manager as value:
                    opened = True
                    entered.put(_Answer(value=value, given=True))
                    await leave.wait()
                    _raise_first(in_block)
            except BaseException as caught:
                error = unwrap(caught)
                if isinstance(caught, trio.Cancelled):
                    raise
            finally:
                if not opened:
                    entered.put(_Answer(error=error))
                left.put(error)

        self.run(_starter(self._nursery, keep))
        value = entered.get().take()
        try:
            yield value
        except GeneratorExit:
            raise  # nobody waits for the block any more; the manager is left as usual
        except BaseException as error:  # noqa: BLE001 - goes to the manager, and from there on
            in_block.append(error)
        finally:
            with suppress(trio.RunFinishedError):  # then the manager was left already
                self._token.run_sync_soon(leave.set)
            failure = left.get()
        if failure is not None:
            raise failure if failure in in_block else _foreign(failure)


@dataclasses.dataclass(slots=True, kw_only=True)
class _Answer(Generic[T]):
    """What a task of the loop has to say to another thread or loop."""

    value: T | None = None
    given: bool = False
    error: BaseException | None = None

    def take(self) -> T:
        if not self.given:
            raise _foreign(self.error)
        return cast("T", self.value)


def _foreign(error: BaseException | None) -> BaseException:
    """An error of the loop as its callers may see it: they know nothing of its cancellations."""
    if error is not None and not isinstance(error, trio.Cancelled):
        return error
    action = "wait for a task of the harness loop"
    return HarnessError(action, observed="the loop was stopped")


def _raise_first(errors: Sequence[BaseException]) -> None:
    for error in errors:
        raise error


def _starter(
    nursery: trio.Nursery, task: Callable[[], Awaitable[None]]
) -> Callable[[], Awaitable[None]]:
    async def start() -> None:
        nursery.start_soon(task)

    return start


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
        with suppress(trio.RunFinishedError):
            loop._token.run_sync_soon(stop.set)  # noqa: SLF001 - its opener
        thread.join()
