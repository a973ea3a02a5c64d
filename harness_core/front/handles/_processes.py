"""Starts processes for tests, and ends them."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_core.base.bridge import View, at_home, blocking, in_sync
from harness_core.base.errors import BadInput
from harness_core.base.evidence import Evidence
from harness_core.base.reading import did_you_mean
from harness_core.doubles.http import http_answers
from harness_core.front.handles._keeper import Keeper, open_keeper
from harness_core.front.handles._process import Process
from harness_core.front.handles._systems import Systems
from harness_core.front.settings import OFFERED, ProcessTable
from harness_core.ports import PortLease, Probe, Stage, lease_port
from harness_core.process import Run
from harness_core.system.parts import ProcessPart, ProcessPlan, open_parts

#: What may stand in a command line and in variables; see :class:`ProcessTable`.
_FIELD: Final = re.compile(r"\{(host|python|data|home|port(?::\w+)?|[a-z]\w*\.\w+)\}")


class Processes:
    """Starts processes by command line or by name; given by the fixtures ``process`` and ``processes``.

    Args:
        run: what they belong to and die with.
        keeper: holds them until its end.
        evidence: keeps their output.
        systems: where an outage finds them.
        lasting: they outlive tests.
        tables: those that have a name.
        fixture: gives one that a table names, by its name: what it has of attributes and
            ``environment``; called in a thread, once for each. ``None`` where none can be given.
        home: where they start, and what paths are relative to.
    """

    def __init__(  # noqa: PLR0913 - built in one place, by the fixtures
        self,
        run: Run,
        keeper: Keeper,
        *,
        evidence: Evidence,
        systems: Systems,
        lasting: bool,
        tables: Mapping[str, ProcessTable],
        fixture: Callable[[str], Any] | None,
        home: Path,
    ) -> None:
        self.loop = keeper.loop
        self._run = run
        self._keeper = keeper
        self._evidence = evidence
        self._systems = systems
        self._lasting = lasting
        self._tables = tables
        self._fixture = fixture
        self._fixtures: dict[str, Any] = {}
        self._home = home
        self._started: list[Process] = []
        self._deaths: list[str] | None = None

    @property
    def sync(self) -> SyncProcesses:
        """The same methods, which wait for their answer."""
        return SyncProcesses(self, self.loop)

    async def start(  # noqa: PLR0913 - those of a table, all optional
        self,
        what: str | Sequence[str | os.PathLike[str]],
        *,
        name: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        health: str = "",
        line: str = "",
        once: bool = False,
        ready_s: float | None = None,
        stop_s: float | None = None,
    ) -> Process:
        """Start one and wait until it serves; it is stopped at the end of the fixture.

        Args:
            what: the name of a ``[tool.staging_harness.process.NAME]``, or a command line, in which
                ``{port}`` and the like stand as they do there.
            name: what ``outage`` and errors call it; its program, or Python module, when left out.
            env: variables, besides those of its table and of pytest itself.
            cwd: where it starts; the project when left out.
            health: a path that answers 200 when it serves.
            line: a text that it writes when it is ready.
            once: it is to end, with status 0.
            ready_s: seconds for each stage of its start.
            stop_s: seconds it may take to end.

        Raises:
            BadInput: no such table, or a field that is none.
            ServiceFailed: it did not come up: stage, last lines of output, log.
        """
        table = self._table(what)
        given: dict[str, object] = {"cwd": cwd, "health": health, "line": line, "once": once}
        given |= {"ready_s": ready_s, "stop_s": stop_s}
        changes = {key: value for key, value in given.items() if value}
        table = msgspec.structs.replace(table, env={**table.env, **(env or {})}, **changes)
        await self._boot(table)
        name = self._free(name or (what if isinstance(what, str) else _program(table.argv)))
        return await self._keeper.enter(self._opened(name, table))

    @at_home
    async def _boot(self, table: ProcessTable) -> None:
        """What it names of fixtures, and no more."""
        for name in sorted(table.needs - self._fixtures.keys()):
            if self._fixture is not None:
                self._fixtures[name] = await blocking(self._fixture, name)

    @at_home
    async def end(self) -> None:
        """Stop all of them, before what they use goes; who died by himself is known for good.

        It may be asked for more than once.
        """
        if self._deaths is None:
            self._deaths = await self._died()
            await self._keeper.leave()

    async def deaths(self) -> list[str]:
        """Those that died by themselves, each in a sentence."""
        return await self._died() if self._deaths is None else self._deaths

    async def _died(self) -> list[str]:
        return [death for each in self._started for death in await each.deaths()]

    def _table(self, what: str | Sequence[str | os.PathLike[str]]) -> ProcessTable:
        if not isinstance(what, str):
            return ProcessTable(argv=tuple(os.fspath(word) for word in what))
        if what not in self._tables:
            known = ", ".join(self._tables) or "none is there"
            raise BadInput(
                "process.start",
                key="what",
                found=what,
                expected=f"a [tool.staging_harness.process.NAME], one of {known}; or a command line, as a list",
                next_step=did_you_mean(what, self._tables),
            )
        return self._tables[what]

    def _free(self, name: str) -> str:
        taken = {each.name for each in self._started}
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name}-{number}", number + 1
        return candidate

    @asynccontextmanager
    async def _opened(self, name: str, table: ProcessTable) -> AsyncIterator[Process]:
        with ExitStack() as held:
            leases = {key: held.enter_context(lease_port()) for key in _ports_of(table)}
            values = self._values(name, table, leases)
            fill = partial(_FIELD.sub, lambda match: _value(match[1], values, where=name))
            own = self._variables_of(name, table)
            own |= {key: fill(text) for key, text in table.env.items()}
            plan = ProcessPlan(
                argv=[fill(word) for word in table.argv],
                environment={**_inherited(), **own},
                own=own,
                cwd=table.cwd or self._home,
                stages=(),
                ready_s=table.ready_s,
                stop_s=table.stop_s,
            )
            part = ProcessPart(
                name,
                self._run,
                lambda: dataclasses.replace(plan, stages=_stages(table, part)),
                leases=tuple(leases.values()),
                evidence=self._evidence,
                once=table.once,
            )
            async with open_parts([part], title=name, evidence=self._evidence) as system:
                ports = {key: lease.port for key, lease in leases.items()}
                process = Process(system, part, ports=ports)
                self._started.append(process)
                with self._systems.holding(system, lasting=self._lasting):
                    yield process

    def _variables_of(self, name: str, table: ProcessTable) -> dict[str, str]:
        """Those of the fixtures that it names."""
        found: dict[str, str] = {}
        for fixture in table.fixtures:
            if fixture not in self._fixtures:
                expected = "none in what outlives a test: pass env instead"
                raise BadInput(f"process {name}", key="fixtures", found=fixture, expected=expected)
            found |= self._fixtures[fixture].environment
        return found

    def _values(
        self, name: str, table: ProcessTable, leases: Mapping[str, PortLease]
    ) -> dict[str, str]:
        """What stands for each field."""
        values = {"host": "127.0.0.1", "python": sys.executable, "home": str(self._home)}
        values |= {
            f"{fixture}.{attribute}": str(getattr(self._fixtures[fixture], attribute))
            for fixture, attributes in OFFERED.items()
            for attribute in (attributes if fixture in self._fixtures else ())
        }
        values |= {
            key if key == "port" else f"port:{key}": str(lease.port)
            for key, lease in leases.items()
        }
        if "data" in _fields(table):
            values["data"] = str(self._run.directory(f"{name}-data"))
        return values


def _program(argv: Sequence[str]) -> str:
    """What a command line runs: ``shop`` of ``/usr/bin/shop``, and of ``python -m shop``."""
    module = argv[2] if len(argv) > 2 and argv[1] == "-m" else ""  # noqa: PLR2004 - words
    return module or _FIELD.sub(r"\1", Path(argv[0]).name)


def _fields(table: ProcessTable) -> tuple[str, ...]:
    words = (*table.argv, *table.env.values())
    return tuple(field for word in words for field in _FIELD.findall(word))


def _ports_of(table: ProcessTable) -> tuple[str, ...]:
    """The names of its ports: that of ``{port}`` first, which is its address."""
    ports = {field for field in _fields(table) if field.partition(":")[0] == "port"}
    names = sorted(field.removeprefix("port:") for field in ports)
    return tuple(sorted(names, key=lambda name: name != "port"))


def _value(field: str, values: Mapping[str, str], *, where: str) -> str:
    if field not in values:
        known = ", ".join(f"{{{each}}}" for each in values)
        raise BadInput(f"process {where}", found=f"{{{field}}}", expected=f"one of {known}")
    return values[field]


def _stages(table: ProcessTable, part: ProcessPart) -> tuple[Stage, ...]:
    """When it serves, once it listens on its ports."""
    stages: list[Stage] = []
    if table.line:
        stages.append(Stage(name="line", probe=_writes(part, table.line), seconds=table.ready_s))
    if table.health:
        health = http_answers(f"{part.url}{table.health}")
        stages.append(Stage(name="health", probe=health, seconds=table.ready_s))
    return tuple(stages)


def _writes(part: ProcessPart, text: str) -> Probe:
    """It has written a line with that text, in this life."""

    async def probe() -> str:
        lines = part.logs()[-1].read_text(encoding="utf-8", errors="replace").splitlines()
        if any(text in line for line in lines):
            return ""
        return f"no line with {text!r} in its output"

    return probe


def _inherited() -> dict[str, str]:
    """The environment of pytest, but for pytest's own; Python writes each line at once."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return {"PYTHONUNBUFFERED": "1", **ours}


class SyncProcesses(View[Processes]):
    """The methods of :class:`Processes` for code without a loop."""

    start = in_sync(Processes.start)


@asynccontextmanager
async def open_processes(  # noqa: PLR0913 - of the fixtures, all named
    run: Run,
    *,
    evidence: Evidence,
    systems: Systems,
    lasting: bool,
    tables: Mapping[str, ProcessTable],
    fixture: Callable[[str], Any] | None,
    home: Path,
) -> AsyncIterator[Processes]:
    """Processes for the block; see :class:`Processes`."""
    async with open_keeper() as keeper:
        yield Processes(
            run,
            keeper,
            evidence=evidence,
            systems=systems,
            lasting=lasting,
            tables=tables,
            fixture=fixture,
            home=home,
        )
