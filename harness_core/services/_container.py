"""Provider *container*: PostgreSQL from an image, through testcontainers.

The library blocks, so every call goes through a thread; it is imported when the provider is
chosen, so that nobody else needs it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from harness_core import limits
from harness_core.bridge import blocking
from harness_core.errors import HarnessError, Unavailable
from harness_core.services._protocol import ServerRefusedError, greet
from harness_core.services._url import PostgresUrl
from harness_core.wait import deadline, until

__all__ = ["ContainerPostgres", "open_container_postgres"]

_IMAGE: Final = "postgres:18-alpine"
_ACTION: Final = "use services from containers"
_STOP_S: Final = int(limits.CHILD_STOP_GRACE_S)


class ContainerPostgres:
    """A server in a container of ours; built only by :func:`open_container_postgres`."""

    name = "postgres"

    def __init__(self, container: Any, url: PostgresUrl) -> None:
        self._container = container
        self._url = url

    @property
    def address(self) -> str:
        """``127.0.0.1:port``; published on a fixed port, so that it survives a restart."""
        return self._url.address

    async def start(self) -> None:
        """Start the stopped container again, data included.

        Raises:
            HarnessError: it is running already.
        """
        if await self._status() in {"running", "paused"}:
            raise HarnessError(
                f"start postgres on {self.address}",
                observed="its container is running already",
                next_step="Stop or kill it first, or call restart",
            )
        await self._do("start", self._container.start)
        await self._ready()

    async def stop(self) -> None:
        """Stop the container; nothing happens when it is down already."""
        await self.resume()
        await self._do("stop", lambda: self._container.stop(timeout=_STOP_S))

    async def kill(self) -> None:
        """SIGKILL to the container; nothing happens when it is down already."""
        await self.resume()
        if await self._status() == "running":
            await self._do("kill", self._container.kill)
            await self._do("kill", self._container.wait)

    async def pause(self) -> None:
        """Freeze every process of the container."""
        await self._do("pause", self._container.pause)

    async def resume(self) -> None:
        """Undo :meth:`pause`."""
        if await self._status() == "paused":
            await self._do("resume", self._container.unpause)

    async def _status(self) -> str:
        await self._do("inspect", self._container.reload)
        return str(self._container.status)

    async def _ready(self) -> None:
        async def probe() -> str | None:
            try:
                return await greet(self.address)
            except (OSError, ServerRefusedError):
                return None

        with deadline(f"start postgres on {self.address}", seconds=limits.POSTGRES_READY_S):
            await until(probe)

    async def _do(self, verb: str, call: Callable[[], Any]) -> None:
        import docker.errors

        try:
            await blocking(call)
        except docker.errors.DockerException as error:
            raise HarnessError(
                f"{verb} the postgres container on {self.address}", observed=str(error)
            ) from error


@asynccontextmanager
async def open_container_postgres(
    *, run_id: str, password: str
) -> AsyncIterator[tuple[ContainerPostgres, PostgresUrl]]:
    """Start a container of the official image; remove it, and its volume, at the end.

    Raises:
        Unavailable: testcontainers is not installed, or no Docker engine answers.
    """
    url = PostgresUrl(host="127.0.0.1", port=_free_port(), user="postgres", password=password)
    wrapped = await blocking(_run_container, url, run_id)
    service = ContainerPostgres(wrapped.get_wrapped_container(), url)
    try:
        await service._ready()  # noqa: SLF001 - one concept in two parts
        yield service, url
    finally:
        with trio.CancelScope(shield=True):
            await blocking(lambda: wrapped.stop(force=True, delete_volume=True))


def _free_port() -> int:
    """Docker publishes what it is told and takes no bound socket, so a moment's race is left."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _require_engine() -> None:
    """Connect to the engine's socket once, ourselves: the library leaks its own when it cannot."""
    engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not engine.startswith("unix://"):
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(engine.removeprefix("unix://"))
        except OSError as error:
            raise Unavailable(
                _ACTION,
                observed=f"no Docker engine listens on {engine} ({error.strerror})",
                next_step="Start Docker, or run with --services local",
            ) from error


def _run_container(url: PostgresUrl, run_id: str) -> Any:
    _require_engine()
    try:
        import docker.errors
        from testcontainers.core.container import DockerContainer
    except ImportError as error:
        raise Unavailable(
            _ACTION,
            observed=f"the package {error.name} is not installed",
            next_step="pip install testcontainers, or run with --services local",
        ) from error
    try:
        container = (
            DockerContainer(_IMAGE)
            .with_env("POSTGRES_PASSWORD", url.password)
            .with_command("postgres -c fsync=off -c max_connections=200 -c timezone=UTC")
            .with_kwargs(
                ports={"5432/tcp": ("127.0.0.1", url.port)},
                labels={"staging-harness.run": run_id},
            )
        )
        container.start()
    except (docker.errors.DockerException, OSError) as error:
        raise Unavailable(
            _ACTION,
            observed=f"no Docker engine can run {_IMAGE}: {error}",
            next_step="Start Docker, or run with --services local",
        ) from error
    return container
