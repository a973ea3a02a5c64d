"""The one adapter of this suite: boots a butler ecosystem from nothing and hands out its handles.

Provision → boot → register: PostgreSQL and the model gateway start together; every butler of the
roster gets an empty database of its own and a leased port; all daemons start in parallel, migrate
their databases themselves and are waited for on what can be seen from outside (port, owner of the
port, SSE headers, ``status`` over MCP, a row in the registry). Nothing here imports the system
under test: it is a command line in a subject file.
"""

from __future__ import annotations

import dataclasses
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import trio

from harness_core import limits
from harness_core.bridge import Loop
from harness_core.db import create_database, left_databases
from harness_core.errors import BadInput, BudgetExceeded, HarnessError
from harness_core.evidence import Evidence
from harness_core.groups import lone_error
from harness_core.llm import Gateway, open_gateway
from harness_core.net import PortLease, Stage, lease_port
from harness_core.process import Run
from harness_core.services import PostgresService, open_postgres
from harness_core.subject import Subject
from harness_core.telemetry import Collector, open_collector
from harness_core.turns import Rehearsal, Turn
from harness_core.wait import deadline, until
from suites.e2e.butler import Butler
from suites.e2e.containers import container_starter
from suites.e2e.everyday import REHEARSALS, turns_for
from suites.e2e.layout import OWN_PROCESS, Layout, layout_of
from suites.e2e.life import BOOT_S, OwnLife, SharedLife
from suites.e2e.logwatch import ErrorLine, LogPlace
from suites.e2e.mcp_client import CannotReach
from suites.e2e.roster import read_roster
from suites.e2e.server import Guarded, guarded
from suites.e2e.tools import Tools, tools_of
from suites.e2e.visit import Visit

__all__ = [
    "REFERENCE_SUBJECT",
    "TRACING",
    "Butler",
    "Ecosystem",
    "Sent",
    "open_ecosystem",
    "roster_directory",
    "shared_life",
]

REFERENCE_SUBJECT: Final = Path(__file__).with_name("reference-system") / "subject.toml"

#: Butlers that boot at a time. Each start has a deadline of its own, and with 48 of them on two cores
#: the last would be late for no fault of its own; a household's six start together all the same.
_BOOTING: Final = max(8, 4 * (os.cpu_count() or 1))

#: All butlers in the registry, once all of them serve.
_REGISTER_S: Final = 30.0

#: A message to its final state when the model answers at once. Slowest seen, three butlers on 2
#: loaded cores: 7 s.
_OFFLINE_MESSAGE_S: Final = 40.0

#: What a subject lists whose rows carry the trace ids of the messages that caused them.
TRACING: Final = "tracing"

#: The mode of the gateway in which rows say what the model does.
REHEARSED: Final = "rehearsed"

