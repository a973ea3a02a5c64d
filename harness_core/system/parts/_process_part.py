"""A part that is a supervised process, on ports that are leased for it."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_core.base import limits
from harness_core.base.errors import ChildExited, HarnessError
from harness_core.infrastructure.services import Place
from harness_core.ports import PortLease, Stage, await_completion, await_ready, listener_stages
from harness_core.process import Child, command_line, descendants
from harness_core.system.parts._part import Part, State

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["ProcessPart", "ProcessPlan", "StartChild"]

#: How a process is started: ``Run.child``, or what opens something with the same handle.
StartChild = Callable[..., AbstractAsyncContextManager[Any]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPlan:
    """What runs in one life of a part.

    Attributes:
        argv: its command line.
        environment: its whole environment.
        own: the variables of it that are the part's own; all when left out.
        cwd: where it starts; where the harness runs when ``None``.
        stages: when it serves, once it listens on its ports.
        ready_s: seconds it may take to listen, or to end when it runs once.
        stop_s: seconds it may take to end when it is asked to.
    """

    argv: Sequence[str]
    environment: Mapping[str, str] = dataclasses.field(repr=False)
    own: Mapping[str, str] | None = dataclasses.field(default=None, repr=False)
    cwd: Path | None = None
    stages: Sequence[Stage] = ()
    ready_s: float = limits.STACK_READY_S
    stop_s: float = limits.STACK_STOP_S


class ProcessPart(Part):
    """A supervised process.

    Args:
        name: unique in its system.
        run: what it belongs to.
        plan: asked for at every start, since the addresses in it are known only then.
        leases: the ports it listens on; the first is its address.
        evidence: directory for its log.
        once: it is to end with status 0.
        starter: how it is started when it is no plain process of this machine; what is started so
            is not asked whether the port is its own.

    Attributes:
        child: the process of its current or last life.
    """

    def __init__(  # noqa: PLR0913 - what a process needs; the rest with defaults
        self,
        name: str,
        run: Run,
        plan: Callable[[], ProcessPlan],
        *,
        leases: Sequence[PortLease] = (),
        evidence: Evidence,
        once: bool = False,
        starter: StartChild | None = None,
    ) -> None:
        super().__init__(name, kind="process", evidence=evidence, once=once)
        self._make_plan = plan
        self._plan: ProcessPlan | None = None
        self._leases = tuple(leases)
        self._starter = starter or run.child
        self._owned = starter is None
        self._child: Any = None
        self._life = AsyncExitStack()

    @property
    def child(self) -> Any:
        """The process of its current or last life.

        Raises:
            HarnessError: it was never started.
        """
        if self._child is None:
            raise HarnessError(f"use {self.name}", observed="it was never started")
        return self._child

    @property
    def address(self) -> str:
        """``127.0.0.1:port`` of its first port."""
        return f"127.0.0.1:{self._leases[0].port}" if self._leases else ""

    @property
    def state(self) -> State:
        """Whether it runs."""
        if self._state in {State.RUNNING, State.PAUSED} and not self._alive:
            return State.ENDED
        return self._state

    @property
    def place(self) -> Place:
        """Its process."""
        return Place(pid=self._child.pid) if self._alive else Place()

    @property
    def environment(self) -> Mapping[str, str]:
        """Its own variables, of its last start."""
        if self._plan is None:
            return {}
        return self._plan.environment if self._plan.own is None else self._plan.own

    @property
    def _alive(self) -> bool:
        return self._child is not None and self._child.returncode is None

    async def processes(self) -> Sequence[str]:
        """It, and everything below it."""
        if not self._alive:
            return ()
        found = [self._child.pid, *descendants(self._child.pid)]
        return tuple(" ".join(command_line(pid)) for pid in found)

    def death(self) -> HarnessError | None:
        """How it ended by itself."""
        child = self._child
        if self.state is not State.ENDED or child is None:
            return None
        return ChildExited(
            f"keep {self.name} running",
            name=self.name,
            returncode=child.returncode,
            next_step="Read the last lines of its output below",
            tail=child.tail(),
            log=child.log,
        )

    def died(self) -> str:
        """How its process died; an end that a handle asked for is none, also while it is under way."""
        child = self._child
        return (
            child.death(since_s=0.0)
            if self.state is State.ENDED and isinstance(child, Child)
            else ""
        )

    async def refresh(self) -> None:
        """Learn of an end that has happened already."""
        if isinstance(self._child, Child):
            await self._child.settle()

    async def _check(self) -> str:
        for stage in self._plan.stages if self._plan else ():
            if seen := await stage.probe():
                return seen
        return ""

    async def _start(self) -> None:
        """Start it and wait until it serves, or has ended well.

        Raises:
            ChildExited: it ended on the way.
            NotReady: a stage took too long.
            PortTaken: another process answers on its port.
        """
        await self._leave()
        plan = self._plan = self._make_plan()
        for lease in self._leases:
            lease.hand_over()
        where: dict[str, Any] = {} if plan.cwd is None else {"cwd": plan.cwd}
        self._child = await self._life.enter_async_context(
            self._starter(
                plan.argv,
                name=self.name,
                env=plan.environment,
                evidence=self.evidence,
                grace_s=plan.stop_s,
                **where,
            )
        )
        self._state = State.RUNNING
        if self.once:
            self.stage = "exit"
            await await_completion(self._child, seconds=plan.ready_s)
        else:
            await await_ready(self._child, [self._noted(each) for each in self._stages(plan)])

    def _stages(self, plan: ProcessPlan) -> Sequence[Stage]:
        owned = [
            stage
            for lease in (self._leases if self._owned else ())
            for stage in listener_stages(self._child, lease.port, seconds=plan.ready_s)
        ]
        return (*owned, *plan.stages)

    def _noted(self, stage: Stage) -> Stage:
        """The same stage; when it is probed, the start has come so far."""

        async def probe() -> str:
            self.stage = stage.name
            return await stage.probe()

        return dataclasses.replace(stage, probe=probe)

    async def _abandon(self, *, failed: bool) -> None:
        if self._alive:
            await self._child.crash()
        if not failed:
            await self._leave()
            self._state = State.STOPPED

    async def _stop(self) -> None:
        await self._leave()

    async def _kill(self) -> Sequence[str]:
        outlived: Sequence[str] = await self._child.crash() if self._alive else ()
        await self._leave()
        return outlived

    async def _pause(self) -> None:
        # From the top: what is frozen starts nothing more while the others are found.
        self._child.pause()
        if self._owned:
            _signal_all(self._child.pid, signal.SIGSTOP)

    async def _resume(self) -> None:
        if self._owned:
            _signal_all(self._child.pid, signal.SIGCONT)
        self._child.resume()

    async def _leave(self) -> None:
        """End the child if it runs, and close the books on it."""
        life, self._life = self._life, AsyncExitStack()
        await life.aclose()


def _signal_all(pid: int, number: signal.Signals) -> None:
    """Signal everything below a process, until nothing new is found."""
    seen: set[int] = set()
    while found := set(descendants(pid)) - seen:
        for each in found:
            try:
                os.kill(each, number)
            except ProcessLookupError:
                continue
        seen |= found
