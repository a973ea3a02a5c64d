"""What the parts of a running butler share, and what `roster/<name>/tools.py` is given.

A `tools.py` holds ``def register(butler: Butler) -> None`` and adds tools with ``@butler.tool``.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from butlers import faults
from butlers.errors import ConfigError, Missing
from butlers.log import describe
from butlers.tool import Tool, ToolFunction

if TYPE_CHECKING:
    import asyncpg

    from butlers.config import ButlerConfig
    from butlers.log import Log
    from butlers.modules import Modules
    from butlers.schedules import Schedules
    from butlers.sessions import Sessions
    from butlers.spawner import Spawner
    from butlers.state import State
    from butlers.tracing import Tracer


@dataclass(kw_only=True)
class Butler:
    """A butler while it runs.

    Attributes:
        pool: its own database.
        on_start: called when the tables exist, before anything is served.
        on_stop: called at shutdown, before the pool closes.
        on_beat: called at every beat of the daemon's clock (`[butler.scheduler]`).
    """

    config: ButlerConfig
    log: Log
    tracer: Tracer
    pool: asyncpg.Pool = field(init=False)
    state: State = field(init=False)
    sessions: Sessions = field(init=False)
    schedules: Schedules = field(init=False)
    modules: Modules = field(init=False)
    spawner: Spawner = field(init=False)
    tools: list[Tool] = field(default_factory=list)
    on_start: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    on_stop: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    on_beat: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    #: How this butler has a message delivered; by way of the switchboard when it has no other.
    deliver: Callable[..., Awaitable[dict[str, Any]]] | None = None
    on_register: Callable[..., Awaitable[None]] | None = None

    @property
    def name(self) -> str:
        return self.config.name

    def tool(self, function: ToolFunction) -> ToolFunction:
        """Offer a function as a domain tool; its docstring is what a model reads."""
        return self.add_tool(function, name=function.__name__, domain=True)

    def add_tool(self, function: ToolFunction, *, name: str, domain: bool) -> ToolFunction:
        """Offer a function as a tool under a name of its own."""
        self.tools.append(
            Tool(
                name=name, function=function, domain=domain,
                description=inspect.getdoc(function) or "",
            )
        )
        return function

    def session_tools(self) -> tuple[str, ...]:
        """Names of the tools a session is offered."""
        core = self.config.runtime.core_tools
        if faults.on("session-core-tools"):
            return tuple(tool.name for tool in self.tools)
        chosen = tuple(tool.name for tool in self.tools if tool.domain or tool.name in core)
        return chosen[-1:] if faults.on("session-tools-missing") else chosen

    def load_tools(self) -> None:
        """Run `register` of the butler's `tools.py`, when there is one.

        Raises:
            ConfigError: the file cannot be imported or registers nothing.
        """
        file = self.config.directory / "tools.py"
        if not file.is_file():
            return
        spec = importlib.util.spec_from_file_location(f"butlers_roster_{self.name}", file)
        if spec is None or spec.loader is None:
            raise ConfigError(file, found=Missing("no module"), expected="a Python file")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise ConfigError(
                file, found=Missing(describe(error)), expected="importable Python"
            ) from error
        register = getattr(module, "register", None)
        if not callable(register):
            raise ConfigError(
                file, key="register", found=Missing(), expected="def register(butler: Butler)"
            )
        register(self)
