"""One running butler: the handle through which tests call it, look at it and take it away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness_core import limits
from harness_core.db import Database
from suites.e2e.life import ChildSeen, Life
from suites.e2e.mcp_client import ToolResult
from suites.e2e.roster import ButlerConfig
from suites.e2e.tools import Tools
from suites.e2e.visit import Visit

__all__ = ["Butler"]


class Butler:
    """One running butler: what an operator sees of it, and may do to it.

    Every method may be called from any trio loop (a test's own included). Those that take it away
    (kill, pause, stop, restart) are for tests marked ``disturbs``, which have it to themselves.

    Attributes:
        config: what its ``butler.toml`` says.
        port: where it really listens.
        url: where its tools are called: its MCP endpoint, unless the subject says otherwise.
        database: its database.
        command: its command line.
        environment: its whole environment; what is changed here holds from its next start on.
        child: the process of its current life; ``child.log`` is its log.
    """

    def __init__(
        self,
        config: ButlerConfig,
        *,
        port: int,
        tools: Tools,
        database: Database,
        command: Sequence[str],
        environment: Mapping[str, str],
        life: Life,
        visit: Visit,
    ) -> None:
        self.config = config
        self.name = config.name
        self.port = port
        self.url = tools.url
        self.database = database
        self.command = tuple(command)
        self.environment = dict(environment)
        self._tools = tools
        self._life = life
        self._visit = visit

    @property
    def child(self) -> ChildSeen:
        """The process of its current or last life."""
        return self._life.child

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
        await self._visit.book(tool, arguments, headers)
        return await self._tools.call(tool, arguments, seconds=seconds, headers=headers)

    async def tools(self) -> dict[str, Mapping[str, Any]]:
        """The tools it offers: name → input schema."""
        return await self._tools.list()

    async def status(self) -> Mapping[str, Any]:
        """Its own word on its health and its modules."""
        answer: Mapping[str, Any] = await self.call("status")
        return answer

    def kill(self) -> None:
        """SIGKILL to it and everything it started."""
        self._visit.check_alone(f"kill {self.name}")
        self._life.signal("kill")

    async def wait_for_end(self) -> int:
        """Wait until its process is gone; returns the exit status."""
        return await self._life.wait()

    def pause(self) -> None:
        """SIGSTOP: connections open, nothing answers."""
        self._visit.check_alone(f"pause {self.name}")
        self._life.signal("pause")

    def resume(self) -> None:
        """SIGCONT after :meth:`pause`."""
        self._life.signal("resume")

    async def stop(self) -> None:
        """Ask it to shut down and wait for its end."""
        self._visit.check_alone(f"stop {self.name}")
        await self._life.change("stop", self.environment)

    async def start(self) -> None:
        """Start it again on its port and database, and wait until it serves."""
        await self._life.change("start", self.environment)

    async def restart(self) -> None:
        """Stop it (dead or alive) and start it again."""
        self._visit.check_alone(f"restart {self.name}")
        await self._life.change("restart", self.environment)

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
        return await self._life.attempt(seconds=seconds, environment=environment or {})
