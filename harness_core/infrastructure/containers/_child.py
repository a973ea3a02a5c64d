"""A subject's process in a container, with the handle of a supervised process.

It shares the network of this machine, so that it reaches loopback addresses and serves on its
leased port; the directories it is given are mounted under their own names. Kill, pause and resume
act on the container, on every process in it at once.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from harness_core.base import limits
from harness_core.base.errors import ChildExited, HarnessError, Unavailable
from harness_core.base.wait import until
from harness_core.infrastructure.containers._client import engine_errors
from harness_core.infrastructure.containers._container import (
    Container,
    ContainerSpec,
    open_container,
)
from harness_core.infrastructure.engine import Engine
from harness_core.process import StopReport

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

#: Interval between two probes of its end, in seconds.
_POLL_S: Final = 0.2

#: After SIGKILL a process of an engine's container has 128 + 9.
_SIGNALLED: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerCommand:
    """What runs in the container.

    Args:
        name: what errors and logs call it.
        image: which image; must be at hand.
        argv: command line inside.
        env: its environment, besides the image's own.
        read: directories it may read.
        write: directories it may write.
        port: where it listens; leased by the caller.
    """

    name: str
    image: str
    argv: Sequence[str]
    env: Mapping[str, str]
    read: Sequence[Path] = ()
    write: Sequence[Path] = ()
    port: int


class ContainerChild:
    """A process in a container; built only by :func:`open_container_child`.

    Attributes:
        name: what errors call it.
        pid: of its first process, on this machine.
        log: its output so far.
        returncode: ``None`` while it was last seen alive; negative for a signal.
        stop_report: how the orderly end went; ``None`` before it.
    """

    def __init__(self, container: Container, *, name: str, log: Path, pid: int) -> None:
        self._container = container
        self.name = name
        self.log = log
        self.pid = pid
        self.returncode: int | None = None
        self.stop_report: StopReport | None = None

    def tail(self) -> tuple[str, ...]:
        """The last lines of its output."""
        return tuple(self._now("read the log of", "logs", tail=limits.TAIL_LINES).splitlines())

    def check(self, action: str) -> None:
        """Raise when it has ended.

        Raises:
            ChildExited: it has; carries its last lines.
        """
        if self.returncode is not None:
            raise ChildExited(
                action,
                name=self.name,
                returncode=self.returncode,
                next_step="Read its last lines below",
                tail=self.tail(),
            )

    async def wait(self) -> int:
        """Wait for its end.

        Returns:
            Its exit status.
        """

        async def ended() -> bool:
            return await self._container.status() in {"exited", "dead"}

        await until(ended, poll_s=_POLL_S, slowest_s=_POLL_S)
        code = await self._container.exit_code()
        self.returncode = _SIGNALLED - code if code > _SIGNALLED else code
        return self.returncode

    async def crash(self) -> tuple[str, ...]:
        """SIGKILL, and wait for its end; in a container nothing outlives its first process."""
        await self._container.kill()
        await self.wait()
        return ()

    def pause(self) -> None:
        """Freeze everything in the container."""
        self._now("pause", "pause")

    def resume(self) -> None:
        """Undo :meth:`pause`."""
        self._now("resume", "unpause")

    def _now(self, verb: str, method: str, **options: object) -> str:
        """Call a method of the library's container, without a thread: what it printed, if anything."""
        with engine_errors(f"{verb} {self.name}"):
            answer = getattr(self._container._wrapped, method)(**options)  # noqa: SLF001 - its half
        return (answer or b"").decode("utf-8", "replace")

    async def stop(self, *, grace_s: float) -> StopReport:
        """Ask it to end; when it does not in ``grace_s`` it is killed, which is in the report."""
        if self.stop_report is None:
            began = trio.current_time()
            await self._container.resume()
            await self._container.stop(grace_s=grace_s)
            returncode = await self.wait()
            self.stop_report = StopReport(
                returncode=returncode,
                waited_s=trio.current_time() - began,
                killed=returncode == -signal.SIGKILL,
            )
        return self.stop_report


@asynccontextmanager
async def open_container_child(
    run: Run, command: ContainerCommand, *, engine: Engine, evidence: Evidence, grace_s: float
) -> AsyncIterator[ContainerChild]:
    """Start a command in a container; stop and remove it at the end.

    Args:
        run: what it belongs to.
        command: what to run.
        engine: where; must be on this machine.
        evidence: directory for its log.
        grace_s: seconds between asking it to stop and SIGKILL.

    Raises:
        Unavailable: the engine is on another machine, or the image is missing.
    """
    if not engine.local:
        raise Unavailable(
            f"run {command.name} in a container",
            observed=f"{engine} is on another machine, whose network is not ours",
            next_step="Use an engine on this machine",
        )
    spec = ContainerSpec(
        name=command.name,
        image=command.image,
        port=command.port,
        command=tuple(command.argv),
        env=command.env,
        mounts={str(path): str(path) for path in (*command.read, *command.write)},
        writable=frozenset(str(path) for path in command.write),
        shared_network=True,
    )
    async with open_container(run, spec, engine=engine, evidence=evidence) as container:
        pid = await container.pid()
        child = ContainerChild(container, name=command.name, log=container.log, pid=pid)
        try:
            yield child
        finally:
            try:
                await child.stop(grace_s=grace_s)
            except HarnessError as error:
                evidence.append("containers.log", str(error))
