"""A part that something opened in this process stands for, from its start to its end."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

from harness_core.base.errors import HarnessError
from harness_core.system.parts._part import Part

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence

__all__ = ["HeldPart"]

H = TypeVar("H")


class HeldPart(Part, Generic[H]):
    """Keeps what it opened in a task of its own, since an opener may hold nurseries."""

    def __init__(self, name: str, *, kind: str, evidence: Evidence, log: str = "") -> None:
        super().__init__(name, kind=kind, evidence=evidence, log=log)
        self._held: H | None = None
        self._ending = trio.Event()
        self._left = trio.Event()

    @property
    def held(self) -> H:
        """What was opened last: the server, the double.

        Raises:
            HarnessError: it was never started.
        """
        if self._held is None:
            raise HarnessError(f"use {self.name}", observed="it was never started")
        return self._held

    async def _open(self, opening: AbstractAsyncContextManager[H]) -> None:
        assert self.nursery is not None, "a part is started by the parts it belongs to"
        self._ending, self._left = trio.Event(), trio.Event()
        self._held = await self.nursery.start(self._keep, opening)

    async def _keep(
        self, opening: AbstractAsyncContextManager[H], *, task_status: trio.TaskStatus[H]
    ) -> None:
        try:
            async with opening as held:
                task_status.started(held)
                await self._ending.wait()
        finally:
            self._left.set()

    async def _leave(self) -> None:
        """Leave the block of what was opened, if anything was."""
        self._ending.set()
        if self._held is not None:
            await self._left.wait()