#: The one process of a subject that serves every butler from it.
_ALL: Final = "ecosystem"

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message that the switchboard accepted.

    Attributes:
        request_id: the switchboard's name for it.
        trace_id: ours: 32 hexadecimal digits that only this message carries; empty for a subject
            that does not keep it.
        text: what was sent.
        channel: where it came from.
        answer: the whole answer of ``ingest``.
        since: the database server's clock just before the message was sent.
        mark: sequence number in the gateway's ledger before that.
        rehearsed: the model has turns for it.
    """

    request_id: str
    trace_id: str
    text: str
    channel: str
    answer: Mapping[str, Any]
    since: Any
    mark: int
    rehearsed: bool = False


class Ecosystem:
    """A running ecosystem; built only by :func:`open_ecosystem`.

    Attributes:
        butlers: every butler of the roster, by name.
        gateway: the model gateway they all talk to.
        postgres: their database server.
        collector: where they send their spans.
        subject: what was started.
        visit: the test that uses it now.
        lives: its processes, where this process supervises them; empty where it is attached.
        server: the state of the database server, in the same way.
        logs: where its processes write.
        boot_s: seconds from nothing to the last registration.
        patience_s: how long a message may take to its final state, in seconds.
        unusable: why nothing can be tested on it any more; empty when it is sound.
        sent_ids: request and trace ids of every message sent through here, oldest first.
        watched: how far the butlers' logs have been looked through for errors.
        watched_ids: how many of ``sent_ids`` belong to earlier tests.
        late_errors: errors about messages of earlier tests, which nobody answered for.
    """

    def __init__(
        self,
        *,
        butlers: Mapping[str, Butler],
        gateway: Gateway,
        postgres: PostgresService,
        collector: Collector,
        subject: Subject,
        evidence: Evidence,
        visit: Visit,
        lives: Mapping[str, OwnLife] | None = None,
        server: Guarded | None = None,
        mend: Callable[[], Awaitable[Sequence[str]]] | None = None,
        loop: Loop | None = None,
        boot_s: float = 0.0,
    ) -> None:
        self.butlers = butlers
        self.gateway = gateway
        self.postgres = postgres
        self.collector = collector
        self.subject = subject
        self.evidence = evidence
        self.logs = evidence.path
        self.visit = visit
        self.lives = dict(lives or {})
        self.server = server
        self.boot_s = boot_s
        self.unusable = ""
        self.patience_s = (
            limits.SCENARIO_S if gateway.mode in {"live", "record"} else _OFFLINE_MESSAGE_S
        )
        self.sent_ids: list[str] = []
        self.watched: LogPlace = {}
        self.watched_ids = 0
        self.late_errors: list[ErrorLine] = []
        self._misses = 0
        self._mend = mend or self._mend_here
        self._loop = loop
        self._whole_gateway = gateway
        self._only = False

    def __getitem__(self, name: str) -> Butler:
        if name not in self.butlers:
            raise BadInput("butler", found=name, expected=f"one of {', '.join(self.butlers)}")
        return self.butlers[name]

    @property
    def secrets(self) -> Mapping[str, str]:
        """What must never be found where it does not belong: what it is → its value."""
        known = {
            "the model's key": self.gateway.api_key,
            "the databases' password": urlsplit(self.switchboard.database.url).password or "",
            "the canary in a butler's environment": self.switchboard.environment["HARNESS_CANARY"],
        }
        return {name: value for name, value in known.items() if value}

    def butler_logs(self) -> tuple[Path, ...]:
        """The logs of every life of every butler, of its start included."""
        names = "|".join(re.escape(name) for name in (*self.butlers, _ALL))
        pattern = re.compile(rf"(?:{names})(?:-\d+)?")
        return tuple(log for log in sorted(self.logs.glob("*.log")) if pattern.fullmatch(log.stem))

    @property
    def switchboard(self) -> Butler:
        """The butler that messages come in at."""
        return self["switchboard"]

    def check_usable(self) -> None:
        """What goes wrong on a broken ecosystem says nothing about the product.

        Raises:
            HarnessError: a test left it broken.
        """
        if self.unusable:
            raise HarnessError(
                "test on this ecosystem",
                observed=self.unusable,
                next_step="Run the tests that did not run once that is mended",
            )

    async def begin(
        self, test: str, *, alone: bool, only: bool, evidence: Evidence, marker: str = ""
    ) -> None:
        """A test starts to use it: what happens from now on is booked on that test.

        Args:
            test: its id.
            alone: it may take parts of the ecosystem away.
            only: no other test uses it now, so every model call is this test's.
            evidence: its directory.
            marker: a text that only this test's messages hold, when there is one.
        """
        self.evidence = evidence
        self._only = only
        client = self._whole_gateway.client.for_test(test, alone=only)
        self.gateway = dataclasses.replace(self._whole_gateway, client=client)
        self.visit.begin(test, alone=alone, gateway=None if only else client)
        if only:
            await client.set_scope(test)
        elif marker:
            await client.set_scope(test, contains=marker)

    async def end(self) -> None:
        """The test has ended; what still comes in belongs to nobody."""
        if self._only:
            await self._whole_gateway.client.set_scope("")
        self.visit.begin("", alone=True, gateway=None)
        self.gateway = self._whole_gateway

    async def mend(self) -> Sequence[str]:
        """Put right what a test left broken; says what that was, nothing when all is well."""
        return await self._mend()

    async def _mend_here(self) -> Sequence[str]:
        async def look() -> Sequence[str]:
            keepers = [*([self.server] if self.server else ()), *self.lives.values()]
            found = [line for keeper in keepers if (line := await keeper.mend_here())]
            waiting = await self._whole_gateway.client.waiting_faults()
            found.extend(f"a fault still waits in the model gateway: {each}" for each in waiting)
            if found:
                await self._whole_gateway.client.clear()
            return found

        return await (look() if self._loop is None else self._loop.call(look))

    async def check_budget(self) -> None:
        """What went wrong for want of money, or of a recording, says nothing about the product.

        Raises:
            BudgetExceeded: the gateway has refused a call because it did not fit the budget.
            HarnessError: in mode ``replay``, a call since the last look was not in the cassette.
        """
        totals = await self.gateway.client.totals()
        if totals.budget_exceeded:
            raise BudgetExceeded(
                budget_usd=totals.budget_usd,
                spent_usd=totals.spent_usd,
                reserved_usd=totals.reserved_usd,
            )
        if self.gateway.mode == "replay":
            missed = await self.gateway.client.unmatched()
            fresh, self._misses = missed[self._misses :], len(missed)
            if fresh:
                raise HarnessError(
                    "replay a model call", observed=fresh[0], next_step="Record it: --llm record"
                )

    async def rehearse(self, text: str, model: Sequence[Turn] | None = None) -> bool:
        """Say what the model does for a message; in another mode than ``rehearsed`` it decides.

        Args:
            text: the message.
            model: its turns; those of :data:`~suites.e2e.everyday.EVERYDAY` when not given.

        Returns:
            Whether the model has turns for it now.
        """
        if self.gateway.mode != REHEARSED:
            return False
        # As the very text, so that what a product cuts or changes is seen to be this message.
        turns = turns_for(text) if model is None else Rehearsal(message=text, turns=tuple(model))
        if turns is not None:
            await self.gateway.client.rehearse(turns)
        return turns is not None

    async def send(
        self,
        text: str,
        model: Sequence[Turn] | None = None,
        *,
        event_id: str | None = None,
        trace_id: str | None = None,
        **changes: Any,
    ) -> Sent:
        """Send one message in at the switchboard, which must accept it.

        Args:
            text: what the user says.
            model: what the model does for it, as in :meth:`rehearse`.
            event_id: the channel's id of the event; a fresh one otherwise.
            trace_id: 32 hexadecimal digits; fresh otherwise.
            changes: whole sections of the envelope to replace, e.g. ``control={…}``.
        """
        trace_id = trace_id or secrets.token_hex(16)
        rehearsed = await self.rehearse(text, model)
        mark = await self.gateway.client.mark()
        since = (await self.switchboard.database.one("SELECT clock_timestamp() AS now"))["now"]
        message = envelope(text, event_id=event_id, trace_id=trace_id) | changes
        answer = await self.switchboard.call("ingest", **message)

        assert answer.get("status") == "accepted", f"ingest did not accept {text!r}: {answer}"
        self.sent_ids.extend((str(answer["request_id"]), trace_id))
        return Sent(
            request_id=str(answer["request_id"]),
            trace_id=trace_id if TRACING in self.subject.capabilities else "",
            text=text,
            channel=str(message["source"]["channel"]),
            answer=answer,
            since=since,
            mark=mark,
            rehearsed=rehearsed,
        )


def envelope(text: str, *, event_id: str | None = None, trace_id: str) -> dict[str, Any]:
    """An ``ingest.v1`` message as a channel connector would send it."""
    return {
        "source": {"channel": "api", "provider": "staging-harness", "endpoint_identity": "e2e"},
        "event": {
            "external_event_id": event_id or f"event-{secrets.token_hex(8)}",
            "observed_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
        "sender": {"identity": "person@example.test"},
        "payload": {"raw": {"text": text}, "normalized_text": text},
        "control": {
            "trace_context": {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"},
        },
    }


def roster_directory(subject: Subject) -> Path:
    """Where the subject keeps its butlers.

    Raises:
        BadInput: its file names no roster.
    """
    directory = subject.table("roster").get("directory")
    if not isinstance(directory, str):
        raise BadInput(
            subject.path, key="roster.directory", found=directory, expected="a path to the roster"
        )
    return subject.resolve(directory)


@asynccontextmanager
async def open_ecosystem(
    run: Run,
    subject: Subject,
    *,
    evidence: Evidence,
    roster: Path | None = None,
    services: str = "local",
    services_url: str | None = None,
    llm: str = "rehearsed",
    llm_upstream: str | None = None,
    llm_cassette: Path | None = None,
    budget_usd: float = limits.LLM_BUDGET_USD,
    loop: Loop | None = None,
    environment: Mapping[str, str] | None = None,
    say: Say = lambda _text: None,
) -> AsyncIterator[Ecosystem]:
    """Boot every butler of a roster from nothing; take everything down at the end of the block.

    Args:
        run: the run it belongs to.
        subject: how to start one butler.
        evidence: directory for the logs of all processes.
        roster: a roster other than the subject's own.
        services: provider of PostgreSQL.
        services_url: its URL, for ``external``.
        llm: mode of the model gateway.
        llm_upstream: base URL of the provider in modes ``live`` and ``record``.
        llm_cassette: what ``record`` writes and ``replay`` reads.
        budget_usd: hard limit of what the model may cost.
        loop: the loop this runs on, so that handles can be used from other loops.
        environment: more environment for every butler.
        say: told how the boot goes.

    Raises:
        BadInput: a malformed roster or subject file.
        HarnessError: something did not start; the first stage that failed, with its log.
    """
    began, started = trio.current_time(), time.monotonic()
    configs = read_roster(roster or roster_directory(subject))
    if "switchboard" not in configs:
        raise BadInput(
            roster or roster_directory(subject),
            found=f"butlers {', '.join(configs)}",
            expected="a butler named 'switchboard', where messages come in",
        )
    layout = layout_of(subject)
    visit = Visit()
    # A secret of ours in every butler's environment: wherever it turns up, something was told.
    canary = f"canary-{secrets.token_hex(12)}"
    evidence.redactor.add(canary)

    def note(text: str) -> None:  # from threads too, which have no trio clock
        say(f"{text} ({time.monotonic() - started:.1f} s)")

    async with lone_error(), AsyncExitStack() as stack:
        server, gateway = await _open_infrastructure(
            stack,
            database_server=open_postgres(
                run, evidence=evidence, provider=services, url=services_url, say=note
            ),
            model=open_gateway(
                run,
                mode=llm,
                evidence=evidence,
                budget_usd=budget_usd,
                upstream=llm_upstream,
                cassette=llm_cassette,
                form=subject.path if subject.table("model") else None,
            ),
            note=note,
        )
        collector = await stack.enter_async_context(open_collector(evidence=evidence))
        postgres, guard = guarded(server, loop=loop, visit=visit)
        leases = {
            name: stack.enter_context(lease_port(port=layout.port_of(config)))
            for name, config in configs.items()
        }
        start_child = await container_starter(
            run,
            subject,
            port_of=lambda name: leases[name].port,
            roster=roster or roster_directory(subject),
            say=note,
        )
        databases = {
            name: await stack.enter_async_context(create_database(server, config.database, run=run))
            for name, config in configs.items()
        }
        stack.push_async_callback(
            left_databases, server, run=run, known=[config.database for config in configs.values()]
        )
        switchboard_url = tools_of(subject, name="switchboard", port=leases["switchboard"].port).url
        recipes = {
            name: _recipe(
                subject,
                run,
                name=name,
                port=leases[name].port,
                config_dir=str(config.directory),
                roster_dir=str(config.directory.parent),
                database_url=databases[name].url,
                switchboard_url=switchboard_url,
                gateway_url=gateway.url,
                gateway_key=gateway.api_key,
                otlp_url=collector.endpoint,
                more={"HARNESS_CANARY": canary, **(environment or {})},
            )
            for name, config in configs.items()
        }
        ways = {
            name: tools_of(subject, name=name, port=lease.port) for name, lease in leases.items()
        }
        lives = {
            name: OwnLife(
                name,
                leases=[leases[butler] for butler in served],
                command=recipes[served[0]].command,
                environment=_merged(recipes[butler].environment for butler in served),
                stages=[stage for butler in served for stage in _stages(butler, ways[butler])],
                evidence=evidence,
                run=run,
                loop=loop,
                start_child=start_child,
            )
            for name, served in _processes(layout, configs).items()
        }
        butlers = {
            name: Butler(
                config,
                port=leases[name].port,
                tools=ways[name],
                database=databases[name],
                command=recipes[name].command,
                environment=recipes[name].environment,
                life=lives.get(name) or shared_life(subject, lambda: lives[_ALL].child),
                visit=visit,
            )
            for name, config in configs.items()
        }
        ecosystem = Ecosystem(
            butlers=butlers,
            gateway=gateway,
            postgres=postgres,
            collector=collector,
            subject=subject,
            evidence=evidence,
            visit=visit,
            lives=lives,
            server=guard,
            loop=loop,
        )
        stack.push_async_callback(_stop_all, lives)
        await _start_all(lives, leases, layout=layout, note=note)
        await _await_registrations(ecosystem)
        ecosystem.boot_s = trio.current_time() - began
        note(f"{len(butlers)} butlers registered")
        if gateway.mode == REHEARSED:
            await gateway.client.rehearse(*REHEARSALS)
        yield ecosystem


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """How one butler is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str]


