"""The stages between a process that was started and a service that can be used.

Each stage has its own deadline and the error names the first one that failed, what was seen there
and the last lines of the child's output. A child that dies ends the wait at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import trio

from harness_core.base.errors import ChildExited, NotReady, PortTaken
from harness_core.base.groups import lone_error, unwrap
from harness_core.base.slowness import slowness
from harness_core.base.wait import passed, until
from harness_core.ports._owners import has_listener, prove_listener
from harness_core.ports._probes import Probe, tcp_accepts
from harness_core.process import Child


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step towards readiness.

    Attributes:
        name: what errors call it: ``port``, ``protocol``, ``domain``.
        probe: answers ``""`` when the step is reached, else what was seen.
        seconds: how long this step may take.
    """

    name: str
    probe: Probe
    seconds: float


async def await_ready(child: Child, stages: Sequence[Stage]) -> None:
    """Wait for each stage in turn.

    Raises:
        NotReady: a stage took longer than it may; carries its name and the output tail.
        ChildExited: the child died on the way; carries its exit status and the output tail.
        PortTaken: another process answers on the child's port.
    """
    action = f"start {child.name}"
    child.check(action)  # a stage may be reached at the first probe, by another server
    async with lone_error():
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_fail_on_exit, child, action)
                for stage in stages:
                    await _await_stage(child, stage)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            taken, others = group.split(PortTaken)
            if taken is None or others is None:
                raise
            # The child died in the same moment, of the same cause: a squatter on its port.
            raise unwrap(taken) from unwrap(others)
    child.check(action)


async def await_completion(child: Child, *, seconds: float) -> None:
    """Wait for a one-shot service (a migration, a seed) to exit with 0.

    Raises:
        NotReady: it still runs after ``seconds``.
        ChildExited: it exited with another status.
    """
    factor = slowness()
    with trio.move_on_after(seconds * factor):
        if await child.wait() == 0:
            return
        child.check(f"complete {child.name}")
    raise NotReady(
        f"complete {child.name}",
        observed=f"it still runs, {passed(seconds, factor)}",
        stage="exit",
        waited_s=seconds * factor,
        tail=child.tail(),
        log=child.log,
    )


def listener_stages(child: Child, port: int, *, seconds: float) -> tuple[Stage, ...]:
    """The stages every server with a fixed port begins with: it accepts, and it is ours."""

    async def is_ours() -> str:
        if not has_listener(port):
            return f"port {port} has no listener any more"
        prove_listener(port, child)
        return ""

    return (
        Stage(name="port", probe=tcp_accepts(port), seconds=seconds),
        Stage(name="owner", probe=is_ours, seconds=seconds),
    )


async def _await_stage(child: Child, stage: Stage) -> None:
    seen, factor = "nothing was seen yet", slowness()

    async def reached() -> bool:
        nonlocal seen
        seen = await stage.probe()
        return not seen

    with trio.move_on_after(stage.seconds * factor):
        await until(reached)
        return
    raise NotReady(
        f"reach stage {stage.name!r} of {child.name}",
        observed=f"{passed(stage.seconds, factor)}, last seen: {seen}",
        stage=stage.name,
        waited_s=stage.seconds * factor,
        next_step="Read its log below for the reason",
        tail=child.tail(),
        log=child.log,
    )


async def _fail_on_exit(child: Child, action: str) -> None:
    returncode = await child.wait()
    raise ChildExited(
        action,
        name=child.name,
        returncode=returncode,
        next_step="Read the last lines of its output below",
        tail=child.tail(),
        log=child.log,
    )
