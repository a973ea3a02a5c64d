"""Provider *container* of PostgreSQL.

The image is the one that ``HARNESS_POSTGRES_IMAGE`` names; else one of ``harness images build``
(with the data directory inside, ready in a third of a second); else the public one, or ours built
where that cannot be pulled. All of them take the same variables. Readiness is observed from
outside: a server that answers a client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from harness_core.base import limits
from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._in_container import (
    ContainerServer,
    open_container_server,
)
from harness_core.infrastructure.services._postgres_protocol import greet
from harness_core.infrastructure.services._postgres_settings import COMMON_SETTINGS
from harness_core.infrastructure.services._postgres_url import PostgresUrl
from harness_core.infrastructure.services._readiness import Readiness
from harness_core.infrastructure.services._service import Say

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["open_container_postgres"]

POSTGRES_IMAGES: Final = ImageChoice(
    variable="HARNESS_POSTGRES_IMAGE",
    prepared=("postgres-baked", "postgres"),
    public="postgres:17.6-bookworm",
)

_PORT: Final = 5432

_READINESS: Final = Readiness(probe=greet, seconds=limits.POSTGRES_READY_S)


@asynccontextmanager
async def open_container_postgres(
    run: Run, *, evidence: Evidence, password: str, settings: Mapping[str, str], say: Say
) -> AsyncIterator[tuple[ContainerServer, PostgresUrl]]:
    """Start a server in a container; remove it, and its volumes, at the end.

    Args:
        run: what it belongs to.
        evidence: directory for its log.
        password: of the superuser.
        settings: additions to, or replacements of, our settings.
        say: told what takes long.

    Raises:
        Unavailable: no engine, no image, no space.
        ChildExited: the container ended while the server started.
    """
    words = [f"{key}={value}" for key, value in {**COMMON_SETTINGS, **settings}.items()]

    def spec(image: str) -> ContainerSpec:
        return ContainerSpec(
            name="postgres",
            image=image,
            port=_PORT,
            command=("postgres", *(part for word in words for part in ("-c", word))),
            env={"POSTGRES_PASSWORD": password},
        )

    async with open_container_server(
        run, spec, images=POSTGRES_IMAGES, readiness=_READINESS, evidence=evidence, say=say
    ) as (server, container):
        url = PostgresUrl(
            host=container.host, port=container.port, user="postgres", password=password
        )
        yield server, url