def _recipe(
    subject: Subject, run: Run, *, name: str, more: Mapping[str, str], **fields: str | int
) -> _Recipe:
    known = {"name": name, "NAME": name.upper().replace("-", "_"), **fields}
    return _Recipe(
        command=subject.command(**known),
        environment=subject.environment(**known) | _private_places(run, name) | dict(more),
    )


def _merged(environments: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The environment of one process that serves several butlers."""
    together: dict[str, str] = {}
    for environment in environments:
        together |= environment
    return together


def _processes(layout: Layout, configs: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Which processes there are: name → the butlers it serves."""
    if layout.one_process:
        return {_ALL: tuple(configs)}
    return {name: (name,) for name in configs}


def shared_life(subject: Subject, child: Callable[[], Any]) -> SharedLife:
    """The life of a butler that has no process of its own."""
    why = f"{subject.name} has no capability {OWN_PROCESS!r}: one process serves every butler"
    return SharedLife(child, why=why)


def _stages(name: str, tools: Tools) -> tuple[Stage, ...]:
    """When a butler serves: its protocol opens, and ``status`` answers."""

    async def answers_status() -> str:
        try:
            answer = await tools.call("status")
        except CannotReach as error:
            return f"{name}: {error}"
        return f"status of {name} is an error: {answer.text}" if answer.is_error else ""

    return (
        tools.protocol_stage(seconds=BOOT_S),
        Stage(name="domain", probe=answers_status, seconds=BOOT_S),
    )


def _private_places(run: Run, name: str) -> dict[str, str]:
    """A home and a place for temporary files that go with the run, also when a butler is killed."""
    # The second has a short name: a Unix socket's path may have 107 bytes, and a program that finds
    # its temporary directory too deep for one goes back to /tmp, where it leaves things behind.
    return {"HOME": str(run.directory(f"home-{name}")), "TMPDIR": str(run.directory("t"))}


async def _open_infrastructure(
    stack: AsyncExitStack,
    *,
    database_server: AbstractAsyncContextManager[PostgresService],
    model: AbstractAsyncContextManager[Gateway],
    note: Say,
) -> tuple[PostgresService, Gateway]:
    """PostgreSQL and the gateway, started side by side."""
    opened: dict[str, Any] = {}

    async def keep(name: str, manager: Any, *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        async with manager as value:
            opened[name] = value
            note(f"{name} ready")
            task_status.started()
            await closing.wait()

    # Each stays in the task that entered it, since it may hold a nursery of its own.
    closing = trio.Event()
    nursery = await stack.enter_async_context(trio.open_nursery())
    stack.callback(closing.set)
    async with trio.open_nursery() as starting:
        starting.start_soon(nursery.start, keep, "postgres", database_server)
        starting.start_soon(nursery.start, keep, "gateway", model)
    return opened["postgres"], opened["gateway"]


async def _start_all(
    lives: Mapping[str, OwnLife],
    leases: Mapping[str, PortLease],
    *,
    layout: Layout,
    note: Say,
) -> None:
    served = _processes(layout, leases)

    turn = trio.CapacityLimiter(_BOOTING)

    async def start(life: OwnLife) -> None:
        async with turn:
            await life.start_here()
        for name in served[life.name]:
            note(f"{name} serves on port {leases[name].port}")

    async with lone_error(), trio.open_nursery() as nursery:
        # Who registers finds the switchboard there, and does not have to try again.
        for life in sorted(lives.values(), key=lambda life: "switchboard" not in served[life.name]):
            nursery.start_soon(start, life)


async def _stop_all(lives: Mapping[str, OwnLife]) -> None:
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            for life in lives.values():
                nursery.start_soon(life.stop_here)


async def _await_registrations(ecosystem: Ecosystem) -> None:
    """Until the registry lists every butler that runs."""
    missing = set(ecosystem.butlers)

    async def all_listed() -> bool:
        rows = await ecosystem.switchboard.database.rows("SELECT name FROM butler_registry")
        missing.difference_update(str(row["name"]) for row in rows)
        return not missing - {"switchboard"}

    with deadline(
        "see every butler in the registry",
        seconds=_REGISTER_S,
        observed=lambda: f"not registered: {', '.join(sorted(missing))}",
        tail=ecosystem.switchboard.child.tail,
    ):
        await until(all_listed)
