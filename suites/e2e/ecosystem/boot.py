"""The one adapter of this suite: boots a butler ecosystem from nothing and hands out its handles.

PostgreSQL, the model gateway and a collector of spans start together; every butler of the roster gets
an empty database of its own and a leased port; then all daemons start in parallel, migrate their
databases themselves and are waited for on what can be seen from outside (port, owner of the port, SSE
headers, ``status`` over MCP, a row in the registry).
"""

from __future__ import annotations

import dataclasses
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    suppress,
)
from functools import partial
from pathlib import Path
from typing import Final

import trio

from harness_core.base.errors import BadInput, NotReady
from harness_core.base.evidence import Evidence
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Gateway
from harness_core.doubles.telemetry import Collector, open_collector
from harness_core.infrastructure.databases import (
    POSTGRES_URL_VARIABLE,
    Database,
    create_database,
    left_databases,
)
from harness_core.infrastructure.services import (
    PostgresService,
    external_address,
    open_postgres,
)
from harness_core.ports import PortLease, Stage, lease_port
from harness_core.process import Run
from harness_core.system.parts import (
    DoublePart,
    ProcessPart,
    ProcessPlan,
    open_parts,
    postgres_part,
)
from harness_core.system.parts.gateway import GatewayPart
from harness_core.system.staging import Options
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.addresses import database_fields, lease_ports
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.containers import container_starter
from suites.e2e.ecosystem.dialect import Dialect, SpokenTools, dialect_of
from suites.e2e.ecosystem.handle import ALL_BUTLERS, REGISTERS, REHEARSED, Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.ecosystem.relations import read_as_the_contract
from suites.e2e.ecosystem.roster import ButlerConfig, read_roster
from suites.e2e.ecosystem.subject_file import OWN_PROCESS, tables_of
from suites.e2e.ecosystem.tools import Tools, tools_of
from suites.e2e.worlds.everyday import REHEARSALS
from suites.e2e.worlds.zones import zone_variable

__all__ = ["Say", "link_butlers", "open_ecosystem", "roster_directory"]

#: Parts that boot at a time. Each start has a deadline of its own, and with 48 of them on two cores
#: the last would be late for no fault of its own; a household's six start together all the same.
_BOOTING: Final = max(8, 4 * (os.cpu_count() or 1))

#: Start of a daemon, migrations included. Slowest seen, six in containers at once on 2 cores with a
#: load of 30: 52 s (a calm machine boots all six within 5 s); doubled.
_BOOT_S: Final = 105.0

#: A butler drains its sessions for up to 30 s before it ends (contract, ``shutdown()``).
_STOP_S: Final = 40.0

#: All butlers in the registry, once all of them serve.
_REGISTER_S: Final = 15.0

#: Gets a line for each step of a boot.
Say = Callable[[str], None]


def roster_directory(subject: Subject) -> Path:
    """Where the subject keeps its butlers."""
    return subject.resolve(tables_of(subject).roster.directory)


def link_butlers(subject: Subject, roster: Path, names: Iterable[str]) -> None:
    """Make a roster of some butlers.

    Their folders are links to those of the product: nothing writes to them, and what their code does is
    seen by whoever measures the product's.

    Args:
        subject: whose butlers.
        roster: a directory that holds none of them; it is made.
        names: of the butlers.
    """
    roster.mkdir(parents=True, exist_ok=True)
    for name in names:
        (roster / name).symlink_to(roster_directory(subject).resolve() / name)


