"""Driver *local*: every service of a compose file as a process of this machine, without containers.

What the harness can provide (``x-harness: { service: … }``) it provides; the rest are supervised
processes with a leased port each, and an environment in which ``name:port`` is where that service is
in truth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness_core.base import limits
from harness_core.base.errors import BadInput
from harness_core.doubles.http import HttpClient
from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.services import (
    PostgresService,
    open_nats,
    open_postgres,
    open_s3,
    open_temporal,
    open_valkey,
)
from harness_core.ports import PortLease, Stage
from harness_core.system.compose._compose import ComposeService
from harness_core.system.compose._credentials import credentials
from harness_core.system.compose._driver import Driver
from harness_core.system.compose._external import open_external_postgres, open_external_s3
from harness_core.system.compose._keys import s3_keys
from harness_core.system.compose._options import usual_environment
from harness_core.system.compose._recipe import KINDS
from harness_core.system.compose._rewrite import Rewriter
from harness_core.system.parts import (
    Condition,
    Part,
    ProcessPart,
    ProcessPlan,
    ServerPart,
    healthy,
    nats_part,
    postgres_part,
    s3_part,
    temporal_part,
    valkey_part,
)

__all__ = ["LocalDriver"]

#: A role or database that can be written without quoting; what a compose file says is one.
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*")


class LocalDriver(Driver):
    """Every part as a process of this machine, or a server of the harness."""

    name = "local"

    async def parts(self) -> Mapping[str, Part]:
        """Make every part, and start none."""
        makers: Mapping[str, Callable[[ComposeService], Part]] = {
            "": self._process,
            "gateway": self.gateway,
            "postgres": self._postgres,
            "recorder": self.recorder,
            "s3": self._s3,
            "temporal": self._temporal,
            "valkey": self._valkey,
            "nats": self._nats,
        }
        self._parts = {
            name: makers[service.recipe.service](service)
            for name, service in self._compose.services.items()
        }
        return self._parts

    def waits(self) -> Mapping[str, Mapping[str, Condition]]:
        """What the file says, and the servers whose address a part must know."""
        return {
            name: {**service.depends_on, **dict.fromkeys(self._named(service), Condition.HEALTHY)}
            for name, service in self._compose.services.items()
        }

    def _named(self, service: ComposeService) -> list[str]:
        return [
            name
            for name, part in self._parts.items()
            if isinstance(part, ServerPart) and name != service.name and service.names(name)
        ]

    def s3_url(self, service: ComposeService, part: Part) -> str:
        """The URL of a running S3 server, keys included."""
        del service
        assert isinstance(part, ServerPart)
        url: str = part.held.url.with_keys
        return url

    # --- processes ------------------------------------------------------------------------------

    def _process(self, service: ComposeService) -> Part:
        lease = self.lease() if service.port else None
        return ProcessPart(
            service.name,
            self._run,
            partial(self._plan, service, lease),
            leases=(lease,) if lease else (),
            evidence=self._evidence,
            once=service.one_shot,
        )

    def _plan(self, service: ComposeService, lease: PortLease | None) -> ProcessPlan:
        name, recipe = service.name, service.recipe
        data = self.data_of(name)
        rewriter = Rewriter(
            self._compose.path,
            ports={each.name: _ports(each) for each in self._compose.services.values()},
            addresses={each: part.address for each, part in self._parts.items()},
        )
        port = lease.port if lease else 0
        fields: dict[str, str | int] = {
            "bin": self._options.bin,
            "data": str(data),
            "here": str(self._compose.path.parent.resolve()),
            "host": "127.0.0.1",
            "port": port,
        }
        argv = recipe.argv(**fields)
        key = f"services.{name}"
        theirs = {
            variable: value.replace("{data}", str(data))
            for variable, value in service.environment.items()
        }
        own = {
            variable: rewriter.text(value, key=f"{key}.environment.{variable}")
            for variable, value in (theirs | recipe.variables(self._address, **fields)).items()
        }
        ready_s = recipe.ready_s or limits.STACK_READY_S
        stages: tuple[Stage, ...] = ()
        if recipe.health and lease is not None:
            client = HttpClient(f"http://127.0.0.1:{port}", name=name)
            probe = partial(healthy, client, recipe.health)
            stages = (Stage(name="health", probe=probe, seconds=ready_s),)
        inherited = self._options.environment or usual_environment()
        return ProcessPlan(
            argv=[rewriter.text(word, key=f"{key}.x-harness.command") for word in argv],
            environment={**inherited, **_private_places(data), **own},
            own=own,
            cwd=self._folder(service) if recipe.cwd else data,
            stages=stages,
            ready_s=ready_s,
        )

    def _folder(self, service: ComposeService) -> Path:
        folder = (self._compose.path.parent / service.recipe.cwd).resolve()
        if not folder.is_dir():
            key, expected = f"services.{service.name}.x-harness.cwd", "a folder beside the file"
            raise BadInput(self._compose.path, key=key, found=service.recipe.cwd, expected=expected)
        return folder

    def _address(self, name: str) -> str:
        if name not in self._parts:
            expected = f"a service of it: {', '.join(self._parts)}"
            raise BadInput(self._compose.path, key="x-harness", found=name, expected=expected)
        return self._parts[name].address

    # --- what the harness provides ---------------------------------------------------------------

    def _postgres(self, service: ComposeService) -> Part:
        evidence, provider = self._evidence, self._options.services
        opener: Callable[[], Any] = partial(
            open_postgres, self._run, evidence=evidence, provider=provider
        )
        if provider == "external":
            url, database = self._options.urls["postgres"], credentials(service)[2]
            opener = partial(
                open_external_postgres, self._run, evidence=evidence, url=url, database=database
            )

        async def prepare(server: PostgresService) -> None:
            if provider != "external":
                await _make_database(server, service, path=self._compose.path)

        return postgres_part(
            service.name, self._run, evidence=evidence, opener=opener, prepare=prepare
        )

    def _s3(self, service: ComposeService) -> Part:
        evidence, provider, bucket = self._evidence, self._options.services, service.recipe.bucket
        opener: Callable[[], Any] = partial(
            open_s3, self._run, evidence=evidence, provider=provider, keys=s3_keys(service)
        )
        if provider == "external":
            url = self._options.urls["s3"]
            opener = partial(open_external_s3, self._run, evidence=evidence, url=url, bucket=bucket)
        return s3_part(service.name, self._run, evidence=evidence, opener=opener, bucket=bucket)

    def _temporal(self, service: ComposeService) -> Part:
        evidence, provider = self._evidence, self._options.services
        opener = partial(
            open_temporal,
            self._run,
            evidence=evidence,
            provider=provider,
            address=self._options.urls["temporal"] if provider == "external" else None,
        )
        return temporal_part(service.name, self._run, evidence=evidence, opener=opener)

    def _valkey(self, service: ComposeService) -> Part:
        evidence, provider = self._evidence, self._options.services
        opener = partial(
            open_valkey,
            self._run,
            evidence=evidence,
            provider=provider,
            url=self._options.urls["valkey"] if provider == "external" else None,
        )
        return valkey_part(service.name, self._run, evidence=evidence, opener=opener)

    def _nats(self, service: ComposeService) -> Part:
        evidence, provider = self._evidence, self._options.services
        opener = partial(
            open_nats,
            self._run,
            evidence=evidence,
            provider=provider,
            address=self._options.urls["nats"] if provider == "external" else None,
        )
        return nats_part(service.name, self._run, evidence=evidence, opener=opener)


def _ports(service: ComposeService) -> tuple[int, ...]:
    """Its ports inside; those of what the harness provides need not be written down."""
    usual = KINDS.get(service.recipe.service)
    return service.ports or ((usual,) if usual else ())


def _private_places(data: Path) -> dict[str, str]:
    """A home and a place for temporary files that go with the run."""
    home, temporary = data / "home", data / "t"
    home.mkdir(exist_ok=True)
    temporary.mkdir(exist_ok=True)
    return {"HOME": str(home), "TMPDIR": str(temporary)}


async def _make_database(server: PostgresService, service: ComposeService, *, path: Path) -> None:
    """The role and the database that the image of PostgreSQL would have made."""
    user, password, database = credentials(service)
    for key, word in (("POSTGRES_USER", user), ("POSTGRES_DB", database)):
        if not _PLAIN.fullmatch(word):
            raise BadInput(
                path,
                key=f"services.{service.name}.environment.{key}",
                found=word,
                expected=f"a name like {_PLAIN.pattern}",
            )
    secret = password.replace("'", "''")
    async with Database(server.url()) as admin:
        verb = "alter" if user == "postgres" else "create"
        await admin.execute(f"{verb} role {user} login superuser password '{secret}'")
        if database != "postgres":
            await admin.execute(f"create database {database} owner {user}")
