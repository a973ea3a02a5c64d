"""PostgreSQL as the rest of the harness sees it, whoever provides it.

In a container it runs the image that ``HARNESS_POSTGRES_IMAGE`` names; else one of ``harness images
build`` (with the data directory inside, ready in a third of a second); else the public one, or ours
built where that cannot be pulled. All of them take the same variables.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Final

from harness_core.base import limits
from harness_core.base.errors import BadInput
from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._as_child import ChildServer
from harness_core.infrastructure.services._handle import ServiceHandle
from harness_core.infrastructure.services._postgres_local import local_postgres
from harness_core.infrastructure.services._postgres_protocol import ServerRefusedError, greet
from harness_core.infrastructure.services._postgres_settings import (
    COMMON_SETTINGS,
    settings_from_environment,
)
from harness_core.infrastructure.services._postgres_url import PostgresUrl, parse_postgres_url
from harness_core.infrastructure.services._providers import check_provider, open_service
from harness_core.infrastructure.services._readiness import Readiness, split_address
from harness_core.infrastructure.services._recipe import Recipe
from harness_core.infrastructure.services._service import Say, Service
from harness_core.process import memory_root

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

POSTGRES_IMAGES: Final = ImageChoice(
    variable="HARNESS_POSTGRES_IMAGE",
    prepared=("postgres-baked", "postgres"),
    public="postgres:17.6-bookworm",
)

_PORT: Final = 5432

#: Shorter passwords are words; inside a URL they are redacted by their place.
_REDACTABLE: Final = 6

#: SQLSTATEs of a server that is there and cannot serve: starting, stopping, crashed.
_UNABLE: Final = ("57P01", "57P02", "57P03")


class PostgresService(ServiceHandle):
    """A PostgreSQL server for tests; a :class:`~harness_core.infrastructure.services.Service`.

    Built only by :func:`open_postgres`.

    Attributes:
        provider: ``"local"``, ``"container"`` or ``"external"``.
        in_memory: its data lies in memory, so copying files is the fastest way to clone.
    """

    def __init__(
        self, service: Service, url: PostgresUrl, *, provider: str, in_memory: bool
    ) -> None:
        super().__init__(service, provider=provider)
        self._url = url
        self.in_memory = in_memory

    def url(self, database: str = "postgres") -> str:
        """The URL of one database, password included: never print it unredacted."""
        return self._url.database(database)


def open_postgres(
    run: Run,
    *,
    evidence: Evidence,
    provider: str = "local",
    url: str | None = None,
    settings: Mapping[str, str] | None = None,
    say: Say = lambda _text: None,
) -> AbstractAsyncContextManager[PostgresService]:
    """Open a PostgreSQL server; it is stopped and removed at the end of the block.

    Args:
        run: the run it belongs to and dies with.
        evidence: directory for its log and settings.
        provider: ``local``, ``container`` or ``external``.
        url: of the server, for the provider ``external`` alone.
        settings: changes to the server's settings, and to what ``HARNESS_POSTGRES_SETTINGS``
            names; not for the provider ``external``.
        say: gets a line for what takes long: an image that is pulled or built.

    Raises:
        BadInput: unknown provider, or arguments it does not take.
        Unavailable: the provider cannot work on this machine; names what is missing.
    """
    expected = "the URL of a server, postgresql://USER:PASSWORD@HOST:PORT/"
    check_provider(
        "open_postgres", provider, key="url", given=url, shown="a URL", expected=expected
    )
    everything = {**settings_from_environment(), **(settings or {})}
    if provider == "external" and everything:
        raise BadInput(
            "open_postgres",
            key="settings",
            found=sorted(everything),
            expected=f"none with the provider {provider}",
        )
    if url is not None:
        known = parse_postgres_url(url, where="open_postgres")
    else:
        password = secrets.token_hex(16)
        known = PostgresUrl(host="", port=_PORT, user="postgres", password=password)
    if len(known.password) >= _REDACTABLE:
        evidence.redactor.add(known.password)

    def handle(server: Service) -> PostgresService:
        host, port = split_address(server.address)
        return PostgresService(
            server,
            dataclasses.replace(known, host=host, port=port),
            provider=provider,
            in_memory=isinstance(server, ChildServer) and memory_root() in server.home.parents,
        )

    words = [f"{key}={value}" for key, value in {**COMMON_SETTINGS, **everything}.items()]

    def container(image: str) -> ContainerSpec:
        return ContainerSpec(
            name="postgres",
            image=image,
            port=_PORT,
            command=("postgres", *(part for word in words for part in ("-c", word))),
            env={"POSTGRES_PASSWORD": known.password},
        )

    recipe = Recipe(
        name="postgres",
        readiness=Readiness(
            probe=_is_there if provider == "external" else greet, seconds=limits.POSTGRES_READY_S
        ),
        local=partial(
            local_postgres,
            run,
            evidence=evidence,
            password=known.password,
            settings=everything,
        ),
        images=POSTGRES_IMAGES,
        container=container,
        external=known.address,
    )
    return open_service(
        run,
        recipe,
        handle,
        provider=provider,
        evidence=evidence,
        say=say,
    )


async def _is_there(address: str) -> None:
    """Refusing us without TLS or without that user proves the server; connecting is for psycopg."""
    try:
        await greet(address)
    except ServerRefusedError as refusal:
        if refusal.sqlstate in _UNABLE:
            raise


async def postgres_answers(service: Service) -> str:
    """Ask the server for its first word: one round trip, without a password.

    Raises:
        OSError: no server listens there.
    """
    return await greet(service.address)
