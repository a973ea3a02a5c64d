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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from harness_core import limits
from harness_core.bridge import Loop
from harness_core.db import Database, create_database
from harness_core.errors import BadInput, HarnessError
from harness_core.evidence import Evidence
from harness_core.groups import lone_error
from harness_core.llm import Gateway, open_gateway
from harness_core.net import PortLease, Stage, await_ready, lease_port, listener_stages, sse_opens
from harness_core.process import Child, Run
from harness_core.services import PostgresService, open_postgres
from harness_core.subject import Subject
from harness_core.wait import deadline, until
from suites.e2e.mcp_client import CannotReach, ToolResult, call_tool, list_tools
from suites.e2e.roster import ButlerConfig, read_roster

__all__ = ["REFERENCE_SUBJECT", "Butler", "Ecosystem", "Sent", "open_ecosystem", "roster_directory"]

REFERENCE_SUBJECT: Final = Path(__file__).with_name("reference-system") / "subject.toml"

#: Start of a daemon, migrations included. Slowest seen, four at once on 2 loaded cores: 6 s.
_BOOT_S: Final = 60.0

#: All butlers in the registry, once all of them serve.
_REGISTER_S: Final = 30.0

#: A butler drains its sessions for up to 30 s before it ends (contract, ``shutdown()``).
_STOP_S: Final = 40.0

Say = Callable[[str], None]
T = TypeVar("T")


