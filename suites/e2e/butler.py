"""One running butler: the handle through which tests call it, look at it and take it away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, TypeVar

from harness_core import limits
from harness_core.bridge import Loop
from harness_core.db import Database
from harness_core.errors import HarnessError
from harness_core.evidence import Evidence
from harness_core.net import PortLease, Stage, await_ready, listener_stages, sse_opens
from harness_core.process import Child, Run
from harness_core.wait import deadline
from suites.e2e.mcp_client import CannotReach, ToolResult, call_tool, list_tools
from suites.e2e.roster import ButlerConfig

__all__ = ["Butler", "StartChild"]

T = TypeVar("T")

#: How a butler's process is started: ``Run.child``, or a container that has the same handle.
StartChild = Callable[..., AbstractAsyncContextManager[Any]]

#: Start of a daemon, migrations included. Slowest seen, four at once on 2 loaded cores: 6 s.
_BOOT_S: Final = 60.0

#: A butler drains its sessions for up to 30 s before it ends (contract, ``shutdown()``).
_STOP_S: Final = 40.0


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
        start_child: StartChild | None = None,
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
        self._start_child = start_child or run.child
        self._owned = start_child is None
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

    async def wait_for_end(self) -> int:
        """Wait until its process is gone; returns the exit status."""
        return await self._on_loop(self.child.wait)

    def pause(self) -> None:
        """SIGSTOP: connections open, nothing answers."""
        self.child.pause()

    def resume(self) -> None:
        """SIGCONT after :meth:`pause`."""
        self.child.resume()

    async def stop(self) -> None:
        """Ask it to shut down and wait for its end."""
        await self._on_loop(self.stop_here)

    async def start(self) -> None:
        """Start it again on its port and database, and wait until it serves."""
        await self._on_loop(self.start_here)

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
        await self.stop_here()
        await self.start_here()

    async def stop_here(self) -> None:
        """:meth:`stop`, for a caller that is on the loop the butler lives on."""
        await self._life.aclose()

    async def start_here(self) -> None:
        """:meth:`start`, for a caller that is on the loop the butler lives on."""
        self._lease.hand_over()
        child = await self._life.enter_async_context(
            self._start_child(
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
                *(listener_stages(child, self.port, seconds=_BOOT_S) if self._owned else ()),
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
