"""One running butler: the handle through which tests call it, observe it and take it away."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_core.base import limits
from harness_core.base.errors import NotReady
from harness_core.base.wait import deadline
from harness_core.front.skips import not_run
from harness_core.infrastructure.databases import Database
from harness_core.process import Run
from harness_core.system.parts import Parts, ProcessPart
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.ecosystem.roster import ButlerConfig
from suites.e2e.ecosystem.tools import Tools

__all__ = ["Butler"]


@dataclasses.dataclass(eq=False, slots=True, kw_only=True)
class Butler:
    """One running butler: what an operator sees of it, and may do to it.

    Every method may be awaited in any loop (a test's own included). Those that take it away (kill,
    pause, stop, restart) are for tests marked ``disturbs``, which may leave errors in its log. Where
    one process serves every butler, they skip the test by name.

    Attributes:
        config: what its ``butler.toml`` says.
        port: where it really listens.
        client: calls its tools.
        database: its database.
        command: its command line.
        environment: its whole environment; what is changed here holds from its next start on.
        parts: the system that its process is a part of.
        process: that part.
        run: the run it belongs to.
        folder: where its command runs; where the harness does when ``None``.
        shared: why its process cannot be taken away; empty when it has one of its own.
    """

    config: ButlerConfig
    port: int
    client: Tools
    database: Database
    command: Sequence[str]
    environment: dict[str, str]
    parts: Parts
    process: ProcessPart
    run: Run
    folder: Path | None = None
    shared: str = ""

    @property
    def name(self) -> str:
        """Its name, unique in the roster."""
        return self.config.name

    @property
    def url(self) -> str:
        """Where its tools are called: its MCP endpoint, unless the subject says otherwise."""
        return self.client.url

    @property
    def child(self) -> Any:
        """The process of its current or last life; ``child.log`` is its log."""
        return self.process.child

    @property
    def pid(self) -> int:
        """Process id of its current or last life."""
        pid: int = self.child.pid
        return pid

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
        return await self.client.call(tool, arguments, seconds=seconds, headers=headers)

    async def tools(self) -> dict[str, Mapping[str, Any]]:
        """The tools it offers: name → input schema."""
        return await self.client.list()

    async def status(self) -> Mapping[str, Any]:
        """Its own word on its health and its modules."""
        answer: Mapping[str, Any] = await self.call("status")
        return answer

    async def kill(self) -> None:
        """SIGKILL to its process alone; returns when that, and what outlived it, is gone."""
        await self._act("kill")

    async def pause(self) -> None:
        """SIGSTOP to it and what it started: connections open, nothing answers."""
        await self._act("pause")

    async def resume(self) -> None:
        """SIGCONT after :meth:`pause`."""
        await self._act("resume")

    async def stop(self) -> None:
        """Ask it to shut down and wait for its end."""
        await self._act("stop")

    async def start(self) -> None:
        """Start it again on its port and database, and wait until it serves."""
        await self._act("start")

    async def restart(self) -> None:
        """Stop it (dead or alive) and start it again."""
        await self._act("restart")

    async def _act(self, verb: str) -> None:
        if self.shared:
            not_run("subject", f"cannot {verb} one butler: {self.shared}")
        await self.parts.act(self.process.name, verb)

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
            AssertionError: it still ran after ``seconds``: what cannot start says so, and ends.
        """
        if self.shared:
            not_run("subject", f"cannot start one butler: {self.shared}")

        async def start() -> tuple[int, str]:
            async with self.run.child(
                self.command,
                name=f"{self.name}-attempt",
                env=self.environment | dict(environment or {}),
                cwd=self.folder,
                evidence=self.process.evidence,
            ) as child:
                try:
                    with deadline(f"see {child.name} end", seconds=seconds, tail=child.tail):
                        returncode = await child.wait()
                except NotReady as error:
                    raise AssertionError(
                        f"a process of {self.name} that cannot start, or cannot have its port, ends: {error}"
                    ) from error
                return returncode, child.log.read_text(encoding="utf-8")

        return await self.parts.loop.call(start)