class Butler:
    """One running butler: what an operator sees of it, and may do to it.

    Every method may be called from any trio loop (a test's own included).

    Attributes:
        config: what its ``butler.toml`` says.
        port: where it really listens.
        url: its MCP endpoint.
        database: its database.
        command: its command line.
        environment: its whole environment.
        child: the process of its current life; ``child.log`` is its log.
    """

    def __init__(
        self,
        config: ButlerConfig,
        *,
        lease: PortLease,
        database: Database,
        command: Sequence[str],
        environment: Mapping[str, str],
        evidence: Evidence,
        run: Run,
        loop: Loop | None,
    ) -> None:
        self.config = config
        self.name = config.name
        self.port = lease.port
        self.url = f"http://127.0.0.1:{lease.port}/sse"
        self.database = database
        self._lease = lease
        self.command = tuple(command)
        self.environment = dict(environment)
        self._evidence = evidence
        self._run = run
        self._loop = loop
        self._life = AsyncExitStack()
        self._child: Child | None = None

    @property
    def child(self) -> Child:
        """The process of its current or last life."""
        if self._child is None:
            raise HarnessError(f"use butler {self.name}", observed="it was never started")
        return self._child

    @property
    def pid(self) -> int:
        """Process id of its current or last life."""
        return self.child.pid

    async def call(self, tool: str, *, seconds: float = limits.MCP_CALL_S, **arguments: Any) -> Any:
        """Call a tool that must succeed, and return its answer as data.

        Raises:
            AssertionError: the tool answered with an error.
        """
        answer = await self.try_call(tool, arguments, seconds=seconds)

        assert not answer.is_error, f"{self.name}.{tool} refused {arguments}: {answer.text}"
        return answer.value

    async def try_call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        seconds: float = limits.MCP_CALL_S,
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        """Call a tool that may refuse."""
        return await call_tool(self.url, tool, arguments, seconds=seconds, headers=headers)

    async def tools(self) -> dict[str, Mapping[str, Any]]:
        """The tools it offers: name → input schema."""
        return await list_tools(self.url)

    async def status(self) -> Mapping[str, Any]:
        """Its own word on its health and its modules."""
        answer: Mapping[str, Any] = await self.call("status")
        return answer

    def kill(self) -> None:
        """SIGKILL to it and everything it started."""
        self.child.kill()

    def pause(self) -> None:
        """SIGSTOP: connections open, nothing answers."""
        self.child.pause()

    def resume(self) -> None:
        """SIGCONT after :meth:`pause`."""
        self.child.resume()

    async def stop(self) -> None:
        """Ask it to shut down and wait for its end."""
        await self._on_loop(self._stop)

    async def start(self) -> None:
        """Start it again on its port and database, and wait until it serves."""
        await self._on_loop(self._start)

    async def restart(self) -> None:
        """Stop it (dead or alive) and start it again."""
        await self._on_loop(self._restart)

    async def attempt(
        self, *, seconds: float, environment: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Start a second process of this butler that is expected to end by itself.

        Args:
            seconds: how long it may take to end.
            environment: changes to the butler's own.

        Returns:
            Its exit status and everything it wrote.

        Raises:
            NotReady: it still ran after ``seconds``.
        """

        async def start() -> tuple[int, str]:
            async with self._run.child(
                self.command,
                name=f"{self.name}-attempt",
                env=self.environment | dict(environment or {}),
                evidence=self._evidence,
            ) as child:
                with deadline(f"see {child.name} end", seconds=seconds, tail=child.tail):
                    returncode = await child.wait()
                return returncode, child.log.read_text(encoding="utf-8")

        return await self._on_loop(start)

    async def _on_loop(self, call: Callable[[], Awaitable[T]]) -> T:
        if self._loop is None:
            return await call()
        return await self._loop.from_trio(call)

    async def _restart(self) -> None:
        await self._stop()
        await self._start()

    async def _stop(self) -> None:
        await self._life.aclose()

    async def _start(self) -> None:
        self._lease.hand_over()
        child = await self._life.enter_async_context(
            self._run.child(
                self.command,
                name=self.name,
                env=self.environment,
                evidence=self._evidence,
                grace_s=_STOP_S,
            )
        )
        self._child = child
        await await_ready(
            child,
            (
                *listener_stages(child, self.port, seconds=_BOOT_S),
                Stage(name="protocol", probe=sse_opens(self.url), seconds=_BOOT_S),
                Stage(name="domain", probe=self._answers_status, seconds=_BOOT_S),
            ),
        )

    async def _answers_status(self) -> str:
        try:
            answer = await call_tool(self.url, "status")
        except CannotReach as error:
            return str(error)
        return f"status answered with an error: {answer.text}" if answer.is_error else ""


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
        subject: what was started.
        boot_s: seconds from nothing to the last registration.
    """

    def __init__(
        self,
        *,
        butlers: Mapping[str, Butler],
        gateway: Gateway,
        postgres: PostgresService,
        subject: Subject,
        evidence: Evidence,
    ) -> None:
        self.butlers = butlers
        self.gateway = gateway
        self.postgres = postgres
        self.subject = subject
        self.evidence = evidence
        self.boot_s = 0.0

    def __getitem__(self, name: str) -> Butler:
        if name not in self.butlers:
            raise BadInput("butler", found=name, expected=f"one of {', '.join(self.butlers)}")
        return self.butlers[name]

    @property
    def switchboard(self) -> Butler:
        """The butler that messages come in at."""
        return self["switchboard"]

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
        budget_usd: hard limit of what the model may cost.
        loop: the loop this runs on, so that handles can be used from other loops.
        environment: more environment for every butler.
        say: told how the boot goes.

    Raises:
        BadInput: a malformed roster or subject file.
        HarnessError: something did not start; the first stage that failed, with its log.
    """
    began = trio.current_time()
    configs = read_roster(roster or roster_directory(subject))
    if "switchboard" not in configs:
        raise BadInput(
            roster or roster_directory(subject),
            found=f"butlers {', '.join(configs)}",
            expected="a butler named 'switchboard', where messages come in",
        )

    def note(text: str) -> None:
        say(f"{text} ({trio.current_time() - began:.1f} s)")

    async with lone_error(), AsyncExitStack() as stack:
        postgres, gateway = await _open_infrastructure(
            stack,
            run,
            evidence=evidence,
            services=services,
            services_url=services_url,
            llm=llm,
            budget_usd=budget_usd,
            note=note,
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
            )
        ecosystem = Ecosystem(
            butlers=butlers,
            gateway=gateway,
            postgres=postgres,
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
    home = run.directory(f"home-{name}")
    temporary = home / "tmp"
    temporary.mkdir()
    return {"HOME": str(home), "TMPDIR": str(temporary)}


async def _open_infrastructure(
    stack: AsyncExitStack,
    run: Run,
    *,
    evidence: Evidence,
    services: str,
    services_url: str | None,
    llm: str,
    budget_usd: float,
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
        starting.start_soon(
            nursery.start,
            keep,
            "postgres",
            open_postgres(run, evidence=evidence, provider=services, url=services_url),
        )
        starting.start_soon(
            nursery.start,
            keep,
            "gateway",
            open_gateway(run, mode=llm, evidence=evidence, budget_usd=budget_usd),
        )
    return opened["postgres"], opened["gateway"]


async def _start_all(butlers: Mapping[str, Butler], *, note: Say) -> None:
    async def start(butler: Butler) -> None:
        await butler._start()  # noqa: SLF001 - the adapter's own
        note(f"{butler.name} serves on port {butler.port}")

    async with lone_error(), trio.open_nursery() as nursery:
        for butler in butlers.values():
            nursery.start_soon(start, butler)


async def _stop_all(butlers: Mapping[str, Butler]) -> None:
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            for butler in butlers.values():
                nursery.start_soon(butler._stop)  # noqa: SLF001


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
