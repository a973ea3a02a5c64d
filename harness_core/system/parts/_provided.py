"""Parts that the harness provides itself: servers, and recorders of third parties' APIs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from harness_core.doubles.http import Answer, Recorder, Rule, open_recorder
from harness_core.infrastructure.services import (
    NatsService,
    PostgresService,
    S3Service,
    TemporalService,
    ValkeyService,
    open_nats,
    open_postgres,
    open_s3,
    open_temporal,
    open_valkey,
    postgres_answers,
)
from harness_core.ports import PortLease
from harness_core.system.parts._double_part import DoublePart
from harness_core.system.parts._server_part import ServerPart

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = [
    "nats_part",
    "postgres_part",
    "recorder_part",
    "s3_part",
    "temporal_part",
    "valkey_part",
]


def postgres_part(
    name: str,
    run: Run,
    *,
    evidence: Evidence,
    opener: Callable[[], AbstractAsyncContextManager[PostgresService]] | None = None,
    prepare: Callable[[PostgresService], Awaitable[None]] | None = None,
) -> ServerPart[PostgresService]:
    """A PostgreSQL server.

    Args:
        name: unique in its system.
        run: what it belongs to.
        evidence: keeps its log.
        opener: opens it; a server of the harness on this machine when left out.
        prepare: what the fresh server is given, a database for one.
    """
    return ServerPart(
        name,
        kind="postgres",
        opener=opener or partial(open_postgres, run, evidence=evidence),
        prepare=prepare,
        probe=postgres_answers,
        evidence=evidence,
    )


def s3_part(
    name: str,
    run: Run,
    *,
    evidence: Evidence,
    opener: Callable[[], AbstractAsyncContextManager[S3Service]] | None = None,
    bucket: str = "",
) -> ServerPart[S3Service]:
    """An S3 server, with a bucket when one is named; the rest as :func:`postgres_part`."""

    async def prepare(server: S3Service) -> None:
        if bucket:
            await server.make_bucket(bucket)

    return ServerPart(
        name,
        kind="s3",
        opener=opener or partial(open_s3, run, evidence=evidence),
        prepare=prepare,
        probe=S3Service.buckets,
        evidence=evidence,
    )


def temporal_part(
    name: str,
    run: Run,
    *,
    evidence: Evidence,
    opener: Callable[[], AbstractAsyncContextManager[TemporalService]] | None = None,
) -> ServerPart[TemporalService]:
    """A Temporal server; its namespace is there when it serves."""
    return ServerPart(
        name,
        kind="temporal",
        opener=opener or partial(open_temporal, run, evidence=evidence),
        probe=TemporalService.answers,
        evidence=evidence,
    )


def valkey_part(
    name: str,
    run: Run,
    *,
    evidence: Evidence,
    opener: Callable[[], AbstractAsyncContextManager[ValkeyService]] | None = None,
) -> ServerPart[ValkeyService]:
    """A Valkey server, without a key."""

    async def probe(server: ValkeyService) -> object:
        return await server.command("PING")

    return ServerPart(
        name,
        kind="valkey",
        opener=opener or partial(open_valkey, run, evidence=evidence),
        probe=probe,
        evidence=evidence,
    )


def nats_part(
    name: str,
    run: Run,
    *,
    evidence: Evidence,
    opener: Callable[[], AbstractAsyncContextManager[NatsService]] | None = None,
) -> ServerPart[NatsService]:
    """A NATS server with JetStream, without a stream."""
    return ServerPart(
        name,
        kind="nats",
        opener=opener or partial(open_nats, run, evidence=evidence),
        probe=NatsService.streams,
        evidence=evidence,
    )


def recorder_part(
    name: str,
    *,
    lease: PortLease,
    evidence: Evidence,
    host: str = "",
    answers: Sequence[Mapping[str, Any]] = (),
) -> DoublePart[Recorder]:
    """A recorder that stands for a third party's HTTP API.

    Args:
        name: unique in its system.
        lease: its port.
        evidence: where the requests are written.
        host: ``HOST:PORT`` that callers know it by, besides its address.
        answers: rules, the first match wins: ``path``, ``method``, ``status``, ``json``.
    """
    rules = [*(_rule(row) for row in answers), Rule(answer=Answer(json={}))]

    def opener(port: int) -> AbstractAsyncContextManager[Recorder]:
        hosts = (host,) if host else ()
        return open_recorder(name, evidence=evidence, rules=rules, port=port, hosts=hosts)

    return DoublePart(name, kind="recorder", opener=opener, lease=lease, evidence=evidence)


def _rule(row: Mapping[str, Any]) -> Rule:
    answer = Answer(status=int(row.get("status", 200)), json=row.get("json", {}))
    return Rule(path=str(row.get("path", "*")), method=str(row.get("method", "")), answer=answer)
