"""A third party's HTTP API, stood in for by a recorder in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from harness_core.errors import HarnessError
from harness_core.http import Answer, Recorder, Rule, open_recorder
from harness_core.services import Place
from harness_core.stack._part import State

if TYPE_CHECKING:
    from harness_core.evidence import Evidence
    from harness_core.net import PortLease

__all__ = ["RecorderPart"]


class RecorderPart:
    """A recorder on a leased port; while it is down, connections are refused.

    Attributes:
        name: its name in the compose file.
        stage: the stage of its start that it is at, or was at when that failed.
    """

    def __init__(
        self,
        name: str,
        *,
        lease: PortLease,
        host: str,
        answers: Sequence[Mapping[str, Any]],
        nursery: trio.Nursery,
        evidence: Evidence,
    ) -> None:
        self.name = name
        self.stage = "port"
        self._lease = lease
        self._host = host
        self._rules = [*(_rule(row) for row in answers), Rule(answer=Answer(json={}))]
        self._nursery = nursery
        self._evidence = evidence
        self._ending: trio.Event | None = None
        self._ended = trio.Event()
        self._state = State.WAITING

    @property
    def address(self) -> str:
        """``127.0.0.1:port``."""
        return f"127.0.0.1:{self._lease.port}"

    @property
    def state(self) -> State:
        """Whether it runs."""
        return self._state

    @property
    def place(self) -> Place:
        """The harness's own process, while it listens."""
        return Place(pid=os.getpid()) if self._ending is not None else Place()

    async def processes(self) -> Sequence[str]:
        """None that a test would look at."""
        return ()

    def logs(self) -> Sequence[Path]:
        """The requests it was sent."""
        path = self._evidence.path / f"{self.name}.jsonl"
        return (path,) if path.exists() else ()

    def death(self) -> HarnessError | None:
        """It does not end by itself."""
        return None

    async def refresh(self) -> None:
        """What is known of it is always so."""

    async def look(self) -> str:
        """Whether it was started."""
        return "" if self._state is State.RUNNING else f"it does not run ({self._state})"

    async def start(self) -> None:
        """Listen.

        Raises:
            HarnessError: it runs already, or its port is taken.
        """
        if self._ending is not None:
            raise HarnessError(f"start {self.name}", observed="it runs already")
        self._lease.hand_over()
        ending = trio.Event()
        await self._nursery.start(self._serve, ending)
        self._ending, self._state = ending, State.RUNNING

    async def _serve(self, ending: trio.Event, *, task_status: trio.TaskStatus[Recorder]) -> None:
        self._ended = trio.Event()
        try:
            async with AsyncExitStack() as stack:
                recorder = await stack.enter_async_context(
                    open_recorder(
                        self.name,
                        evidence=self._evidence,
                        rules=self._rules,
                        port=self._lease.port,
                        hosts=(self._host,),
                    )
                )
                task_status.started(recorder)
                await ending.wait()
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Listen no more, and close every connection."""
        if self._ending is not None:
            self._ending.set()
            await self._ended.wait()
        self._ending, self._state = None, State.STOPPED

    async def kill(self) -> None:
        """The same: there is nobody to say goodbye."""
        await self.stop()

    async def pause(self) -> None:
        """Refused: it lives in this process.

        Raises:
            HarnessError: always.
        """
        raise HarnessError(
            f"pause {self.name}",
            observed="it is a recorder in the harness's own process",
            next_step="Stop it, or give it a rule whose answer never comes",
        )

    async def resume(self) -> None:
        """Nothing to undo."""


def _rule(row: Mapping[str, Any]) -> Rule:
    answer = Answer(status=int(row.get("status", 200)), json=row.get("json", {}))
    return Rule(path=str(row.get("path", "*")), method=str(row.get("method", "")), answer=answer)
