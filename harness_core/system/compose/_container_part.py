"""A part that is a container which compose has created."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import trio

from harness_core.base import limits
from harness_core.base.errors import ChildExited, HarnessError, NotReady
from harness_core.base.slowness import slowness
from harness_core.base.wait import passed, until
from harness_core.infrastructure.containers import Container
from harness_core.infrastructure.services import Place
from harness_core.system.parts import Part, State

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence

__all__ = ["ContainerPart"]


class ContainerPart(Part):
    """A container; built by the docker driver, which also removes it."""

    def __init__(  # noqa: PLR0913 - built in one place
        self,
        name: str,
        container: Container,
        *,
        kind: str,
        evidence: Evidence,
        environment: Mapping[str, str],
        published: bool,
        once: bool,
        probe: Callable[[], Awaitable[str]],
        ready_s: float,
    ) -> None:
        super().__init__(name, kind=kind, evidence=evidence, once=once)
        self._container = container
        self._environment = environment
        self._published = published
        self._probe = probe
        self._ready_s = ready_s
        self._death: HarnessError | None = None

    @property
    def address(self) -> str:
        """Where its port is published."""
        return self._container.address if self._published else ""

    @property
    def state(self) -> State:
        """Whether it runs, as of the last :meth:`refresh`."""
        return State.ENDED if self._death is not None else self._state

    @property
    def place(self) -> Place:
        """Its container, whether that runs or not."""
        return Place(container=self._container.id)

    @property
    def environment(self) -> Mapping[str, str]:
        """Its own variables."""
        return self._environment

    async def processes(self) -> Sequence[str]:
        """As the engine lists them."""
        return await self._container.processes() if self._state is State.RUNNING else ()

    def death(self) -> HarnessError | None:
        """How it ended by itself, as of the last :meth:`refresh`."""
        return self._death

    async def refresh(self) -> None:
        """See whether it still runs."""
        running = self._state in {State.RUNNING, State.PAUSED} and self._death is None
        if running and await self._container.status() in {"exited", "dead"}:
            self._death = await self._exited(f"keep {self.name} running")

    async def _exited(self, action: str) -> ChildExited:
        return ChildExited(
            action,
            name=self.name,
            returncode=await self._container.exit_code(),
            next_step="Read the last lines of its output below",
            tail=await self._container.tail(),
            log=self._container.log,
        )

    async def _check(self) -> str:
        return await self._probe()

    async def _start(self) -> None:
        """Start it and wait until it serves, or has ended well.

        Raises:
            ChildExited: it ended on the way.
            NotReady: it took too long.
        """
        self._death = None
        await self._container.start()
        self._state = State.RUNNING
        self.stage = "exit" if self.once else "health"
        seen = "nothing was seen yet"

        async def there() -> bool:
            nonlocal seen
            if await self._container.status() in {"exited", "dead"}:
                if self.once and await self._container.exit_code() == 0:
                    return True
                raise await self._exited(f"start {self.name}")
            if self.once:
                seen = "it still runs"
                return False
            seen = await self._probe()
            return not seen

        factor = slowness()
        with trio.move_on_after(self._ready_s * factor):
            await until(there)
            return
        raise NotReady(
            f"start {self.name}",
            observed=f"{passed(self._ready_s, factor)}, last seen: {seen}",
            stage=self.stage,
            waited_s=self._ready_s * factor,
            tail=await self._container.tail(),
            log=self._container.log,
        )

    async def _abandon(self, *, failed: bool) -> None:
        if self._state is State.RUNNING:
            await self._kill()
        await super()._abandon(failed=failed)

    async def _stop(self) -> None:
        """Ask it to end; what does not within its time is killed."""
        await self._container.stop(grace_s=limits.STACK_STOP_S)
        self._death = None

    async def _kill(self) -> Sequence[str]:
        """SIGKILL to its first process, with which the kernel ends everything in it."""
        await self._container.kill()
        self._death = None
        return ()

    async def _pause(self) -> None:
        await self._container.pause()

    async def _resume(self) -> None:
        await self._container.resume()

    async def close(self) -> None:
        """Left to the driver, which removes it as it is."""
