"""A service that is a container which compose has created."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import trio

from harness_core import limits
from harness_core.containers import Container
from harness_core.errors import ChildExited, HarnessError, NotReady
from harness_core.services import Place
from harness_core.stack._part import State
from harness_core.wait import until

__all__ = ["ContainerPart"]


class ContainerPart:
    """A container; built by the docker driver.

    Attributes:
        name: its name in the compose file.
        stage: the stage of its start that it is at, or was at when that failed.
    """

    def __init__(
        self,
        name: str,
        container: Container,
        *,
        published: bool,
        once: bool,
        probe: Callable[[], Awaitable[str]],
        ready_s: float,
    ) -> None:
        self.name = name
        self.stage = "start"
        self._container = container
        self._published = published
        self._once = once
        self._probe = probe
        self._ready_s = ready_s
        self._state = State.WAITING
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

    async def processes(self) -> Sequence[str]:
        """As the engine lists them."""
        return await self._container.processes() if self._state is State.RUNNING else ()

    def logs(self) -> Sequence[Path]:
        """One file for all its lives."""
        return (self._container.log,)

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

    async def look(self) -> str:
        """One look at whether it serves."""
        if self._state is State.COMPLETED:
            return ""
        if self._state is not State.RUNNING:
            return f"it does not run ({self.state})"
        return await self._probe()

    async def start(self) -> None:
        """Start it and wait until it serves, or has ended well.

        Raises:
            HarnessError: it runs already.
            ChildExited: it ended on the way.
            NotReady: it took too long.
        """
        await self.refresh()
        if self._state in {State.RUNNING, State.PAUSED} and self._death is None:
            raise HarnessError(
                f"start {self.name}",
                observed="it runs already",
                next_step="Stop or kill it first, or call restart",
            )
        self._death, self.stage = None, "start"
        await self._container.start()
        self._state = State.RUNNING
        self.stage = "exit" if self._once else "health"
        seen = "nothing was seen yet"

        async def there() -> bool:
            nonlocal seen
            if await self._container.status() in {"exited", "dead"}:
                if self._once and await self._container.exit_code() == 0:
                    return True
                raise await self._exited(f"start {self.name}")
            if self._once:
                seen = "it still runs"
                return False
            seen = await self._probe()
            return not seen

        try:
            with trio.move_on_after(self._ready_s):
                await until(there)
                self._state = State.COMPLETED if self._once else State.RUNNING
                return
            raise NotReady(  # noqa: TRY301 - ended as every other failure of a start
                f"start {self.name}",
                observed=f"{self._ready_s:g} s passed, last seen: {seen}",
                stage=self.stage,
                waited_s=self._ready_s,
                tail=await self._container.tail(),
                log=self._container.log,
            )
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._container.kill()
                self._state = State.STOPPED
            raise

    async def stop(self) -> None:
        """Ask it to end; what does not within its time is killed."""
        await self.resume()
        await self._container.stop(grace_s=limits.STACK_STOP_S)
        self._state, self._death = State.STOPPED, None

    async def kill(self) -> None:
        """SIGKILL to all of it."""
        await self._container.kill()
        self._state, self._death = State.STOPPED, None

    async def pause(self) -> None:
        """Freeze all of it.

        Raises:
            HarnessError: it does not run.
        """
        await self.refresh()
        if self.state is not State.RUNNING:
            raise HarnessError(
                f"pause {self.name}", observed="it does not run", next_step="Call start first"
            )
        await self._container.pause()
        self._state = State.PAUSED

    async def resume(self) -> None:
        """Undo :meth:`pause`; nothing happens when it was not paused."""
        if self._state is State.PAUSED:
            await self._container.resume()
            self._state = State.RUNNING
