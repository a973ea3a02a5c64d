"""The one adapter of this suite: boots a butler ecosystem from nothing and hands out its handles.

Provision → boot → register: PostgreSQL and the model gateway start together; every butler of the
roster gets an empty database of its own and a leased port; all daemons start in parallel, migrate
their databases themselves and are waited for on what can be seen from outside (port, owner of the
port, SSE headers, ``status`` over MCP, a row in the registry). Nothing here imports the system
under test: it is a command line in a subject file.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from harness_core import limits
from harness_core.bridge import Loop
from harness_core.db import create_database
from harness_core.errors import BadInput, BudgetExceeded, HarnessError
from harness_core.evidence import Evidence
from harness_core.groups import lone_error
from harness_core.llm import Gateway, open_gateway
from harness_core.net import lease_port
from harness_core.process import Run
from harness_core.services import PostgresService, open_postgres
from harness_core.subject import Subject
from harness_core.telemetry import Collector, open_collector
from harness_core.wait import deadline, until
from suites.e2e.butler import Butler
from suites.e2e.containers import container_starter
from suites.e2e.roster import read_roster

__all__ = ["REFERENCE_SUBJECT", "Butler", "Ecosystem", "Sent", "open_ecosystem", "roster_directory"]

REFERENCE_SUBJECT: Final = Path(__file__).with_name("reference-system") / "subject.toml"

#: All butlers in the registry, once all of them serve.
_REGISTER_S: Final = 30.0

#: A message to its final state when the model answers at once. Slowest seen, three butlers on 2
#: loaded cores: 7 s.
_OFFLINE_MESSAGE_S: Final = 40.0

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message that the switchboard accepted.

    Attributes:
        request_id: the switchboard's name for it.
        trace_id: ours: 32 hexadecimal digits that only this message carries.
        text: what was sent.
        answer: the whole answer of ``ingest``.
        since: the database server's clock just before the message was sent.
    """

    request_id: str
    trace_id: str
    text: str
    answer: Mapping[str, Any]
    since: Any


class Ecosystem:
    """A running ecosystem; built only by :func:`open_ecosystem`.

    Attributes:
        butlers: every butler of the roster, by name.
        gateway: the model gateway they all talk to.
        postgres: their database server.
        collector: where they send their spans.
        subject: what was started.
        boot_s: seconds from nothing to the last registration.
        patience_s: how long a message may take to its final state, in seconds.
        unusable: why nothing can be tested on it any more; empty when it is sound.
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
    ) -> None:
        self.butlers = butlers
        self.gateway = gateway
        self.postgres = postgres
        self.collector = collector
        self.subject = subject
        self.evidence = evidence
        self.boot_s = 0.0
        self.unusable = ""
        self._misses = 0
        self.patience_s = (
            limits.SCENARIO_S if gateway.mode in {"live", "record"} else _OFFLINE_MESSAGE_S
        )

    def __getitem__(self, name: str) -> Butler:
        if name not in self.butlers:
            raise BadInput("butler", found=name, expected=f"one of {', '.join(self.butlers)}")
        return self.butlers[name]

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
            missed = (await self.gateway.client.unmatched()).calls
            fresh, self._misses = missed[self._misses :], len(missed)
            if fresh:
                raise HarnessError(
                    "replay a model call", observed=fresh[0], next_step="Record it: --llm record"
                )

    async def send(
        self, text: str, *, event_id: str | None = None, trace_id: str | None = None, **changes: Any
    ) -> Sent:
        """Send one message in at the switchboard, which must accept it.

        Args:
            text: what the user says.
            event_id: the channel's id of the event; a fresh one otherwise.
            trace_id: 32 hexadecimal digits; fresh otherwise.
            changes: whole sections of the envelope to replace, e.g. ``control={…}``.
        """
        trace_id = trace_id or secrets.token_hex(16)
        since = (await self.switchboard.database.one("SELECT clock_timestamp() AS now"))["now"]
        message = envelope(text, event_id=event_id, trace_id=trace_id) | changes
        answer = await self.switchboard.call("ingest", **message)

        assert answer.get("status") == "accepted", f"ingest did not accept {text!r}: {answer}"
        return Sent(
            request_id=str(answer["request_id"]),
            trace_id=trace_id,
            text=text,
            answer=answer,
            since=since,
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
    llm: str = "offline",
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

    def note(text: str) -> None:  # from threads too, which have no trio clock
        say(f"{text} ({time.monotonic() - started:.1f} s)")

    async with lone_error(), AsyncExitStack() as stack:
        postgres, gateway = await _open_infrastructure(
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
            ),
            note=note,
        )
        collector = await stack.enter_async_context(open_collector(evidence=evidence))
        start_child = await container_starter(
            run, subject, port_of=lambda name: leases[name].port, say=note
        )
        leases = {name: stack.enter_context(lease_port()) for name in configs}
        butlers: dict[str, Butler] = {}
        switchboard_url = f"http://127.0.0.1:{leases['switchboard'].port}/sse"
        for name, config in configs.items():
            database = await stack.enter_async_context(
                create_database(postgres, config.database, run=run)
            )
            fields = {
                "name": name,
                "NAME": name.upper().replace("-", "_"),
                "port": leases[name].port,
                "config_dir": str(config.directory),
                "roster_dir": str(config.directory.parent),
                "database_url": database.url,
                "switchboard_url": switchboard_url,
                "gateway_url": gateway.url,
                "gateway_key": gateway.api_key,
                "otlp_url": collector.endpoint,
            }
            butlers[name] = Butler(
                config,
                lease=leases[name],
                database=database,
                command=subject.command(**fields),
                environment=subject.environment(**fields)
                | _private_places(run, name)
                | dict(environment or {}),
                evidence=evidence,
                run=run,
                loop=loop,
                start_child=start_child,
            )
        ecosystem = Ecosystem(
            butlers=butlers,
            gateway=gateway,
            postgres=postgres,
            collector=collector,
            subject=subject,
            evidence=evidence,
        )
        stack.push_async_callback(_stop_all, butlers)
        await _start_all(butlers, note=note)
        await _await_registrations(ecosystem)
        ecosystem.boot_s = trio.current_time() - began
        note(f"{len(butlers)} butlers registered")
        yield ecosystem


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


async def _start_all(butlers: Mapping[str, Butler], *, note: Say) -> None:
    async def start(butler: Butler) -> None:
        await butler.start_here()
        note(f"{butler.name} serves on port {butler.port}")

    async with lone_error(), trio.open_nursery() as nursery:
        for butler in butlers.values():
            nursery.start_soon(start, butler)


async def _stop_all(butlers: Mapping[str, Butler]) -> None:
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            for butler in butlers.values():
                nursery.start_soon(butler.stop_here)


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
