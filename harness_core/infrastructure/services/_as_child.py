"""A server of our own as a supervised child, with whatever it forks: one port, one directory."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

import trio

from harness_core.base import limits
from harness_core.base.errors import HarnessError
from harness_core.base.wait import deadline, until
from harness_core.infrastructure.services._readiness import Readiness
from harness_core.infrastructure.services._recipe import Recipe, ServerCommand
from harness_core.infrastructure.services._service import Place
from harness_core.ports import Stage, await_ready, listener_stages
from harness_core.process import descendants, is_stopped, runs, start_time

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Child, Run


class ChildServer:
    """A server started by us; built only by :func:`open_child_server`.

    What it forks may live in sessions of their own (each backend of PostgreSQL does), so that a
    signal to its process group would not reach them: they are signalled one by one.

    Attributes:
        name: kind of server.
        address: ``127.0.0.1:port``; held for the whole life of the service.
        home: its directory.
    """

    def __init__(
        self, run: Run, recipe: Recipe, command: ServerCommand, *, port: int, evidence: Evidence
    ) -> None:
        self.name = recipe.name
        self.address = f"127.0.0.1:{port}"
        self.home = command.home
        self._run = run
        self._command = command
        self._ready = command.ready or _serves(port, recipe.readiness)
        self._evidence = evidence
        self._child: Child | None = None
        self._life = AsyncExitStack()
        self._frozen: tuple[int, ...] = ()

    @property
    def place(self) -> Place:
        """Its main process."""
        return Place(pid=self._running.pid) if self._running else Place()

    @property
    def _running(self) -> Child | None:
        return self._child if self._child is not None and self._child.returncode is None else None

    async def start(self) -> None:
        """Start it on its port and directory, and wait until it answers.

        Raises:
            HarnessError: it is running already.
            ChildExited: it ended; carries its last lines.
            PortTaken: another process listens on its port.
            NotReady: it did not answer in time.
        """
        if self._running:
            raise HarnessError(
                f"start {self.name} on {self.address}",
                observed=f"it is running already, as pid {self._running.pid}",
                next_step="Stop or kill it first, or call restart",
            )
        await self._release()
        command = self._command
        command.clean_up()
        child: Child = await self._life.enter_async_context(
            self._run.child(
                command.argv,
                name=self.name,
                env={"PATH": "/usr/bin:/bin", "HOME": str(command.home), **command.env},
                cwd=command.home,
                evidence=self._evidence,
                user=command.user,
                stop_signal=command.stop_signal,
            )
        )
        self._child = child
        try:
            await self._ready(child)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self.kill()
            raise

    async def stop(self) -> None:
        """Ask it to end; nothing happens when it is down already."""
        await self.resume()
        await self._release()

    async def kill(self) -> None:
        """SIGKILL to it and all that it forked; nothing happens when it is down already."""
        if child := self._running:
            forks = await self._freeze(child)
            _signal_all(forks, signal.SIGKILL)
            child.kill()

            async def gone() -> bool:
                return not alive(forks)

            with deadline(f"kill {self.name} on {self.address}", seconds=limits.CHILD_STOP_KILL_S):
                await child.wait()
                await until(gone)
        self._command.clean_up()
        await self._release()

    async def pause(self) -> None:
        """SIGSTOP to it, then to all that it forked.

        Raises:
            HarnessError: it is not running.
        """
        if not (child := self._running):
            raise HarnessError(
                f"pause {self.name} on {self.address}",
                observed="it is not running",
                next_step="Call start first",
            )
        self._frozen = await self._freeze(child)
        _signal_all(self._frozen, signal.SIGSTOP)

    async def resume(self) -> None:
        """SIGCONT to all that :meth:`pause` froze; nothing happens when it was not paused."""
        if child := self._running:
            _signal_all(self._frozen, signal.SIGCONT)
            child.resume()
        self._frozen = ()

    async def _freeze(self, child: Child) -> tuple[int, ...]:
        """Stop its main process, so that it forks no more; returns the processes it had forked."""
        child.signal(signal.SIGSTOP)

        async def stopped() -> bool:
            # The signal arrives when it next leaves the kernel: a fork may be on its way.
            return child.returncode is not None or is_stopped(child.pid)

        with deadline(f"freeze {self.name} on {self.address}", seconds=limits.CHILD_STOP_KILL_S):
            await until(stopped)
        return tuple(descendants(child.pid))

    async def _release(self) -> None:
        """Stop the child if it runs, and close the books on it."""
        await self._life.aclose()
        self._life = AsyncExitStack()
        self._child = None
        self._frozen = ()


@asynccontextmanager
async def open_child_server(
    run: Run, recipe: Recipe, *, evidence: Evidence
) -> AsyncIterator[ChildServer]:
    """Start a server on this machine; kill it at the end of the block, since its data goes too.

    Args:
        run: what it belongs to.
        recipe: which server.
        evidence: directory for its log.
    """
    with _held_port() as port:
        async with recipe.local(port) as command:
            server = ChildServer(run, recipe, command, port=port, evidence=evidence)
            try:
                await server.start()
                yield server
            finally:
                with trio.CancelScope(shield=True):
                    await server.kill()


@contextmanager
def _held_port() -> Iterator[int]:
    """A port that stays ours for as long as a service exists, also while its server is down.

    The socket is bound and never listens: to a client the port is closed, to every other program
    it is taken, and a server, which sets SO_REUSEADDR as this does, may listen on it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def _serves(port: int, readiness: Readiness) -> Callable[[Child], Awaitable[None]]:
    """The ``ready`` of a server that is asked over TCP alone: it listens, it is ours, it answers."""

    async def ready(child: Child) -> None:
        async def answers() -> str:
            return await readiness.check(f"127.0.0.1:{port}")

        seconds = readiness.seconds
        stages = listener_stages(child, port, seconds=seconds)
        await await_ready(child, (*stages, Stage(name="protocol", probe=answers, seconds=seconds)))

    return ready


def alive(pids: Iterable[int]) -> tuple[int, ...]:
    """Those of ``pids`` that still run (a zombie does not)."""
    return tuple(pid for pid in pids if (start := start_time(pid)) is not None and runs(pid, start))


def _signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
