"""The process behind a butler: how it is started, taken away and given back, and what is seen of it.

A butler's handle (``butler.py``) does not care whether the process is its own, shared with every
other butler, or held by another process of the run (``attached.py``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from harness_core.bridge import Loop
from harness_core.errors import HarnessError
from harness_core.evidence import Evidence
from harness_core.net import PortLease, Stage, await_ready, listener_stages
from harness_core.process import Run, StopReport
from harness_core.skips import not_run
from harness_core.wait import deadline

__all__ = ["BOOT_S", "ChildSeen", "Life", "OwnLife", "SharedLife", "StartChild"]

T = TypeVar("T")

#: How a butler's process is started: ``Run.child``, or a container that has the same handle.
StartChild = Callable[..., AbstractAsyncContextManager[Any]]

#: Start of a daemon, migrations included. Slowest seen, six in containers at once on 2 cores with a
#: load of 30: 52 s (a calm machine boots all six within 5 s); doubled.
BOOT_S: Final = 105.0

#: A butler drains its sessions for up to 30 s before it ends (contract, ``shutdown()``).
STOP_S: Final = 40.0


class ChildSeen(Protocol):
    """What a test may look at in a butler's process."""

    name: str
    pid: int
    returncode: int | None
    log: Path
    stop_report: StopReport | None

    def tail(self) -> tuple[str, ...]:
        """The last lines of its output."""

    async def wait(self) -> int:
        """Wait for its end."""


class Life(Protocol):
    """A butler's process through all its lives."""

    @property
    def child(self) -> ChildSeen:
        """The process of its current or last life."""

    def signal(self, verb: str) -> None:
        """``kill``, ``pause`` or ``resume`` it."""

    async def change(self, verb: str, environment: Mapping[str, str]) -> None:
        """``start``, ``stop`` or ``restart`` it, with this environment from its next start on."""

    async def wait(self) -> int:
        """Wait for the end of its process."""

    async def attempt(self, *, seconds: float, environment: Mapping[str, str]) -> tuple[int, str]:
        """Start a second process that is expected to end by itself."""


class OwnLife:
    """A process (or container) supervised here: of one butler, or of them all.

    Args:
        name: what errors and its log call it.
        leases: the ports it will listen on.
        command: its command line.
        environment: its whole environment.
        stages: when it serves, once it listens.
        evidence: directory for its log.
        run: the run it belongs to.
        loop: the loop it lives on, for callers from others.
        start_child: how it is started, when it is no plain process.
    """

    def __init__(
        self,
        name: str,
        *,
        leases: Sequence[PortLease],
        command: Sequence[str],
        environment: Mapping[str, str],
        stages: Sequence[Stage],
        evidence: Evidence,
        run: Run,
        loop: Loop | None,
        start_child: StartChild | None = None,
    ) -> None:
        self.name = name
        self.command = tuple(command)
        self.environment = dict(environment)
        self._leases = tuple(leases)
        self._stages = tuple(stages)
        self._evidence = evidence
        self._run = run
        self._loop = loop
        self._start_child = start_child or run.child
        self._owned = start_child is None
        self._stack = AsyncExitStack()
        self._child: Any = None
        self.paused = False

    @property
    def child(self) -> Any:
        """The process of its current or last life."""
        if self._child is None:
            raise HarnessError(f"use {self.name}", observed="it was never started")
        return self._child

    def signal(self, verb: str) -> None:
        """``kill``, ``pause`` or ``resume`` it."""
        getattr(self.child, verb)()
        self.paused = {"pause": True, "resume": False}.get(verb, self.paused)

    async def change(self, verb: str, environment: Mapping[str, str]) -> None:
        """``start``, ``stop`` or ``restart`` it, with this environment from its next start on."""
        self.environment = dict(environment)
        steps = {
            "start": (self.start_here,),
            "stop": (self.stop_here,),
            "restart": (self.stop_here, self.start_here),
        }[verb]

        async def climb() -> None:
            for step in steps:
                await step()

        await self._on_loop(climb)

    async def wait(self) -> int:
        """Wait for the end of its process; returns the exit status."""
        return await self._on_loop(self.child.wait)

    async def attempt(self, *, seconds: float, environment: Mapping[str, str]) -> tuple[int, str]:
        """Start a second process of the same command line that is expected to end by itself."""

        async def start() -> tuple[int, str]:
            async with self._run.child(
                self.command,
                name=f"{self.name}-attempt",
                env=self.environment | dict(environment),
                evidence=self._evidence,
            ) as child:
                with deadline(f"see {child.name} end", seconds=seconds, tail=child.tail):
                    returncode = await child.wait()
                return returncode, child.log.read_text(encoding="utf-8")

        return await self._on_loop(start)

    async def mend_here(self) -> str:
        """Bring it back when a test left it paused or dead; says what was found."""
        if self._child is None:
            return ""
        if self._child.returncode is not None:
            found = f"{self.name} (pid {self._child.pid}) had ended with {self._child.returncode}"
            await self.stop_here()
            await self.start_here()
            return found
        if self.paused:
            self.signal("resume")
            return f"{self.name} was paused"
        return ""

    async def stop_here(self) -> None:
        """Stop it, for a caller that is on the loop it lives on."""
        self.paused = False
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def start_here(self) -> None:
        """Start it and wait until it serves, for a caller that is on the loop it lives on."""
        for lease in self._leases:
            lease.hand_over()
        child = await self._stack.enter_async_context(
            self._start_child(
                self.command,
                name=self.name,
                env=self.environment,
                evidence=self._evidence,
                grace_s=STOP_S,
            )
        )
        self._child = child
        owned = [
            stage
            for lease in (self._leases if self._owned else ())
            for stage in listener_stages(child, lease.port, seconds=BOOT_S)
        ]
        await await_ready(child, (*owned, *self._stages))

    async def _on_loop(self, call: Callable[[], Awaitable[T]]) -> T:
        if self._loop is None:
            return await call()
        return await self._loop.call(call)


class SharedLife:
    """One process that serves every butler: it may be looked at, and not be taken away alone."""

    def __init__(self, child: Callable[[], Any], *, why: str) -> None:
        self._child = child
        self._why = why

    @property
    def child(self) -> Any:
        """The process of them all."""
        return self._child()

    def signal(self, verb: str) -> None:
        """Skips the test by name."""
        not_run("subject", f"cannot {verb} one butler: {self._why}")

    async def change(self, verb: str, environment: Mapping[str, str]) -> None:
        """Skips the test by name."""
        not_run("subject", f"cannot {verb} one butler: {self._why}")

    async def wait(self) -> int:
        """Skips the test by name."""
        not_run("subject", f"cannot wait for the end of one butler: {self._why}")

    async def attempt(
        self,
        *,
        seconds: float,
        environment: Mapping[str, str],
    ) -> tuple[int, str]:
        """Skips the test by name."""
        not_run("subject", f"cannot start one butler: {self._why}")
