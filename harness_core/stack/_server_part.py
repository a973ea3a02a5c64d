"""A service that the harness provides: a server of ``harness_core.services``, opened and kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from harness_core.errors import HarnessError
from harness_core.services import Place
from harness_core.stack._part import State

if TYPE_CHECKING:
    from harness_core.evidence import Evidence
    from harness_core.services import Service

__all__ = ["ServerPart"]

S = TypeVar("S", bound="Service")


class ServerPart(Generic[S]):
    """A server by one of the providers of ``harness_core.services``.

    Args:
        name: its name in the compose file.
        opener: opens it; entered once, in a task of ``nursery`` that leaves it when ``closing`` is set.
        nursery: of the driver.
        closing: set when the stack ends.
        prepare: what a fresh server is given before anybody may use it.
        probe: one round trip.
        evidence: where its log is.
        log: how its log is called there.

    Attributes:
        name: its name in the compose file.
        stage: the stage of its start that it is at, or was at when that failed.
    """

    def __init__(  # noqa: PLR0913 - built in one place
        self,
        name: str,
        opener: Callable[[], AbstractAsyncContextManager[S]],
        *,
        nursery: trio.Nursery,
        closing: trio.Event,
        prepare: Callable[[S], Awaitable[None]],
        probe: Callable[[S], Awaitable[object]],
        evidence: Evidence,
        log: str,
    ) -> None:
        self.name = name
        self._opener = opener
        self._nursery = nursery
        self._closing = closing
        self._prepare = prepare
        self._probe = probe
        self._evidence = evidence
        self._log = log
        self._server: S | None = None
        self.stage = "start"
        self._state = State.WAITING

    @property
    def server(self) -> S:
        """The server itself.

        Raises:
            HarnessError: it was never started.
        """
        if self._server is None:
            raise HarnessError(f"use {self.name}", observed="it was never started")
        return self._server

    @property
    def address(self) -> str:
        """``host:port``; empty before the first start."""
        return self._server.address if self._server else ""

    @property
    def state(self) -> State:
        """Whether it runs."""
        return self._state

    @property
    def place(self) -> Place:
        """Where its provider runs it."""
        return self._server.place if self._server else Place()

    async def processes(self) -> Sequence[str]:
        """None that a test would look at."""
        return ()

    def logs(self) -> Sequence[Path]:
        """Its log in the evidence, of each of its lives."""
        found = [*self._evidence.path.glob(f"{self._log}.log")]
        return tuple(found + sorted(self._evidence.path.glob(f"{self._log}-*.log")))

    def death(self) -> HarnessError | None:
        """Seen when somebody looks: see :meth:`look`."""
        return None

    async def refresh(self) -> None:
        """What is known of it is always so."""

    async def look(self) -> str:
        """One round trip in its protocol."""
        if self._state is not State.RUNNING:
            return f"it does not run ({self._state})"
        try:
            await self._probe(self.server)
        except HarnessError as error:
            return error.observed
        except OSError as error:
            return str(error)
        return ""

    async def start(self) -> None:
        """Open it, or bring it back.

        Raises:
            HarnessError: it runs already, or did not come up.
        """
        if self._server is None:
            self._server = await self._nursery.start(self._keep)
            self.stage = "prepare"
            await self._prepare(self._server)
        else:
            await self._server.start()
        self._state = State.RUNNING

    async def _keep(self, *, task_status: trio.TaskStatus[S]) -> None:
        """Keep it open in one task, since its opener may hold nurseries of its own."""
        async with self._opener() as server:
            task_status.started(server)
            await self._closing.wait()

    async def stop(self) -> None:
        """Shut it down in order."""
        await self._do("stop", State.STOPPED)

    async def kill(self) -> None:
        """End it as a crash would."""
        await self._do("kill", State.STOPPED)

    async def pause(self) -> None:
        """Freeze it."""
        await self._do("pause", State.PAUSED)

    async def resume(self) -> None:
        """Undo :meth:`pause`; nothing happens when it was not paused."""
        if self._state is State.PAUSED:
            await self._do("resume", State.RUNNING)

    async def _do(self, verb: str, state: State) -> None:
        if self._state in {State.WAITING, State.STOPPED}:
            if verb == "pause":
                raise HarnessError(
                    f"pause {self.name}", observed="it does not run", next_step="Call start first"
                )
            return
        operation: Any = getattr(self.server, verb)
        await operation()
        self._state = state
