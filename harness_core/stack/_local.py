"""Driver *local*: every service of a compose file as a process of this machine, without containers.

What the harness can provide (``x-harness: { service: … }``) comes from ``harness_core.services``,
the model gateway and recorders; the rest are supervised children with a leased port each, and an
environment in which ``name:port`` is where that service is in truth.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from harness_core import limits
from harness_core.bridge import this_loop
from harness_core.db import Database
from harness_core.errors import BadInput
from harness_core.groups import lone_error
from harness_core.http import HttpClient
from harness_core.net import PortLease, lease_port
from harness_core.services import (
    PostgresService,
    S3Service,
    TemporalService,
    open_postgres,
    open_s3,
    open_temporal,
    postgres_answers,
)
from harness_core.stack._boot import boot
from harness_core.stack._compose import Compose, ComposeService, Condition
from harness_core.stack._control import PartsControl
from harness_core.stack._credentials import credentials, database_url
from harness_core.stack._description import Description, ServiceSeen
from harness_core.stack._external import open_external_postgres, open_external_s3
from harness_core.stack._handle import Stack
from harness_core.stack._here import Here
from harness_core.stack._keys import s3_keys
from harness_core.stack._options import StackOptions
from harness_core.stack._part import Part
from harness_core.stack._probe import healthy
from harness_core.stack._process_part import ProcessPart, ProcessPlan
from harness_core.stack._recipe import KINDS
from harness_core.stack._rewrite import Rewriter
from harness_core.stack._server_part import ServerPart

if TYPE_CHECKING:
    from harness_core.evidence import Evidence
    from harness_core.process import Run

__all__ = ["bottom_up", "open_local_stack"]

Say = Callable[[str], None]

#: What a program may need of the machine's own environment when the caller gives no other.
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")

#: A role or database that can be written without quoting; what a compose file says is one.
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*")


@asynccontextmanager
async def open_local_stack(
    run: Run,
    compose: Compose,
    *,
    options: StackOptions,
    evidence: Evidence,
    say: Say,
) -> AsyncIterator[Stack]:
    """Boot a stack as processes; see :func:`harness_core.stack.open_stack`."""
    began = trio.current_time()

    def note(text: str) -> None:
        say(f"{text} ({trio.current_time() - began:.1f} s)")

    async with lone_error(), AsyncExitStack() as stack:
        nursery = await stack.enter_async_context(trio.open_nursery())
        closing = trio.Event()
        stack.callback(closing.set)
        maker = _Maker(
            run=run,
            compose=compose,
            options=options,
            evidence=evidence,
            nursery=nursery,
            closing=closing,
            stack=stack,
            say=note,
        )
        parts = {name: maker.part(service) for name, service in compose.services.items()}
        maker.parts.update(parts)
        stack.push_async_callback(_stop_processes, parts)
        waits = {name: maker.waits(service) for name, service in compose.services.items()}
        await boot(parts, waits, stack=str(compose.path), say=note)
        description = maker.description(boot_s=trio.current_time() - began)
        loop = await stack.enter_async_context(this_loop(f"the stack {description.title}"))
        ordered = {name: parts[name] for name in bottom_up(compose)}
        handle = Stack(description, PartsControl(ordered, loop=loop, say=say))
        stack.push_async_callback(handle.close)
        yield handle


async def _stop_processes(parts: Mapping[str, Part]) -> None:
    """End what the servers serve before the servers; side by side."""
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            for part in parts.values():
                if not isinstance(part, ServerPart):
                    nursery.start_soon(part.stop)


def bottom_up(compose: Compose) -> list[str]:
    """The services in an order in which each comes after those that it waits for."""
    ordered: list[str] = []

    def add(name: str) -> None:
        for other in compose.services[name].depends_on:
            add(other)
        if name not in ordered:
            ordered.append(name)

    for name in compose.services:
        add(name)
    return ordered


class _Maker:
    """Makes the parts of one stack."""

    def __init__(  # noqa: PLR0913 - built in one place
        self,
        *,
        run: Run,
        compose: Compose,
        options: StackOptions,
        evidence: Evidence,
        nursery: trio.Nursery,
        closing: trio.Event,
        stack: AsyncExitStack,
        say: Say,
    ) -> None:
        self.parts: dict[str, Part] = {}
        self._run = run
        self._compose = compose
        self._options = options
        self._evidence = evidence
        self._nursery = nursery
        self._closing = closing
        self._stack = stack
        self._say = say
        self._here = Here(
            run=run,
            options=options,
            evidence=evidence,
            nursery=nursery,
            lease=self._lease,
            data_of=self._data_of,
        )
        self._environments: dict[str, Mapping[str, str]] = {}
        self._data: dict[str, Path] = {}

    def part(self, service: ComposeService) -> Part:
        """The part of one service."""
        makers: Mapping[str, Callable[[ComposeService], Part]] = {
            "": self._process,
            "gateway": self._here.gateway,
            "postgres": self._postgres,
            "recorder": self._here.recorder,
            "s3": self._s3,
            "temporal": self._temporal,
        }
        return makers[service.recipe.service](service)

    def waits(self, service: ComposeService) -> dict[str, Condition]:
        """What it waits for: what the file says, and the servers whose address it must be told."""
        found = dict(service.depends_on)
        told = " ".join([*service.environment.values(), *service.recipe.command])
        for name, part in self.parts.items():
            named = re.search(rf"(?<![\w.-]){re.escape(name)}:\d", told)
            if isinstance(part, ServerPart) and named and name != service.name:
                found[name] = Condition.HEALTHY
        return found

    # --- processes ------------------------------------------------------------------------------

    def _lease(self) -> PortLease:
        return self._stack.enter_context(lease_port())

    def _process(self, service: ComposeService) -> Part:
        lease = self._lease() if service.port else None
        return ProcessPart(
            service.name,
            self._run,
            partial(self._plan, service, lease),
            lease=lease,
            evidence=self._evidence,
        )

    async def _plan(self, service: ComposeService, lease: PortLease | None) -> ProcessPlan:
        name, recipe = service.name, service.recipe
        data = self._data_of(name)
        rewriter = Rewriter(
            self._compose.path,
            ports={each.name: _ports(each) for each in self._compose.services.values()},
            addresses={each: part.address for each, part in self.parts.items()},
        )
        port = lease.port if lease else 0
        argv = recipe.argv(bin=self._options.bin, host="127.0.0.1", port=port, data=str(data))
        key = f"services.{name}"
        own = {
            variable: rewriter.text(
                value.replace("{data}", str(data)), key=f"{key}.environment.{variable}"
            )
            for variable, value in service.environment.items()
        }
        environment = {**self._inherited(), **_private_places(data), **own}
        self._environments[name] = own
        health = None
        if recipe.health and lease is not None:
            client = HttpClient(f"http://127.0.0.1:{port}", name=name)
            health = partial(healthy, client, recipe.health)
        return ProcessPlan(
            name=name,
            argv=[rewriter.text(word, key=f"{key}.x-harness.command") for word in argv],
            environment=environment,
            cwd=data,
            once=service.one_shot,
            health=health,
            ready_s=recipe.ready_s or limits.STACK_READY_S,
            stop_s=limits.STACK_STOP_S,
        )

    def _data_of(self, name: str) -> Path:
        """The directory of a service, the same over its restarts."""
        if name not in self._data:
            self._data[name] = self._run.directory(f"data-{name}")
        return self._data[name]

    def _inherited(self) -> Mapping[str, str]:
        if self._options.environment:
            return self._options.environment
        return {name: os.environ[name] for name in _INHERITED if name in os.environ}

    # --- servers --------------------------------------------------------------------------------

    def _server(
        self,
        service: ComposeService,
        opener: Callable[[], Any],
        *,
        log: str,
        prepare: Callable[[Any], Awaitable[None]],
        probe: Callable[[Any], Awaitable[object]],
    ) -> Part:
        return ServerPart(
            service.name,
            opener,
            nursery=self._nursery,
            closing=self._closing,
            prepare=prepare,
            probe=probe,
            evidence=self._evidence,
            log=log,
        )

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

        return self._server(
            service, opener, log="postgres", prepare=prepare, probe=postgres_answers
        )

    def _s3(self, service: ComposeService) -> Part:
        evidence, provider = self._evidence, self._options.services
        opener: Callable[[], Any] = partial(
            open_s3, self._run, evidence=evidence, provider=provider, keys=s3_keys(service)
        )
        if provider == "external":
            url, bucket = self._options.urls["s3"], service.recipe.bucket
            opener = partial(open_external_s3, self._run, evidence=evidence, url=url, bucket=bucket)

        async def prepare(server: S3Service) -> None:
            if service.recipe.bucket:
                await server.make_bucket(service.recipe.bucket)

        return self._server(service, opener, log="s3", prepare=prepare, probe=S3Service.buckets)

    def _temporal(self, service: ComposeService) -> Part:
        provider = self._options.services
        opener = partial(
            open_temporal,
            self._run,
            evidence=self._evidence,
            provider=provider,
            address=self._options.urls["temporal"] if provider == "external" else None,
        )

        async def prepare(_server: TemporalService) -> None:
            """Its namespace is there when it serves."""

        return self._server(
            service, opener, log="temporal", prepare=prepare, probe=TemporalService.answers
        )

    # --- what it is for its users ---------------------------------------------------------------

    def description(self, *, boot_s: float) -> Description:
        """How the running stack is reached."""
        seen: dict[str, ServiceSeen] = {}
        database = s3_url = bucket = ""
        for name, service in self._compose.services.items():
            part, kind = self.parts[name], service.recipe.service
            log = name
            if isinstance(part, ServerPart):
                log = kind
                if kind == "postgres":
                    database = database_url(part.address, service)
                elif kind == "s3":
                    s3_url, bucket = part.server.url.with_keys, service.recipe.bucket
            seen[name] = ServiceSeen(
                address=part.address,
                kind=kind or "process",
                log=log,
                environment=self._environments.get(name, {}),
            )
        return Description(
            title=self._compose.path.parent.name,
            driver="local",
            boot_s=boot_s,
            evidence=self._evidence.path,
            services=seen,
            database_url=database,
            s3_url=s3_url,
            bucket=bucket,
            gateway_key=self._here.gateway_key,
            gateway_token=self._here.gateway_token,
        )


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
