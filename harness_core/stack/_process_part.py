"""A service that is a supervised child on a leased port."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from harness_core.errors import ChildExited, HarnessError
from harness_core.net import PortLease, Stage, await_completion, await_ready, listener_stages
from harness_core.process import Child, command_line, descendants
from harness_core.services import Place
from harness_core.stack._part import State

if TYPE_CHECKING:
    from harness_core.evidence import Evidence
    from harness_core.process import Run

__all__ = ["ProcessPart", "ProcessPlan"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPlan:
    """What runs.

    Attributes:
        name: its name in the compose file.
        argv: its command line.
        environment: its whole environment.
        cwd: where it starts.
        once: it is to end with status 0.
        health: one look at whether it serves; ``None`` when listening says enough.
        ready_s: seconds it may take for each stage on the way there.
        stop_s: seconds it may take to end when it is asked to.
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = dataclasses.field(repr=False)
    cwd: Path
    once: bool
    health: Callable[[], Awaitable[str]] | None
    ready_s: float
    stop_s: float


class ProcessPart:
    """A supervised child; built by the local driver.

    Args:
        name: its name in the compose file.
        run: what it belongs to.
        plan: asked for at every start, since the addresses in it are known only then.
        lease: its port.
        evidence: directory for its log.

    Attributes:
        name: its name in the compose file.
        stage: the stage of its start that it is at, or was at when that failed.
    """

    def __init__(
        self,
        name: str,
        run: Run,
        plan: Callable[[], Awaitable[ProcessPlan]],
        *,
        lease: PortLease | None,
        evidence: Evidence,
    ) -> None:
        self.name = name
        self._run = run
        self._make_plan = plan
        self._plan: ProcessPlan | None = None
        self._lease = lease
        self._evidence = evidence
        self._child: Child | None = None
        self._life = AsyncExitStack()
        self._logs: list[Path] = []
        self._state = State.WAITING
        self.stage = "start"

    @property
    def address(self) -> str:
        """``127.0.0.1:port``."""
        return f"127.0.0.1:{self._lease.port}" if self._lease else ""

    @property
    def state(self) -> State:
        """Whether it runs."""
        if self._state in {State.RUNNING, State.PAUSED} and not self._alive:
            return State.ENDED
        return self._state

    @property
    def place(self) -> Place:
        """Its process."""
        return Place(pid=self._child.pid) if self._child and self._alive else Place()

    @property
    def _alive(self) -> bool:
        return self._child is not None and self._child.returncode is None

    async def processes(self) -> Sequence[str]:
        """It, and everything below it."""
        if self._child is None or not self._alive:
            return ()
        found = [self._child.pid, *descendants(self._child.pid)]
        return tuple(" ".join(command_line(pid)) for pid in found)

    def logs(self) -> Sequence[Path]:
        """One file for each of its lives."""
        return tuple(self._logs)

    def death(self) -> HarnessError | None:
        """How it ended by itself."""
        child = self._child
        if self.state is not State.ENDED or child is None or child.returncode is None:
            return None
        return ChildExited(
            f"keep {self.name} running",
            name=self.name,
            returncode=child.returncode,
            next_step="Read the last lines of its output below",
            tail=child.tail(),
            log=child.log,
        )

    async def refresh(self) -> None:
        """What is known of it is always so."""

    async def look(self) -> str:
        """One look at its health."""
        if self._state is State.COMPLETED:
            return ""
        if not self._alive:
            return f"it does not run ({self.state})"
        health = self._plan.health if self._plan else None
        return await health() if health else ""

    async def start(self) -> None:
        """Start it and wait until it serves, or has ended well.

        Raises:
            HarnessError: it runs already.
            ChildExited: it ended on the way.
            NotReady: a stage took too long.
            PortTaken: somebody else answers on its port.
        """
        if self._alive:
            raise HarnessError(
                f"start {self.name}",
                observed=f"it runs already, as pid {self.place.pid}",
                next_step="Stop or kill it first, or call restart",
            )
        await self._release()
        self.stage = "start"
        plan = self._plan = await self._make_plan()
        if self._lease is not None:
            self._lease.hand_over()
        child: Child = await self._life.enter_async_context(
            self._run.child(
                plan.argv,
                name=self.name,
                env=plan.environment,
                cwd=plan.cwd,
                evidence=self._evidence,
                grace_s=plan.stop_s,
            )
        )
        self._child = child
        self._logs.append(child.log)
        self._state = State.RUNNING
        try:
            if plan.once:
                self.stage = "exit"
                await await_completion(child, seconds=plan.ready_s)
                self._state = State.COMPLETED
            else:
                await await_ready(child, self._stages(child, plan))
        except BaseException as error:
            with trio.CancelScope(shield=True):
                await self._end_everything()
                if not isinstance(error, Exception):  # cut off: that was no death of its own
                    await self._release()
                    self._state = State.STOPPED
            raise

    def _stages(self, child: Child, plan: ProcessPlan) -> tuple[Stage, ...]:
        stages: tuple[Stage, ...] = ()
        if self._lease is not None:
            stages = listener_stages(child, self._lease.port, seconds=plan.ready_s)
        if plan.health is not None:
            stages = (*stages, Stage(name="health", probe=plan.health, seconds=plan.ready_s))
        return tuple(self._noted(stage) for stage in stages)

    def _noted(self, stage: Stage) -> Stage:
        """The same stage; when it is looked at, the start has come so far."""

        async def probe() -> str:
            self.stage = stage.name
            return await stage.probe()

        return dataclasses.replace(stage, probe=probe)

    async def stop(self) -> None:
        """Ask it to end; what does not within its time is killed."""
        await self.resume()
        await self._release()
        self._state = State.STOPPED

    async def kill(self) -> None:
        """SIGKILL to it and everything below it, whatever session that is in."""
        await self._end_everything()
        await self._release()
        self._state = State.STOPPED

    async def pause(self) -> None:
        """SIGSTOP to it and everything below it.

        Raises:
            HarnessError: it does not run.
        """
        if self._child is None or not self._alive:
            raise HarnessError(
                f"pause {self.name}", observed="it does not run", next_step="Call start first"
            )
        # From the top: what is frozen starts nothing more while the others are found.
        self._child.pause()
        _signal_all(self._child, signal.SIGSTOP)
        self._state = State.PAUSED

    async def resume(self) -> None:
        """SIGCONT; nothing happens when it was not paused."""
        if self._child is not None and self._alive and self._state is State.PAUSED:
            _signal_all(self._child, signal.SIGCONT)
            self._child.resume()
            self._state = State.RUNNING

    async def _end_everything(self) -> None:
        child = self._child
        if child is None or child.returncode is not None:
            return
        child.pause()  # so that nothing new is started behind our back
        _signal_all(child, signal.SIGKILL)
        child.kill()
        await child.wait()

    async def _release(self) -> None:
        """End the child if it runs, and close the books on it."""
        await self._life.aclose()
        self._life = AsyncExitStack()
        self._child = None


def _signal_all(child: Child, number: signal.Signals) -> None:
    """Signal everything below a child, until nothing new is found."""
    seen: set[int] = set()
    while found := set(descendants(child.pid)) - seen:
        for pid in found:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        seen |= found
