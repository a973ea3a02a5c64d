"""A Temporal server as the rest of the harness sees it, whoever provides it.

``local`` and ``container`` run the development server of Temporal's own command line, with its
database in a file: workflows survive a kill. The file is not synced to the disk: what it holds is lost
with the machine, not with the server.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness_core.base import limits
from harness_core.base.bridge import anywhere
from harness_core.base.errors import BadInput
from harness_core.base.machine import find_program
from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._handle import ServiceHandle
from harness_core.infrastructure.services._providers import check_provider, none_with, open_service
from harness_core.infrastructure.services._readiness import Readiness
from harness_core.infrastructure.services._recipe import Recipe, ServerCommand
from harness_core.infrastructure.services._service import Say, Service
from harness_core.infrastructure.services._temporal_cli import describe_namespace

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

#: Where the ``host:port`` of an external server is given.
TEMPORAL_ADDRESS_VARIABLE: Final = "HARNESS_TEMPORAL_ADDRESS"

TEMPORAL_IMAGES: Final = ImageChoice(
    variable="HARNESS_TEMPORAL_IMAGE", prepared=("temporal",), public="temporalio/temporal:1.9.1"
)
_PORT: Final = 7233

#: The development server makes it by itself.
_NAMESPACE: Final = "default"


class TemporalService(ServiceHandle):
    """A Temporal server for tests; a :class:`~harness_core.infrastructure.services.Service`.

    Built only by :func:`open_temporal`.

    Attributes:
        namespace: where workflows are started.
    """

    def __init__(self, service: Service, *, namespace: str, provider: str) -> None:
        super().__init__(service, provider=provider)
        self.namespace = namespace

    @anywhere
    async def answers(self) -> None:
        """One round trip.

        Raises:
            OSError: no server listens.
            TemporalRefusedError: it is no Temporal, or does not serve the namespace.
        """
        await describe_namespace(self.address, self.namespace, program=_program())


def open_temporal(
    run: Run,
    *,
    evidence: Evidence,
    provider: str = "local",
    address: str | None = None,
    namespace: str = _NAMESPACE,
    say: Say = lambda _text: None,
) -> AbstractAsyncContextManager[TemporalService]:
    """Open a Temporal server; it is stopped and removed, with its database, at the end of the block.

    Args:
        run: the run it belongs to and dies with.
        evidence: directory for its log.
        provider: ``local``, ``container`` or ``external``.
        address: ``host:port`` of the server, for the provider ``external`` alone.
        namespace: another one than ``default``, for the provider ``external`` alone.
        say: gets a line for what takes long.

    Raises:
        BadInput: unknown provider, or arguments it does not take.
        Unavailable: the provider cannot work on this machine; names what is missing.
    """
    check_provider(
        "open_temporal",
        provider,
        key="address",
        given=address,
        shown="an address",
        expected="HOST:PORT",
    )
    if provider != "external" and namespace != _NAMESPACE:
        expected = none_with(provider)
        raise BadInput("open_temporal", key="namespace", found=namespace, expected=expected)
    if address is not None and not re.fullmatch(r".+:[0-9]+", address):
        raise BadInput("open_temporal", key="address", found=address, expected="HOST:PORT")

    def handle(server: Service) -> TemporalService:
        return TemporalService(server, namespace=namespace, provider=provider)

    return open_service(
        run,
        _recipe(run, namespace, address or ""),
        handle,
        provider=provider,
        evidence=evidence,
        say=say,
    )


def _recipe(run: Run, namespace: str, address: str) -> Recipe:
    program = _program()

    async def probe(address: str) -> None:
        await describe_namespace(address, namespace, program=program)

    @asynccontextmanager
    async def local(port: int) -> AsyncIterator[ServerCommand]:
        home = run.directory("temporal")
        options = _options(ip="127.0.0.1", port=port, database=str(home / "temporal.db"))
        yield ServerCommand(argv=(str(program), *options), home=home)

    def container(image: str) -> ContainerSpec:
        database = "/tmp/temporal.db"  # noqa: S108 - the container's own
        options = _options(ip="0.0.0.0", port=_PORT, database=database)  # noqa: S104 - inside it
        return ContainerSpec(name="temporal", image=image, port=_PORT, command=options)

    return Recipe(
        name="temporal",
        readiness=Readiness(probe=probe, seconds=limits.TEMPORAL_READY_S),
        local=local,
        images=TEMPORAL_IMAGES,
        container=container,
        external=address,
    )


def _program() -> Path:
    """Server and client in one, so it is needed here whoever provides the server."""
    return find_program("temporal", variable="HARNESS_TEMPORAL", extra="temporal")


def _options(*, ip: str, port: int, database: str) -> tuple[str, ...]:
    words = ("server", "start-dev", "--headless", "--log-level", "warn", "--ip", ip)
    options = ("--port", str(port), "--db-filename", database)
    return (*words, *options, "--sqlite-pragma", "synchronous=off")