@asynccontextmanager
async def open_ecosystem(
    run: Run,
    subject: Subject,
    *,
    evidence: Evidence,
    options: Options = Options(),  # noqa: B008 - frozen
    roster: Path | None = None,
    environment: Mapping[str, str] | None = None,
    say: Say = lambda _text: None,
) -> AsyncIterator[Ecosystem]:
    """Boot every butler of a roster from nothing; take everything down at the end of the block.

    The suite's environment (``suite.toml``), for its tests and for ``harness up e2e``.

    Args:
        run: the run it belongs to.
        subject: how to start one butler.
        evidence: directory for the logs of all processes.
        options: where PostgreSQL comes from, and how the model answers.
        roster: a roster other than the subject's own.
        environment: more environment for every butler.
        say: gets a line for each step of the boot.

    Raises:
        BadInput: a malformed roster or subject file.
        HarnessError: something did not start; the first stage that failed, with its log.
    """
    directory = roster or roster_directory(subject)
    configs = read_roster(directory)
    if "switchboard" not in configs:
        raise BadInput(
            directory,
            found=f"butlers {', '.join(configs)}",
            expected="a butler named 'switchboard', where messages come in",
        )
    # A secret of ours in every butler's environment: wherever else it is found, it was leaked.
    canary = f"canary-{secrets.token_hex(12)}"
    evidence.redactor.add(canary)
    tables = tables_of(subject)
    external = None
    if options.services == "external":
        external = external_address("postgres", variable=POSTGRES_URL_VARIABLE)
    with ExitStack() as leases:
        ports = lease_ports(subject, configs, leases=leases)
        databases: dict[str, Database] = {}
        postgres = postgres_part(
            "postgres",
            run,
            evidence=evidence,
            opener=partial(
                _open_server,
                open_postgres(
                    run,
                    evidence=evidence,
                    provider=options.services,
                    url=external,
                    say=say,
                ),
                run=run,
                configs=configs,
                databases=databases,
            ),
        )
        gateway = GatewayPart(
            "gateway",
            run,
            lease=leases.enter_context(lease_port()),
            evidence=evidence,
            mode=options.llm,
            budget_usd=options.budget_usd,
            upstream=options.llm_upstream,
            cassette=options.llm_cassette,
            form=subject.path if tables.model else None,
        )
        collector = DoublePart(
            "otlp",
            kind="collector",
            opener=lambda port: open_collector(evidence=evidence, port=port),
            lease=leases.enter_context(lease_port()),
            evidence=evidence,
        )
        recipes = _Recipes(
            run=run,
            subject=subject,
            configs=configs,
            ports=ports,
            databases=databases,
            gateway=gateway.gateway,
            collector=collector,
            # Twice: a session may be given what its program reads, by whole names.
            more={
                "HARNESS_CANARY": canary,
                "ANTHROPIC_HARNESS_CANARY": canary,
                **(environment or {}),
            },
        )
        starter = await container_starter(
            run, subject, port_of=lambda name: ports[name].port, roster=directory, say=say
        )
        names = sorted(configs, key=lambda name: name != "switchboard")
        served = {ALL_BUTLERS: names} if tables.one_process else {name: [name] for name in names}
        processes = {
            name: ProcessPart(
                name,
                run,
                partial(recipes.plan, butlers),
                leases=[ports[butler] for butler in butlers],
                evidence=evidence,
                starter=starter,
            )
            for name, butlers in served.items()
        }
        async with open_parts(
            [postgres, gateway, collector, *processes.values()],
            dict.fromkeys(processes, ("postgres", "gateway", "otlp")),
            title=subject.name,
            evidence=evidence,
            at_once=_BOOTING,
            say=say,
        ) as parts:
            ecosystem = Ecosystem(
                butlers={
                    butler: Butler(
                        config=configs[butler],
                        port=ports[butler].port,
                        client=recipes.tools(butler),
                        database=databases[butler],
                        command=recipes.command(butler),
                        environment=recipes.environment(butler),
                        folder=recipes.folder(butler),
                        parts=parts,
                        process=processes[name],
                        run=run,
                        shared=_shared(subject) if tables.one_process else "",
                    )
                    for name, butlers in served.items()
                    for butler in butlers
                },
                parts=parts,
                gateway=gateway.gateway,
                postgres=postgres.held,
                collector=collector.held,
                subject=subject,
                evidence=evidence,
            )
            for name, butlers in served.items():
                processes[name].urls = {"database": databases[butlers[0]].url}
            for butler in ecosystem.butlers.values():
                await read_as_the_contract(subject, butler.name, butler.database)
            if REGISTERS in subject.capabilities:
                began = trio.current_time()
                ecosystem.unregistered = await _unregistered(ecosystem)
                ecosystem.boot_s += trio.current_time() - began
                registered = len(configs) - len(ecosystem.unregistered)
                say(f"{registered} butlers registered ({ecosystem.boot_s:.1f} s)")
            if ecosystem.gateway.mode == REHEARSED:
                await ecosystem.gateway.client.rehearse(*REHEARSALS)
            yield ecosystem


@asynccontextmanager
async def _open_server(
    opening: AbstractAsyncContextManager[PostgresService],
    *,
    run: Run,
    configs: Mapping[str, ButlerConfig],
    databases: dict[str, Database],
) -> AsyncIterator[PostgresService]:
    """A server with an empty database for each butler, which is put into ``databases``."""
    names = [config.database for config in configs.values()]
    async with opening as server, AsyncExitStack() as stack:
        for name, config in configs.items():
            creating = create_database(server, config.database, run=run)
            databases[name] = await stack.enter_async_context(creating)
        stack.push_async_callback(left_databases, server, run=run, known=names)
        yield server


