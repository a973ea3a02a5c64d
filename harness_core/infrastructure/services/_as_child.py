"""A server of our own as a supervised child: one process, one port, one directory of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.services._readiness import Readiness
from harness_core.infrastructure.services._service import Place
from harness_core.ports import PortLease, Stage, await_ready, lease_port, listener_stages

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Child, Run

__all__ = ["ChildServer", "ServerCommand", "open_child_server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """What runs.

    Args:
        name: kind of server.
        argv: its command line.
        env: its environment, besides a home of its own.
        home: directory of its own.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    home: Path


class ChildServer:
    """A server started by us; built only by :func:`open_child_server`.

    Attributes:
        name: kind of server.
    """

    def __init__(
        self,
        run: Run,
        command: ServerCommand,
        *,
        lease: PortLease,
        readiness: Readiness,
        evidence: Evidence,
    ) -> None:
        self.name = command.name
        self._run = run
        self._command = command
        self._lease = lease
        self._readiness = readiness
        self._evidence = evidence
        self._child: Child | None = None
        self._life = AsyncExitStack()

    @property
    def address(self) -> str:
        """``127.0.0.1:port``; leased for the whole life of the service."""
        return f"127.0.0.1:{self._lease.port}"

    @property
    def place(self) -> Place:
        """Its process."""
        if self._child is None or self._child.returncode is not None:
            return Place()
        return Place(pid=self._child.pid)

    async def start(self) -> None:
        """Start it on its port and directory, and wait until it answers.

        Raises:
            HarnessError: it is running already.
            ChildExited: it gave up; carries its last words.
            PortTaken: somebody listens on its port.
            NotReady: it did not answer in time.
        """
        if self._child is not None and self._child.returncode is None:
            raise HarnessError(
                f"start {self.name} on {self.address}",
                observed=f"it is running already, as pid {self._child.pid}",
                next_step="Stop or kill it first, or call restart",
            )
        await self._release()
        self._lease.hand_over()
        child: Child = await self._life.enter_async_context(
            self._run.child(
                self._command.argv,
                name=self.name,
                env={
                    "PATH": "/usr/bin:/bin",
                    "HOME": str(self._command.home),
                    **self._command.env,
                },
                cwd=self._command.home,
                evidence=self._evidence,
            )
        )
        self._child = child
        seconds = self._readiness.seconds
        answers = Stage(name="protocol", probe=self._answers, seconds=seconds)
        stages = (*listener_stages(child, self._lease.port, seconds=seconds), answers)
        try:
            await await_ready(child, stages)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self.kill()
            raise

    async def _answers(self) -> str:
        try:
            await self._readiness.probe(self.address)
        except HarnessError as error:
            return error.observed
        except OSError as error:
            return str(error)
        return ""

    async def stop(self) -> None:
        """Ask it to end; nothing happens when it is down already."""
        await self.resume()
        await self._release()

    async def kill(self) -> None:
        """SIGKILL; nothing happens when it is down already."""
        if self._child is not None and self._child.returncode is None:
            self._child.kill()
            await self._child.wait()
        await self._release()

    async def pause(self) -> None:
        """SIGSTOP.

        Raises:
            HarnessError: it is not running.
        """
        if self._child is None or self._child.returncode is not None:
            raise HarnessError(
                f"pause {self.name} on {self.address}",
                observed="it is not running",
                next_step="Call start first",
            )
        self._child.pause()

    async def resume(self) -> None:
        """SIGCONT; nothing happens when it was not paused."""
        if self._child is not None and self._child.returncode is None:
            self._child.resume()

    async def _release(self) -> None:
        """Stop the child if it runs, and close the books on it."""
        await self._life.aclose()
        self._life = AsyncExitStack()
        self._child = None


@asynccontextmanager
async def open_child_server(
    run: Run, command: Callable[[int], ServerCommand], *, readiness: Readiness, evidence: Evidence
) -> AsyncIterator[ChildServer]:
    """Start a server on a leased port; end it, without ceremony, at the end of the block.

    Args:
        run: what it belongs to.
        command: what to run, given its port.
        readiness: when it serves.
        evidence: directory for its log.
    """
    with lease_port() as lease:
        server = ChildServer(
            run, command(lease.port), lease=lease, readiness=readiness, evidence=evidence
        )
        try:
            await server.start()
            yield server
        finally:
            with trio.CancelScope(shield=True):
                await server.kill()  # its data is about to be removed: nothing to say goodbye for
