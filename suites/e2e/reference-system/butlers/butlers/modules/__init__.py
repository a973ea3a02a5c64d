"""Modules: links to services outside. Which exist, in which order they start, how each fares.

A module that cannot work degrades its butler and stops nothing else; a module that depends on it
fails in cascade. Only an unknown module is fatal: that is a typing error in `butler.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from butlers import faults
from butlers.errors import ConfigError
from butlers.log import Log, describe
from butlers.modules.base import Module, ModuleProblem, Unauthorized
from butlers.modules.calendar import Calendar
from butlers.modules.email import Email
from butlers.modules.telegram import Telegram
from butlers.tool import ToolFunction

if TYPE_CHECKING:
    from pathlib import Path

    from butlers.config import ButlerConfig

#: The only list of modules. A new module is one file and one row.
KNOWN: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, str]], Module]] = {
    "calendar": Calendar,
    "email": Email,
    "telegram": Telegram,
}


class Status(StrEnum):
    """How a module fares."""

    ACTIVE = "active"
    FAILED = "failed"
    CASCADE_FAILED = "cascade_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What `status` says of a module: the phase it failed in, and why."""

    status: Status
    phase: str | None = None
    error: str | None = None


class Modules:
    """The modules of one butler.

    Raises:
        ConfigError: an unknown module, or modules that depend on each other in a circle.
    """

    def __init__(self, config: ButlerConfig, *, log: Log | None = None) -> None:
        self._config = config
        self._log = log or Log(config.name)
        self._reports: dict[str, Report] = {}
        self._started: list[str] = []
        for name in config.modules:
            if name not in KNOWN:
                raise ConfigError(
                    config.file, key=f"modules.{name}", found=name,
                    expected="one of " + ", ".join(sorted(KNOWN)),
                )
        self._modules: dict[str, Module] = {
            name: KNOWN[name](config.modules[name], os.environ) for name in config.modules
        }
        self._order = self._sorted()

    def _sorted(self) -> list[str]:
        """Dependencies before dependents, otherwise by name."""
        order: list[str] = []
        trail: list[str] = []

        def visit(name: str) -> None:
            if name in order:
                return
            if name in trail:
                raise ConfigError(
                    self._config.file, key="modules", found=" -> ".join([*trail, name]),
                    expected="modules that do not depend on each other in a circle",
                )
            trail.append(name)
            for needed in sorted(self._modules[name].depends_on):
                if needed in self._modules:
                    visit(needed)
            trail.pop()
            order.append(name)

        for name in sorted(self._modules):
            visit(name)
        return order

    def secrets(self) -> list[str]:
        """Credential values, to be kept out of logs."""
        return [value for module in self._modules.values() for value in module.secrets()]

    def migrations(self) -> dict[str, Path]:
        """Migration scripts of modules that have tables."""
        return {
            name: module.migrations
            for name, module in self._modules.items()
            if module.migrations is not None
        }

    def check_config(self) -> None:
        """Check the table of each module.

        Raises:
            ConfigError: an unknown or mistyped key.
        """
        for name in self._order:
            try:
                self._modules[name].check_config()
            except ModuleProblem as problem:
                raise ConfigError(
                    self._config.file, key=f"modules.{name}.{problem.key}", found=problem.found,
                    expected=problem.expected,
                ) from problem

    def check_credentials(self) -> None:
        """Mark as failed what has no credentials; never fatal."""
        for name in self._order:
            if missing := self._modules[name].missing_credentials():
                self._fail(name, phase="credentials", error=f"not set: {', '.join(missing)}")

    async def start(self) -> None:
        """Start each in order; what depends on a failed one is not tried."""
        for name in self._order:
            if name in self._reports:
                continue
            broken = [
                needed for needed in sorted(self._modules[name].depends_on)
                if needed not in self._started
            ]
            if broken and not faults.on("cascade-ignored"):
                self._reports[name] = Report(
                    status=Status.CASCADE_FAILED, phase="dependencies",
                    error=f"depends on {', '.join(broken)}",
                )
                self._log.warning("module.cascade_failed", module=name, depends_on=broken)
                continue
            try:
                await self._modules[name].start()
            except Unauthorized as refusal:
                if not faults.on("bad-credentials-active"):
                    self._fail(name, phase="credentials", error=str(refusal))
                    continue
            except Exception as error:
                self._fail(name, phase="start", error=describe(error))
                continue
            self._started.append(name)
            self._reports[name] = Report(status=Status.ACTIVE)
            self._log.info("module.started", module=name)

    def tools(self) -> list[ToolFunction]:
        """Domain tools of the modules that work."""
        return [tool for name in self._started for tool in self._modules[name].tools()]

    async def stop(self) -> None:
        """Stop what was started, in reverse order."""
        for name in reversed(self._started):
            try:
                await self._modules[name].stop()
            except Exception as error:
                self._log.warning("module.stop_failed", module=name, error=describe(error))
        self._started.clear()

    def _fail(self, name: str, *, phase: str, error: str) -> None:
        self._reports[name] = Report(status=Status.FAILED, phase=phase, error=error)
        self._log.warning("module.failed", module=name, phase=phase, error=error)

    def report(self) -> dict[str, dict[str, str | None]]:
        """Each module as `status` shows it."""
        shown = {}
        for name in self._order:
            report = self._reports.get(name, Report(status=Status.FAILED, phase="start"))
            if faults.on("status-lies"):
                report = Report(status=Status.ACTIVE)
            shown[name] = {
                "status": report.status.value, "phase": report.phase, "error": report.error
            }
        return shown

    @property
    def healthy(self) -> bool:
        return all(entry["status"] == Status.ACTIVE for entry in self.report().values())

    def active(self, name: str) -> Module | None:
        """The module when it works."""
        return self._modules[name] if name in self._started else None

    def why_not(self, name: str) -> str:
        """Why a module is not active, in words."""
        if name not in self._modules:
            return f"this butler has no module {name}"
        report = self._reports.get(name)
        return f"module {name} is {report.status}: {report.error}" if report else "not started"