def _shared(subject: Subject) -> str:
    return f"{subject.name} has no capability {OWN_PROCESS!r}: one process serves every butler"


@dataclasses.dataclass(kw_only=True)
class _Recipes:
    """How each butler is started, as the subject file says.

    Attributes:
        run: what they belong to.
        subject: what is tested.
        configs: the butlers, by name.
        ports: where each is to listen.
        databases: the database of each, once there is a server.
        gateway: the model gateway they are given.
        collector: where they send their spans.
        more: further environment of each.
        environments: the environment of each that was asked for.
    """

    run: Run
    subject: Subject
    configs: Mapping[str, ButlerConfig]
    ports: Mapping[str, PortLease]
    databases: Mapping[str, Database]
    gateway: Gateway
    collector: DoublePart[Collector]
    more: Mapping[str, str]
    environments: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)

    def plan(self, butlers: Sequence[str]) -> ProcessPlan:
        """What runs in one process that serves these butlers."""
        together: dict[str, str] = {}
        for butler in butlers:
            together |= self.environment(butler)
        return ProcessPlan(
            argv=self.command(butlers[0]),
            environment=together,
            stages=[stage for butler in butlers for stage in _stages(butler, self.tools(butler))],
            ready_s=_BOOT_S,
            stop_s=_STOP_S,
            cwd=self.folder(butlers[0]),
        )

    def tools(self, name: str) -> Tools:
        """What calls the tools of a butler."""
        tools = tools_of(self.subject, name=name, port=self.ports[name].port)
        dialect = dialect_of(self.subject)
        return tools if dialect == Dialect() else SpokenTools(tools=tools, dialect=dialect)

    def command(self, name: str) -> tuple[str, ...]:
        """The command line of a butler."""
        return self.subject.command(**self._fields(name))

    def folder(self, name: str) -> Path | None:
        """Where the command of a butler runs; ``None`` where the harness does."""
        return self.subject.folder(**self._fields(name))

    def environment(self, name: str) -> dict[str, str]:
        """The whole environment of a butler; what is changed in it holds from its next start on."""
        if name not in self.environments:
            self.environments[name] = {
                **self.subject.environment(**self._fields(name)),
                **_private_places(self.run, name),
                # One process is in one place.
                **zone_variable(ALL_BUTLERS if tables_of(self.subject).one_process else name),
                **self.more,
            }
        return self.environments[name]

    def _fields(self, name: str) -> dict[str, str | int]:
        config = self.configs[name]
        return {
            "name": name,
            "NAME": name.upper().replace("-", "_"),
            "port": self.ports[name].port,
            "config_dir": str(config.directory),
            "roster_dir": str(config.directory.parent),
            "database_url": self.databases[name].url,
            **database_fields(self.databases[name].url),
            "switchboard_url": self.tools("switchboard").url,
            "gateway_url": self.gateway.url,
            "gateway_key": self.gateway.api_key,
            "otlp_url": self.collector.held.endpoint,
        }


def _stages(name: str, tools: Tools) -> tuple[Stage, ...]:
    """When a butler serves: its protocol opens, and ``status`` answers."""

    async def answers_status() -> str:
        try:
            answer = await tools.call("status")
        except CannotReach as error:
            return f"{name}: {error}"
        return f"status of {name} is an error: {answer.text}" if answer.is_error else ""

    return (
        tools.protocol_stage(seconds=_BOOT_S),
        Stage(name="domain", probe=answers_status, seconds=_BOOT_S),
    )


def _private_places(run: Run, name: str) -> dict[str, str]:
    """A home and a place for temporary files that go with the run, also when a butler is killed."""
    # The second has a short name: a Unix socket's path may have 107 bytes, and a program that finds
    # its temporary directory too deep for one goes back to /tmp, where it leaves things behind.
    return {"HOME": str(run.directory(f"home-{name}")), "TMPDIR": str(run.directory("t"))}


async def _unregistered(ecosystem: Ecosystem) -> tuple[str, ...]:
    """Once the registry lists every butler, none; else those that it does not list in time.

    That they serve is what tests need; that they register is what tests judge.
    """
    missing = set(ecosystem.butlers) - {"switchboard"}
    board = ecosystem.switchboard.database

    async def all_listed() -> bool:
        known = await board.one("SELECT to_regclass('butler_registry') AS found")
        if known["found"] is not None:
            rows = await board.rows("SELECT name FROM butler_registry")
            missing.difference_update(str(row["name"]) for row in rows)
        return not missing

    with suppress(NotReady), deadline("see every butler in the registry", seconds=_REGISTER_S):
        await until(all_listed)
    return tuple(sorted(missing))
