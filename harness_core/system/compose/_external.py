"""Servers outside of the run under a stack: their credentials, and names of this run on them.

A compose file that can be run so takes user, password, database, keys and bucket from variables:
``${POSTGRES_USER:-shop}``, ``POSTGRES_PASSWORD``, ``POSTGRES_DB``, ``S3_ACCESS_KEY``,
``S3_SECRET_KEY``, ``S3_BUCKET``, ``TASK_QUEUE``. What they fall back to is what a server of our own is given.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from harness_core.infrastructure.databases import create_database
from harness_core.infrastructure.services import (
    PostgresService,
    S3Service,
    name_bucket,
    open_postgres,
    open_s3,
    parse_postgres_url,
    parse_s3_url,
    remove_bucket,
)
from harness_core.system.compose._compose import Compose
from harness_core.system.compose._credentials import credentials

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["external_variables", "open_external_postgres", "open_external_s3"]


def external_variables(run: Run, compose: Compose, urls: Mapping[str, str]) -> dict[str, str]:
    """What a compose file is to be read with so that it uses servers outside of the run.

    Args:
        run: whose id is part of every name on them.
        compose: the file as it is read without.
        urls: kind of server → its URL.
    """
    found: dict[str, str] = {}
    for service in compose.of_kind("postgres"):
        server = parse_postgres_url(urls["postgres"], where="the external postgres")
        found |= {"POSTGRES_USER": server.user, "POSTGRES_PASSWORD": server.password}
        found["POSTGRES_DB"] = f"hs_{run.id}_{credentials(service)[2]}"
    for service in compose.of_kind("s3"):
        keys = parse_s3_url(urls["s3"], where="the external s3")
        found |= {"S3_ACCESS_KEY": keys.access_key, "S3_SECRET_KEY": keys.secret_key}
        found["S3_BUCKET"] = name_bucket(service.recipe.bucket, run_id=run.id)
    if compose.of_kind("temporal"):
        found["TASK_QUEUE"] = f"hs-{run.id}"  # another run's workers must not take this one's work
    return found


@asynccontextmanager
async def open_external_postgres(
    run: Run, *, evidence: Evidence, url: str, database: str
) -> AsyncIterator[PostgresService]:
    """The server, with a database of this run on it, which is dropped at the end."""
    name = database.removeprefix(f"hs_{run.id}_")
    async with (
        open_postgres(run, evidence=evidence, provider="external", url=url) as server,
        create_database(server, name, run=run),
    ):
        yield server


@asynccontextmanager
async def open_external_s3(
    run: Run, *, evidence: Evidence, url: str, bucket: str
) -> AsyncIterator[S3Service]:
    """The server, with a bucket of this run on it, which is removed at the end."""
    async with open_s3(run, evidence=evidence, provider="external", url=url) as server:
        # Before the product can make it: whoever sweeps after this run must know where to look.
        if bucket:
            run.ledger.record("bucket", server=server.address, run=run.id, bucket=bucket)
        try:
            yield server
        finally:
            with trio.CancelScope(shield=True):
                if bucket and bucket in await server.buckets():
                    await remove_bucket(server.url, bucket)
