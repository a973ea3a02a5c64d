"""One service of a running stack, whoever runs it: what a driver must be able to do with it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from harness_core.errors import HarnessError
from harness_core.services import Place

__all__ = ["VERBS", "Part", "State"]

#: What may be asked of a part by name.
VERBS = frozenset({"kill", "pause", "restart", "resume", "start", "stop"})


class State(StrEnum):
    """What we did with a part last, or what it did by itself."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    COMPLETED = "completed"
    ENDED = "ended"


class Part(Protocol):
    """A service of the stack.

    ``start`` returns when it serves, or, for a one-shot service, when it has ended well. Its address
    and data stay the same over ``stop``, ``kill`` and ``start``.
    """

    @property
    def name(self) -> str:
        """Its name in the compose file."""

    @property
    def address(self) -> str:
        """``host:port`` as tests reach it; empty for a service without a port."""

    @property
    def state(self) -> State:
        """Whether it runs; ``ended`` when it ended though nobody asked it to."""

    @property
    def stage(self) -> str:
        """The stage of its start that it is at, or was at when that failed."""

    @property
    def place(self) -> Place:
        """Where it runs now."""

    async def processes(self) -> Sequence[str]:
        """The command lines of its processes now, where they are its own and can be seen."""

    def logs(self) -> Sequence[Path]:
        """The files with its output, oldest first."""

    def death(self) -> HarnessError | None:
        """How it ended by itself, with its last words; ``None`` when it did not."""

    async def refresh(self) -> None:
        """See whether it still runs, where that must be asked for; ``state`` and ``death`` know then."""

    async def look(self) -> str:
        """One look at whether it serves: empty when it does, else what is seen instead."""

    async def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            HarnessError: it runs already, or did not come up: the stage, its last words, its log.
        """

    async def stop(self) -> None:
        """Ask it to end, and see to it; nothing happens when it is down."""

    async def kill(self) -> None:
        """End it and everything it started as a crash would; nothing happens when it is down."""

    async def pause(self) -> None:
        """Freeze it and everything it started; connections stay open and nothing answers."""

    async def resume(self) -> None:
        """Undo :meth:`pause`."""
