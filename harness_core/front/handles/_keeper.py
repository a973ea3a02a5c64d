"""What tests open in the middle of their run, held until the end of the fixture that opens it for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import trio

from harness_core.base.bridge import Loop, at_home, this_loop
from harness_core.base.groups import lone_error

T = TypeVar("T")


class Keeper:
    """Enters async context managers, each in a task of its own, and leaves them at its end.

    Built only by :func:`open_keeper`.

    Attributes:
        loop: where they live.
    """

    def __init__(self, loop: Loop, nursery: trio.Nursery) -> None:
        self.loop = loop
        self._nursery = nursery
        self._kept: list[tuple[trio.Event, trio.Event]] = []

    @at_home
    async def enter(self, opening: AbstractAsyncContextManager[T]) -> T:
        """What is entered; it may be called in any loop. Cut off, nothing stays open."""
        value: T = await self._nursery.start(self._keep, opening)
        return value

    async def leave(self) -> None:
        """Leave all of them, the latest first."""
        while self._kept:
            leave, left = self._kept.pop()
            leave.set()
            await left.wait()

    async def _keep(
        self, opening: AbstractAsyncContextManager[T], *, task_status: trio.TaskStatus[T]
    ) -> None:
        leave, left = trio.Event(), trio.Event()
        try:
            async with opening as value:
                self._kept.append((leave, left))
                task_status.started(value)
                await leave.wait()
        finally:
            left.set()


@asynccontextmanager
async def open_keeper() -> AsyncIterator[Keeper]:
    """A keeper for the block."""
    async with (
        lone_error(),
        trio.open_nursery() as nursery,
        this_loop("what a test opened") as loop,
    ):
        keeper = Keeper(loop, nursery)
        try:
            yield keeper
        finally:
            with trio.CancelScope(shield=True):
                await keeper.leave()
