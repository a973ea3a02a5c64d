"""A part that is a double: a third party's service, stood in for by a server in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVar

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.services import Place
from harness_core.system.parts._held_part import HeldPart

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.ports import PortLease

__all__ = ["DoublePart"]

D = TypeVar("D")


class DoublePart(HeldPart[D]):
    """A double on a leased port; while it is down, connections are refused.

    Args:
        name: unique in its system.
        kind: what it is: ``recorder``, ``collector`` …
        opener: opens it on the port it is given.
        lease: its port.
        evidence: where it writes what it was sent.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: str,
        opener: Callable[[int], AbstractAsyncContextManager[D]],
        lease: PortLease,
        evidence: Evidence,
    ) -> None:
        super().__init__(name, kind=kind, evidence=evidence)
        self._opener = opener
        self._lease = lease

    @property
    def address(self) -> str:
        """``127.0.0.1:port``."""
        return f"127.0.0.1:{self._lease.port}"

    @property
    def verbs(self) -> tuple[str, ...]:
        """As of every part, but that it cannot be paused."""
        return tuple(verb for verb in super().verbs if verb != "pause")

    @property
    def place(self) -> Place:
        """The harness's own process, while it listens."""
        return Place(pid=os.getpid()) if self.state == "running" else Place()

    async def _start(self) -> None:
        self.stage = "port"
        self._lease.hand_over()
        await self._open(self._opener(self._lease.port))

    async def _stop(self) -> None:
        """Listen no more, and close every connection."""
        await self._leave()

    async def _kill(self) -> Sequence[str]:
        """The same: no process of its own is left."""
        await self._stop()
        return ()

    async def _pause(self) -> None:
        """Refused: it lives in this process.

        Raises:
            HarnessError: always.
        """
        raise HarnessError(
            f"pause {self.name}",
            observed=f"it is a {self.kind} in the harness's own process",
            next_step="Stop it, or give it a rule whose answer never comes",
        )

    async def _resume(self) -> None:
        """Never paused."""
