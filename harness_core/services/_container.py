"""Provider *container*: PostgreSQL from an image.

The image is the one that ``HARNESS_POSTGRES_IMAGE`` names; else one of ``harness images build``
(with the data directory inside, ready in a third of a second); else the public one. All of them
take the same variables. Readiness is observed from outside: a server that answers a client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from harness_core import limits
from harness_core.bridge import blocking
from harness_core.containers import (
    Container,
    ContainerSpec,
    ImageChoice,
    image_tag,
    open_container,
    provide_image,
)
from harness_core.engine import find_engine
from harness_core.errors import ChildExited, HarnessError
from harness_core.services._protocol import ServerRefusedError, greet
from harness_core.services._url import PostgresUrl
from harness_core.wait import deadline, until

if TYPE_CHECKING:
    from harness_core.evidence import Evidence
    from harness_core.process import Run

__all__ = ["IMAGE_VARIABLE", "ContainerPostgres", "open_container_postgres", "postgres_image"]

IMAGE_VARIABLE: Final = "HARNESS_POSTGRES_IMAGE"

_PUBLIC: Final = "postgres:17.6-bookworm"
_PREPARED: Final = ("postgres-baked", "postgres")

_PORT: Final = 5432

#: As in the provider *local*: enough for a dozen services, and nothing kept for a crash.
_SETTINGS: Final[Mapping[str, str]] = {
    "max_connections": "200",
    "shared_buffers": "32MB",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
    "jit": "off",
    "timezone": "UTC",
}

#: Interval between two looks at a starting server, in seconds; each is one connection.
_LOOK_S: Final = 0.005

_DISK_FULL: Final = "No space left on device"
_READ_TAIL: Final = "Read its last words below"

#: Looks between two questions to the engine whether the container still runs.
_ASK_EVERY: Final = 50


class ContainerPostgres:
    """A server in a container of ours; built only by :func:`open_container_postgres`."""

    name = "postgres"

    def __init__(self, container: Container) -> None:
        self._container = container

    @property
    def address(self) -> str:
        """``host:port``; published on one port for good, so that it survives a restart."""
        return self._container.address

    async def start(self) -> None:
        """Start the stopped container again, data included.

        Raises:
            HarnessError: it is running already.
            ChildExited: it ended while it started; shows its last lines.
        """
        if await self._container.status() in {"running", "paused"}:
            raise HarnessError(
                f"start postgres on {self.address}",
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
                f"pause postgres on {self.address}",
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
        action = f"start postgres in container {self._container.name}"
        seen = "it never listened"
        looks = 0

        async def probe() -> bool:
            nonlocal seen, looks
            looks += 1
            try:
                await greet(self.address)
            except (OSError, ServerRefusedError) as error:
                seen = str(error)
                if looks % _ASK_EVERY == 0:
                    await self._still_running(action)
                return False
            return True

        with deadline(action, seconds=limits.POSTGRES_READY_S, observed=lambda: seen):
            await until(probe, poll_s=_LOOK_S, slowest_s=_LOOK_S)

    async def _still_running(self, action: str) -> None:
        if await self._container.status() == "running":
            return
        tail = await self._container.tail()
        full = any(_DISK_FULL in line for line in tail)
        raise ChildExited(
            action,
            name="postgres",
            returncode=await self._container.exit_code(),
            observed="its disk is full, so the server ended" if full else "",
            next_step="Free space where the engine keeps containers" if full else _READ_TAIL,
            tail=tail,
        )

    async def _closed(self) -> None:
        """Until the engine has closed the published port: a client is then refused, not cut off."""

        async def refused() -> bool:
            try:
                await greet(self.address)
            except ConnectionRefusedError:
                return True
            except (OSError, ServerRefusedError):
                return False
            return False

        with deadline(f"close {self.address}", seconds=limits.CHILD_STOP_KILL_S):
            await until(refused)


def postgres_image() -> ImageChoice:
    """Which image serves; ``HARNESS_POSTGRES_IMAGE`` decides when it is set."""
    return ImageChoice(
        variable=IMAGE_VARIABLE,
        prepared=tuple(image_tag(name) for name in _PREPARED),
        public=_PUBLIC,
    )


@asynccontextmanager
async def open_container_postgres(
    run: Run, *, evidence: Evidence, password: str, settings: Mapping[str, str]
) -> AsyncIterator[tuple[ContainerPostgres, PostgresUrl]]:
    """Start a server in a container; remove it, and its volumes, at the end.

    Args:
        run: what it belongs to.
        evidence: directory for its log.
        password: of the superuser.
        settings: additions to, or replacements of, our settings.

    Raises:
        Unavailable: no engine, no image, no space.
        ChildExited: the container ended while the server started.
    """
    engine = await blocking(find_engine)
    image = await blocking(provide_image, engine, postgres_image())
    words = [f"{key}={value}" for key, value in {**_SETTINGS, **settings}.items()]
    spec = ContainerSpec(
        name="postgres",
        image=image,
        port=_PORT,
        command=("postgres", *(part for word in words for part in ("-c", word))),
        env={"POSTGRES_PASSWORD": password},
    )
    async with open_container(run, spec, engine=engine, evidence=evidence) as container:
        service = ContainerPostgres(container)
        await service.ready()
        yield (
            service,
            PostgresUrl(
                host=container.host, port=container.port, user="postgres", password=password
            ),
        )
