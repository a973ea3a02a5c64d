"""PostgreSQL as the rest of the harness sees it, whoever provides it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final

from harness_core.base.errors import BadInput
from harness_core.infrastructure.services._handle import ServiceHandle, opened_here
from harness_core.infrastructure.services._postgres_container import open_container_postgres
from harness_core.infrastructure.services._postgres_external import open_external_postgres
from harness_core.infrastructure.services._postgres_local import open_local_postgres
from harness_core.infrastructure.services._postgres_protocol import greet
from harness_core.infrastructure.services._postgres_settings import settings_from_environment
from harness_core.infrastructure.services._postgres_url import PostgresUrl, parse_postgres_url
from harness_core.infrastructure.services._service import Say, Service

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["PROVIDERS", "PostgresService", "open_postgres", "postgres_answers"]


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


Opener = Callable[..., AbstractAsyncContextManager[PostgresService]]


@asynccontextmanager
async def _open_local(
    run: Run,
    *,
    evidence: Evidence,
    url: str | None,
    settings: Mapping[str, str],
    say: Say,  # noqa: ARG001 - the shape of all providers
) -> AsyncIterator[PostgresService]:
    _refuse_url(url, "local")
    async with open_local_postgres(run, evidence=evidence, settings=settings) as server:
        parts = PostgresUrl(
            host="127.0.0.1", port=server.port, user="postgres", password=server.password
        )
        yield PostgresService(server, parts, provider="local", in_memory=server.in_memory)


@asynccontextmanager
async def _open_container(
    run: Run, *, evidence: Evidence, url: str | None, settings: Mapping[str, str], say: Say
) -> AsyncIterator[PostgresService]:
    _refuse_url(url, "container")
    password = secrets.token_hex(16)
    evidence.redactor.add(password)
    async with open_container_postgres(
        run, evidence=evidence, password=password, settings=settings, say=say
    ) as (server, parts):
        yield PostgresService(server, parts, provider="container", in_memory=False)


@asynccontextmanager
async def _open_external(
    run: Run,  # noqa: ARG001 - the shape of all providers
    *,
    evidence: Evidence,
    url: str | None,
    settings: Mapping[str, str],
    say: Say,  # noqa: ARG001
) -> AsyncIterator[PostgresService]:
    _refuse_settings(settings, "external")
    if not url:
        raise BadInput(
            "open_postgres",
            key="url",
            found=url,
            expected="the URL of a server, postgresql://USER:PASSWORD@HOST:PORT/",
        )
    parts = parse_postgres_url(url, where="open_postgres")
    if len(parts.password) >= _REDACTABLE:
        evidence.redactor.add(parts.password)
    async with open_external_postgres(parts) as server:
        yield PostgresService(server, parts, provider="external", in_memory=False)


#: Shorter passwords are words; inside a URL they are redacted by their place.
_REDACTABLE: Final = 6

#: A new provider is one row.
PROVIDERS: Final[Mapping[str, Opener]] = {
    "container": _open_container,
    "external": _open_external,
    "local": _open_local,
}


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
        provider: a key of :data:`PROVIDERS`.
        url: of the server, for the provider ``external`` alone.
        settings: changes to the server's settings, and to what ``HARNESS_POSTGRES_SETTINGS``
            names; not for the provider ``external``.
        say: told what takes long: an image that is pulled or built.

    Raises:
        BadInput: unknown provider, or arguments it does not take.
        Unavailable: the provider cannot work on this machine; says what is missing.
    """
    opener = PROVIDERS.get(provider)
    if opener is None:
        raise BadInput(
            "open_postgres",
            key="provider",
            found=provider,
            expected=f"one of {', '.join(sorted(PROVIDERS))}",
        )
    everything = {**settings_from_environment(), **(settings or {})}
    return opened_here(opener(run, evidence=evidence, url=url, settings=everything, say=say))


async def postgres_answers(service: Service) -> str:
    """Ask the server for its first word: the ``ask`` of ``check_service`` for PostgreSQL.

    Raises:
        OSError: nobody listens there.
    """
    return await greet(service.address)


def _refuse_url(url: str | None, provider: str) -> None:
    if url is not None:
        raise BadInput(
            "open_postgres",
            key="url",
            found="a URL",
            expected=f"none with the provider {provider}, which starts a server of its own",
        )


def _refuse_settings(settings: Mapping[str, str], provider: str) -> None:
    if settings:
        raise BadInput(
            "open_postgres",
            key="settings",
            found=sorted(settings),
            expected=f"none with the provider {provider}",
        )
