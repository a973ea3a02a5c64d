"""A running stack: a system of parts that a compose file describes, with its rows and objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness_core.base.errors import BadInput, HarnessError
from harness_core.doubles.http import HttpClient, Recorder
from harness_core.doubles.model import Gateway
from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.services import (
    S3Object,
    S3Summary,
    S3Url,
    fetch_object,
    list_objects,
    parse_s3_url,
    remove_object,
)
from harness_core.system.parts import Booted, DoublePart, Parts
from harness_core.system.parts.gateway import GatewayPart

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence

__all__ = ["Access", "Stack"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the servers of a stack are reached.

    Attributes:
        driver: ``local`` or ``docker``.
        database_url: of its database, password included; empty without one.
        s3_url: of its S3 server, keys included; empty without one.
        bucket: where objects are looked for unless a test names another bucket.
    """

    driver: str
    database_url: str = dataclasses.field(default="", repr=False)
    s3_url: str = dataclasses.field(default="", repr=False)
    bucket: str = ""


class Stack(Parts):
    """A running stack; built by :func:`open_stack`.

    Args:
        booted: what was started.
        access: see below.
        names: what tests call a service → its own name, where that is another.

    Attributes:
        access: how its servers are reached.
        database: its database, or ``None``.
    """

    def __init__(
        self, booted: Booted, access: Access, *, names: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(booted, names=names)
        self.access = access
        self.database = Database(access.database_url) if access.database_url else None

    def client(
        self,
        service: str,
        *,
        headers: Mapping[str, str] | None = None,
        evidence: Evidence | None = None,
    ) -> HttpClient:
        """A client of one service that writes every exchange into ``evidence``."""
        return HttpClient(self.url(service), name=service, headers=headers, evidence=evidence)

    @property
    def gateway(self) -> Gateway:
        """Its model gateway; ``gateway.client`` steers and reads it.

        Raises:
            HarnessError: the stack has none.
        """
        for part in map(self.__getitem__, self.names):
            if isinstance(part, GatewayPart):
                return part.gateway
        raise HarnessError("steer the model", observed=f"{self.title} has no model gateway")

    def recorder(self, service: str) -> Recorder:
        """What stands in for a third party: its whole requests, and rules that bring trouble.

        Each time that it is started it is another one.

        Raises:
            BadInput: the service is no recorder.
        """
        part = self[service]
        if not isinstance(part, DoublePart) or part.kind != "recorder":
            raise BadInput(self.title, key="service", found=service, expected="a recorder")
        held: Recorder = part.held
        return held

    # --- what it left ---------------------------------------------------------------------------

    async def rows(
        self, sql: str, params: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Rows of the stack's database: see :meth:`harness_core.infrastructure.databases.Database.rows`.

        Raises:
            HarnessError: the stack has no database, or it cannot be reached.
        """
        if self.database is None:
            raise HarnessError("read rows", observed="the stack has no database")
        return await self.database.rows(sql, params)

    async def objects(self, prefix: str = "", *, bucket: str = "") -> tuple[S3Summary, ...]:
        """What lies in a bucket, by key.

        Raises:
            OSError: the S3 server does not answer.
            HarnessError: the stack has none, or it refuses.
        """
        url, name = self._bucket(bucket)
        return await list_objects(url, name, prefix=prefix)

    async def object(self, key: str, *, bucket: str = "") -> S3Object:
        """One object: its bytes, etag, metadata and tags.

        Raises:
            OSError: the S3 server does not answer.
            S3RefusedError: there is no such object; ``code`` says so.
        """
        url, name = self._bucket(bucket)
        return await fetch_object(url, name, key)

    async def remove_object(self, key: str, *, bucket: str = "") -> None:
        """Lose an object, as a store does that lost a disk.

        Raises:
            OSError: the S3 server does not answer.
            HarnessError: the stack has none, or it refuses.
        """
        url, name = self._bucket(bucket)
        await remove_object(url, name, key)

    def _bucket(self, bucket: str) -> tuple[S3Url, str]:
        if not self.access.s3_url:
            raise HarnessError("read objects", observed="the stack has no S3 server")
        name = bucket or self.access.bucket
        if not name:
            expected = "the name of one: the compose file gives its S3 server no `bucket`"
            raise BadInput(self.title, key="bucket", found=bucket, expected=expected)
        return parse_s3_url(self.access.s3_url, where=self.title), name

    async def close(self) -> None:
        """Close the connection to its database."""
        if self.database is not None:
            await self.database.close()
