"""Self-checks of the daemon: each tries what it reports on, when health is asked for.

A result is served again only while it is younger than `health.max_age_s`; an older one is stale and
everything is checked anew.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import trio

from sexpd import faults, log
from sexpd.config import Config
from sexpd.pipeline import Pipeline
from sexpd.providers import Cascade, reachable
from sexpd.shell.actuator import Shell
from sexpd.skills import Registry

HEALTHY, DEGRADED, UNHEALTHY, UNKNOWN = "HEALTHY", "DEGRADED", "UNHEALTHY", "UNKNOWN"
_WORST_FIRST = {"FAILED": UNHEALTHY, "UNKNOWN": UNKNOWN, "DEGRADED": DEGRADED}


class _Problem(Exception):
    """What a check found; ``grave`` when the daemon cannot do its work."""

    def __init__(self, text: str, *, grave: bool = False) -> None:
        super().__init__(text)
        self.grave = grave


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One result: OK, DEGRADED, FAILED, or UNKNOWN when it took too long to find out."""

    name: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All results of one round.

    Attributes:
        at: the clock of trio when the round began, in seconds.
    """

    status: str
    checks: tuple[Check, ...]
    at: float

    @property
    def checked(self) -> bool:
        return self.status != UNKNOWN


class Health:
    """Runs the checks; asks of several clients at once are answered by one round."""

    def __init__(
        self, config: Config, *, skills: Registry, cascade: Cascade, shell: Shell
    ) -> None:
        self._config, self._skills, self._cascade, self._shell = config, skills, cascade, shell
        self.pipeline: Pipeline | None = None
        self._lock = trio.Lock()
        self._last: Report | None = None

    async def report(self) -> Report:
        """A result that is not stale."""
        async with self._lock:
            last, age = self._last, self._config["health.max_age_s"]
            fresh = last is not None and trio.current_time() - last.at < age
            if last is None or not (fresh or faults.on("stale-health")):
                last = self._last = await self._round()
            return last

    async def _round(self) -> Report:
        began = trio.current_time()
        found: dict[str, Check] = {}
        checks: dict[str, Callable[[], Awaitable[str]]] = {
            "pipeline": self._pipeline,
            "skills": self._skills_loaded,
            "disk": self._disk,
            "shell": self._shell_ready,
            "providers": self._providers,
        }

        async def one(name: str, check: Callable[[], Awaitable[str]]) -> None:
            found[name] = await self._checked(name, check)

        async with trio.open_nursery() as nursery:
            for name, check in checks.items():
                nursery.start_soon(one, name, check)
        states = {check.state for check in found.values()}
        worst = next((state for state in _WORST_FIRST if state in states), "OK")
        status = _WORST_FIRST.get(worst, HEALTHY)
        if self._last is None or self._last.status != status:
            bad = [f"{c.name}: {c.detail}" for c in found.values() if c.state != "OK"]
            log.info("health.changed", status=status, problems="; ".join(bad) or "none")
        return Report(status=status, checks=tuple(found[name] for name in checks), at=began)

    async def _checked(self, name: str, check: Callable[[], Awaitable[str]]) -> Check:
        limit = self._config["health.check_s"]
        try:
            with trio.move_on_after(limit):
                return Check(name=name, state="OK", detail=await check())
        except _Problem as problem:
            state = "FAILED" if problem.grave else "DEGRADED"
            return Check(name=name, state=state, detail=str(problem))
        return Check(name=name, state="UNKNOWN", detail=f"took longer than {limit:g} s")

    # --- The checks ---

    async def _pipeline(self) -> str:
        assert self.pipeline is not None
        return await self.pipeline.ping()

    async def _skills_loaded(self) -> str:
        self._skills.refresh()
        if self._skills.problem:
            raise _Problem(self._skills.problem)
        if rejected := self._skills.rejected:
            raise _Problem("rejected: " + ", ".join(f"{r.name} ({r.reason})" for r in rejected))
        return f"{len(self._skills.loaded)} loaded"

    async def _disk(self) -> str:
        unchecked = faults.on("data-unchecked")
        for directory in (self._shell.root,) if unchecked else (self._config.data, self._shell.root):
            _write_and_remove(directory)
        return f"{self._config.data} can be written"

    async def _shell_ready(self) -> str:
        if problem := self._shell.problem():
            raise _Problem(problem)
        return "confined by Landlock" if self._shell.confined else "not confined by the kernel"

    async def _providers(self) -> str:
        providers = self._cascade.providers
        if not providers:
            return "none configured"
        up: dict[str, bool] = {}

        async def one(name: str, number: int) -> None:
            with trio.move_on_after(self._config["health.check_s"] / 2):
                up[name] = await reachable(providers[number])

        async with trio.open_nursery() as nursery:
            for number, provider in enumerate(providers):
                asked = len(providers) - 1 if faults.on("health-asks-last-provider") else number
                nursery.start_soon(one, provider.name, asked)
        down = [p.name for p in providers if not up.get(p.name)]
        if len(down) == len(providers):
            raise _Problem("none can be reached: " + ", ".join(down))
        return "reachable but for " + ", ".join(down) if down else "all reachable"


def _write_and_remove(directory: Path) -> None:
    probe = directory / f".probe-{os.urandom(8).hex()}"
    try:
        probe.write_bytes(b"written by a health check\n")
        probe.unlink()
    except OSError as error:
        raise _Problem(f"{directory} cannot be written: {error.strerror}", grave=True) from error
