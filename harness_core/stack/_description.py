"""Everything that a user of a running stack needs to reach it, as data that crosses a socket."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Description", "ServiceSeen"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSeen:
    """One service.

    Attributes:
        address: ``host:port`` as tests reach it; empty for one without a port.
        kind: what it is: ``process``, ``container``, or the kind that the harness provides.
        log: how its logs are called in the evidence, without ``-2`` and suffix.
        environment: its variables, as its process has them.
    """

    address: str
    kind: str
    log: str
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A running stack.

    Attributes:
        title: what messages call it.
        driver: ``local`` or ``docker``.
        boot_s: seconds from nothing to the last service that serves.
        evidence: directory of the logs.
        services: by name.
        database_url: of the stack's database, password included; empty without one.
        s3_url: of its S3 server, keys included; empty without one.
        bucket: where objects are looked for unless a test names another bucket.
        gateway_key: what callers of the model gateway present; empty without one.
        gateway_token: of its control API.
    """

    title: str
    driver: str
    boot_s: float
    evidence: Path
    services: Mapping[str, ServiceSeen]
    database_url: str = dataclasses.field(default="", repr=False)
    s3_url: str = dataclasses.field(default="", repr=False)
    bucket: str = ""
    gateway_key: str = dataclasses.field(default="", repr=False)
    gateway_token: str = dataclasses.field(default="", repr=False)

    def as_json(self) -> dict[str, Any]:
        """For a socket; :meth:`from_json` reads it."""
        return {**dataclasses.asdict(self), "evidence": str(self.evidence)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Description:
        """What :meth:`as_json` wrote; other keys are left alone."""
        fields = {each.name: told[each.name] for each in dataclasses.fields(cls)}
        services = {name: ServiceSeen(**row) for name, row in told["services"].items()}
        return cls(**{**fields, "evidence": Path(told["evidence"]), "services": services})

    def gateway(self) -> str:
        """The name of the service that is the model gateway; empty without one."""
        named = (name for name, service in self.services.items() if service.kind == "gateway")
        return next(named, "")
