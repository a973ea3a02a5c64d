"""An ecosystem that another process of the run holds: the same handles, at the end of a socket."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from harness_core.db import Database
from harness_core.evidence import Evidence
from harness_core.hosting import Line, ask
from harness_core.llm import Gateway, GatewayClient
from harness_core.process import StopReport
from harness_core.services import PostgresService, parse_postgres_url
from harness_core.subject import Subject
from harness_core.wait import until
from suites.e2e.attached_collector import attached_collector
from suites.e2e.butler import Butler
from suites.e2e.ecosystem import Ecosystem, shared_life
from suites.e2e.roster import read_roster
from suites.e2e.server import Guarded
from suites.e2e.tools import tools_of
from suites.e2e.visit import Visit

__all__ = ["attach"]


@asynccontextmanager
async def attach(
    host: Path, subject: Subject, *, evidence: Evidence, line: Line
) -> AsyncIterator[Ecosystem]:
    """Handles on the ecosystem behind a host's socket; the first to ask has it booted.

    Args:
        host: the socket.
        subject: what the run tests.
        evidence: directory of this worker.
        line: this worker's own connection, which its turns belong to.

    Raises:
        HarnessError: it could not be booted; every worker is told the same.
    """
    told: Mapping[str, Any] = await line.ask_in_task("describe")
    visit = Visit()
    url = parse_postgres_url(told["postgres"]["url"], where="the host of this run")
    postgres = PostgresService(
        Guarded(_Server(host, url.address), loop=None, visit=visit),
        url,
        provider=told["postgres"]["provider"],
        in_memory=told["postgres"]["in_memory"],
    )
    butlers = told["butlers"]
    for secret in (url.password, told["gateway"]["key"], told["gateway"]["token"]):
        evidence.redactor.add(secret)
    configs = {
        name: read_roster(Path(row["directory"]).parent)[name] for name, row in butlers.items()
    }
    async with AsyncExitStack() as handles:
        databases = {
            name: await handles.enter_async_context(Database(row["database"]))
            for name, row in butlers.items()
        }
        yield Ecosystem(
            butlers={
                name: Butler(
                    configs[name],
                    port=row["port"],
                    tools=tools_of(subject, name=name, port=row["port"]),
                    database=databases[name],
                    command=row["command"],
                    environment=row["environment"],
                    life=_life(host, name, subject, own=row["own_process"]),
                    visit=visit,
                )
                for name, row in butlers.items()
            },
            gateway=Gateway(
                url=told["gateway"]["url"],
                api_key=told["gateway"]["key"],
                mode=told["gateway"]["mode"],
                client=GatewayClient(told["gateway"]["url"], told["gateway"]["token"]),
                ledger=Path(told["gateway"]["ledger"]),
                child=RemoteChild(host, "gateway"),  # type: ignore[arg-type]
            ),
            postgres=postgres,
            collector=attached_collector(host, told["collector"], visit=visit),
            subject=subject,
            evidence=evidence,
            visit=visit,
            mend=lambda: _mend(host),
            boot_s=told["boot_s"],
        )


async def _mend(host: Path) -> Sequence[str]:
    found: Sequence[str] = await _asked(host, "mend")
    return found


async def _asked(host: Path, word: str, **fields: Any) -> Any:
    """Ask on a connection of its own, so that several tasks may ask at once."""
    with Line(host) as line:
        return await line.ask_in_task(word, **fields)


def _life(host: Path, name: str, subject: Subject, *, own: bool) -> Any:
    return RemoteLife(host, name) if own else shared_life(subject, lambda: RemoteChild(host, name))


class RemoteChild:
    """A process that the host supervises, seen from here; each look asks the host."""

    def __init__(self, host: Path, part: str) -> None:
        self._host = host
        self._part = part
        self._pinned: int | None = None
        first = self._look()
        self.name: str = first["name"]
        self.pid: int = first["pid"]
        self.log = Path(first["log"])
        self._last = first

    @property
    def returncode(self) -> int | None:
        """``None`` while it lives."""
        code: int | None = self._look()["returncode"]
        return code

    @property
    def stop_report(self) -> StopReport | None:
        """How its orderly end went."""
        report = self._look()["stop_report"]
        if report is None:
            return None
        return StopReport(**{**report, "strays": tuple(report["strays"])})

    def tail(self) -> tuple[str, ...]:
        """The last lines of its output."""
        return tuple(self._ask("tail"))

    async def wait(self) -> int:
        """Wait for its end."""

        async def ended() -> tuple[int] | None:
            look = await _asked(self._host, "act", part=self._part, verb="look", arguments={})
            code = self._note(look)["returncode"]
            return None if code is None else (code,)

        return (await until(ended))[0]

    def kill(self) -> None:
        """SIGKILL to it and everything it started."""
        self._ask("kill")

    def pause(self) -> None:
        """Freeze it."""
        self._ask("pause")

    def resume(self) -> None:
        """Undo :meth:`pause`."""
        self._ask("resume")

    def _ask(self, verb: str) -> Any:
        return ask(self._host, "act", part=self._part, verb=verb, arguments={})

    def _look(self) -> Mapping[str, Any]:
        return self._note(self._ask("look"))

    def _note(self, look: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is known of this very process: another one may have taken its place since."""
        if self._pinned is None:
            self._pinned = look["pid"]
        if look["pid"] == self._pinned:
            self._last = look
        return self._last


class RemoteLife:
    """A butler's process through all its lives, supervised by the host."""

    def __init__(self, host: Path, name: str) -> None:
        self._host = host
        self._name = name
        self._child = RemoteChild(host, name)

    @property
    def child(self) -> RemoteChild:
        """The process of its current or last life; the same object for the same process."""
        now = RemoteChild(self._host, self._name)
        if now.pid != self._child.pid:
            self._child = now
        return self._child

    def signal(self, verb: str) -> None:
        """``kill``, ``pause`` or ``resume`` it."""
        ask(self._host, "act", part=self._name, verb=verb, arguments={})

    async def change(self, verb: str, environment: Mapping[str, str]) -> None:
        """``start``, ``stop`` or ``restart`` it."""
        with trio.CancelScope(shield=True):  # a change half made would be nobody's
            await _asked(self._host, "act", part=self._name, verb=verb, arguments=dict(environment))

    async def wait(self) -> int:
        """Wait for the end of its process."""
        return await self.child.wait()

    async def attempt(self, *, seconds: float, environment: Mapping[str, str]) -> tuple[int, str]:
        """Start a second process that is expected to end by itself."""
        arguments = {"seconds": seconds, "environment": dict(environment)}
        code, output = await _asked(
            self._host, "act", part=self._name, verb="attempt", arguments=arguments
        )
        return code, output


@dataclasses.dataclass(frozen=True, slots=True)
class _Server:
    """The host's database server."""

    host: Path
    address: str
    name: str = "postgres"

    async def start(self) -> None:
        await self._do("start")

    async def stop(self) -> None:
        await self._do("stop")

    async def kill(self) -> None:
        await self._do("kill")

    async def pause(self) -> None:
        await self._do("pause")

    async def resume(self) -> None:
        await self._do("resume")

    async def _do(self, verb: str) -> None:
        await _asked(self.host, "act", part="postgres", verb=verb, arguments={})
