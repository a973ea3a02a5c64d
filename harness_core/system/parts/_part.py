"""A part of a running system: what can be done with it, whatever it is made of.

A process, a container, a server of the harness or a double (a stand-in of the world outside). All
of them share one state machine and one meaning of each verb; a kind of part says how it is done.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from harness_core.base.errors import BadInput, HarnessError
from harness_core.infrastructure.services import Place

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence

__all__ = ["VERBS", "Part", "State"]

#: What may be asked of a part by name.
VERBS = frozenset({"kill", "pause", "restart", "resume", "start", "stop"})


class State(StrEnum):
    """What was done with a part last, or what it did by itself."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    COMPLETED = "completed"
    ENDED = "ended"


#: What makes sense next.
_VERBS_NOW: Mapping[State, tuple[str, ...]] = {
    State.RUNNING: ("stop", "kill", "pause", "restart"),
    State.PAUSED: ("resume", "stop", "kill"),
    State.STOPPED: ("start",),
    State.ENDED: ("start",),
}


class Part(abc.ABC):
    """One part of a system; :func:`~harness_core.system.parts.open_parts` starts it and takes it down.

    Its address and data stay the same over ``stop``, ``kill`` and ``start``.

    Args:
        name: unique in its system.
        kind: what it is, for people: ``process``, ``container``, ``postgres``, ``recorder`` …
        evidence: directory of its logs.
        log: how its logs are called there, without ``-2`` and suffix; its name when left out.
        once: it is to end with status 0, as a migration does.

    Attributes:
        stage: the stage of its start that it is at, or was at when that failed.
        starts: how often it has been started, and served then.
        outlived: the command lines of what outlived its last :meth:`kill`, and was then ended.
        nursery: where what must outlive the task of a caller runs; given by ``open_parts``.
        urls: where else it is reached, by what that is, for people.
        secrets: variable → value, for people who ask for them.
    """

    def __init__(
        self, name: str, *, kind: str, evidence: Evidence, log: str = "", once: bool = False
    ) -> None:
        self.name = name
        self.kind = kind
        self.once = once
        self.evidence = evidence
        self.stage = "start"
        self.starts = 0
        self.outlived: tuple[str, ...] = ()
        self.nursery: trio.Nursery | None = None
        self.urls: Mapping[str, str] = {}
        self.secrets: Mapping[str, str] = {}
        self._log = log or name
        self._state = State.WAITING

    # --- what is known of it ----------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def address(self) -> str:
        """``host:port`` as tests reach it; empty for a part without a port."""

    @property
    def url(self) -> str:
        """Its base URL, without a slash at the end.

        Raises:
            BadInput: it has no port.
        """
        if not self.address:
            raise BadInput("part", key="name", found=self.name, expected="one that has a port")
        return f"http://{self.address}"

    @property
    def state(self) -> State:
        """Whether it runs; ``ended`` when it ended without being asked to."""
        return self._state

    @property
    def verbs(self) -> tuple[str, ...]:
        """What may be asked of it as it is now, of :data:`VERBS`."""
        if self.once:
            return ()
        return _VERBS_NOW.get(self.state, ())

    @property
    def place(self) -> Place:
        """Where it runs now."""
        return Place()

    @property
    def environment(self) -> Mapping[str, str]:
        """Its own variables, as its process has them."""
        return {}

    async def processes(self) -> Sequence[str]:
        """The command lines of its processes now, where they are its own and can be seen."""
        return ()

    def logs(self) -> tuple[Path, ...]:
        """The files with its output, one for each of its lives, oldest first."""
        pattern = re.compile(rf"{re.escape(self._log)}(?:-(\d+))?\.(?:log|jsonl)")
        found = [
            (int(match[1] or 1), path)
            for path in self.evidence.path.glob("*")
            if (match := pattern.fullmatch(path.name))
        ]
        return tuple(path for _, path in sorted(found))

    def death(self) -> HarnessError | None:
        """How it ended by itself, with its last lines; ``None`` when it did not."""
        return None

    def died(self) -> str:
        """How it died, which nobody asked for and nobody has put right; empty where that is not known."""
        return ""

    async def refresh(self) -> None:  # noqa: B027 - most kinds know without asking
        """See whether it still runs, where that must be asked for; ``state`` and ``death`` know then."""

    async def probe(self) -> str:
        """Probe whether it serves: empty when it does, else what is seen instead."""
        if self.state is State.COMPLETED:
            return ""
        if self.state is not State.RUNNING:
            return f"it does not run ({self.state})"
        return await self._check()

    # --- what is done with it: one meaning for every kind -----------------------------------------

    async def start(self) -> None:
        """Start it and wait until it serves, or, when it runs ``once``, until it has ended well.

        Raises:
            HarnessError: it runs already, or did not come up: the stage, its last lines, its log.
        """
        await self.refresh()
        if self.state in {State.RUNNING, State.PAUSED}:
            raise HarnessError(
                f"start {self.name}",
                observed="it runs already",
                next_step="Stop or kill it first, or call restart",
            )
        self.stage = "start"
        try:
            await self._start()
        except BaseException as error:
            with trio.CancelScope(shield=True):
                # Cut off by its caller: that was no death of its own.
                await self._abandon(failed=isinstance(error, Exception))
            raise
        self.starts += 1
        self._state = State.COMPLETED if self.once else State.RUNNING

    async def stop(self) -> None:
        """Ask its main process to end, wait for its grace, then climb the stop ladder.

        Nothing happens when it was never started.
        """
        if self.state is State.WAITING:
            return
        await self.resume()
        await self._stop()
        self._state = State.STOPPED

    async def kill(self) -> None:
        """End it as the kernel's out-of-memory killer would: SIGKILL to its main process alone.

        What outlives that is recorded in ``outlived`` and then ended too. Nothing happens when it was
        never started, or is down.
        """
        if self.state in {State.WAITING, State.STOPPED}:
            return
        self.outlived = tuple(await self._kill())
        for line in self.outlived:
            self.evidence.append("outlived.log", f"{self.name}: {line}")
        self._state = State.STOPPED

    async def pause(self) -> None:
        """Freeze it and everything it started; connections stay open and nothing answers.

        Raises:
            HarnessError: it does not run.
        """
        await self.refresh()
        if self.state is not State.RUNNING:
            raise HarnessError(
                f"pause {self.name}", observed="it does not run", next_step="Call start first"
            )
        await self._pause()
        self._state = State.PAUSED

    async def resume(self) -> None:
        """Undo :meth:`pause`; nothing happens when it was not paused."""
        if self.state is State.PAUSED:
            await self._resume()
            self._state = State.RUNNING

    async def close(self) -> None:
        """Take it down for good, at the end of its system."""
        await self.stop()

    # --- what each kind gives ---------------------------------------------------------------------

    async def _check(self) -> str:
        """As :meth:`probe`, while it runs; one that runs serves, unless its kind knows more."""
        return ""

    @abc.abstractmethod
    async def _start(self) -> None:
        """Start it and wait until it serves, noting the stage."""

    async def _abandon(self, *, failed: bool) -> None:
        """Clean up after a start that raised; ``failed`` when that was its own doing."""
        del failed
        self._state = State.STOPPED

    @abc.abstractmethod
    async def _stop(self) -> None:
        """In order."""

    @abc.abstractmethod
    async def _kill(self) -> Sequence[str]:
        """As a crash; returns what outlived it."""

    @abc.abstractmethod
    async def _pause(self) -> None:
        """Freeze it."""

    @abc.abstractmethod
    async def _resume(self) -> None:
        """Unfreeze it."""
