"""A server in a container, taken away and given back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from harness_core.base import limits
from harness_core.base.bridge import blocking
from harness_core.base.errors import ChildExited, HarnessError
from harness_core.base.machine import need_extra
from harness_core.base.wait import deadline, until
from harness_core.infrastructure.containers import Container, open_container, provide_image
from harness_core.infrastructure.engine import find_engine
from harness_core.infrastructure.services._readiness import Readiness, connect
from harness_core.infrastructure.services._recipe import Recipe
from harness_core.infrastructure.services._service import Place, Say

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

#: Interval between two probes of a starting server, in seconds; each is one connection.
_POLL_S: Final = 0.005

#: Interval between two questions to the engine whether the container still runs, in seconds.
_ASK_S: Final = 0.25

_DISK_FULL: Final = "No space left on device"
_READ_TAIL: Final = "Read its last lines below"


class ContainerServer:
    """A server in a container of ours; built only by :func:`open_container_server`.

    Attributes:
        name: kind of server.
    """

    def __init__(self, container: Container, *, name: str, readiness: Readiness) -> None:
        self.name = name
        self._container = container
        self._readiness = readiness

    @property
    def address(self) -> str:
        """``host:port``; published on one port for good, so that it survives a restart."""
        return self._container.address

    @property
    def place(self) -> Place:
        """Its container, whether that runs or not."""
        return Place(container=self._container.id)

    async def start(self) -> None:
        """Start the stopped container again, data included.

        Raises:
            HarnessError: it is running already.
            ChildExited: it ended while it started; shows its last lines.
        """
        if await self._container.status() in {"running", "paused"}:
            raise HarnessError(
                f"start {self.name} on {self.address}",
                observed="its container is running already",
                next_step="Stop or kill it first, or call restart",
            )
        await self._container.start()
        await self.ready()

    async def stop(self) -> None:
        """Stop the container; nothing happens when it is down already."""
        await self._container.resume()
        await self._container.stop()
        await self._closed()

    async def kill(self) -> None:
        """SIGKILL to the container; nothing happens when it is down already."""
        await self._container.kill()
        await self._closed()

    async def pause(self) -> None:
        """Freeze every process of the container.

        Raises:
            HarnessError: it is not running.
        """
        if (status := await self._container.status()) != "running":
            raise HarnessError(
                f"pause {self.name} on {self.address}",
                observed=f"it is not running (its container is {status})",
                next_step="Call start first",
            )
        await self._container.pause()

    async def resume(self) -> None:
        """Undo :meth:`pause`; nothing happens when it was not paused."""
        await self._container.resume()

    async def ready(self) -> None:
        """Wait until the server answers a client.

        Raises:
            ChildExited: the container ended; shows its last lines.
            NotReady: it did not answer in time.
        """
        action = f"start {self.name} in container {self._container.name}"
        seen = "it never listened"
        asked = trio.current_time()

        async def probe() -> bool:
            nonlocal seen, asked
            seen = await self._readiness.check(self.address)
            if seen and trio.current_time() - asked >= _ASK_S:
                await self._still_running(action)
                asked = trio.current_time()
            return not seen

        with deadline(action, seconds=self._readiness.seconds, observed=lambda: seen):
            await until(probe, poll_s=_POLL_S, slowest_s=_POLL_S)

    async def _still_running(self, action: str) -> None:
        if await self._container.status() == "running":
            return
        tail = await self._container.tail()
        full = any(_DISK_FULL in line for line in tail)
        raise ChildExited(
            action,
            name=self.name,
            returncode=await self._container.exit_code(),
            observed="its disk is full, so the server ended" if full else "",
            next_step="Free space where the engine keeps containers" if full else _READ_TAIL,
            tail=tail,
        )

    async def _closed(self) -> None:
        """Until the engine has closed the published port: a client is then refused, not cut off."""

        async def refused() -> bool:
            try:
                connection = await connect(self.address)
            except ConnectionRefusedError:
                return True
            except OSError:
                return False
            await connection.aclose()
            return False

        with deadline(f"close {self.address}", seconds=limits.CHILD_STOP_KILL_S):
            await until(refused)


@asynccontextmanager
async def open_container_server(
    run: Run, recipe: Recipe, *, evidence: Evidence, say: Say
) -> AsyncIterator[ContainerServer]:
    """Start a server in a container; remove it, and its volumes, at the end.

    Args:
        run: what it belongs to.
        recipe: which server; its image is pulled or built when the engine does not have it.
        evidence: directory for its log.
        say: gets a line for what takes long.

    Raises:
        Unavailable: no library, no engine, no image, no space.
        ChildExited: the container ended while the server started.
        NotReady: it did not serve in time.
    """
    need_extra(
        "containers", action="run a server in a container", instead="run with --services local"
    )
    engine = await blocking(find_engine)
    image = await blocking(provide_image, engine, recipe.images, say=say)
    spec = recipe.container(image)
    async with open_container(run, spec, engine=engine, evidence=evidence) as container:
        server = ContainerServer(container, name=recipe.name, readiness=recipe.readiness)
        await server.ready()
        yield server
