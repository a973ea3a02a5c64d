"""Many calls to one butler, and calls whose order is certain.

Over MCP a conversation keeps one connection, which spares a handshake per call; a butler whose
tools are reached in another way is called as ever.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import trio
import trio.testing

from harness_core.base import limits
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.mcp import ToolResult, call_in_turn, open_client

__all__ = ["Conversation", "ask_in_turn", "open_conversation"]


class Conversation(Protocol):
    """Calls one after the other."""

    async def try_call(self, tool: str, **arguments: Any) -> ToolResult:
        """Call a tool that may refuse."""

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that must succeed, and return its answer as data.

        Raises:
            AssertionError: the tool answered with an error.
        """


class _CallByCall:
    """A conversation with a butler that keeps no connection."""

    def __init__(self, butler: Butler, *, seconds: float) -> None:
        self._butler = butler
        self._seconds = seconds

    async def try_call(self, tool: str, **arguments: Any) -> ToolResult:
        """Call a tool that may refuse."""
        return await self._butler.try_call(tool, arguments, seconds=self._seconds)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that must succeed."""
        return await self._butler.call(tool, seconds=self._seconds, **arguments)


@asynccontextmanager
async def open_conversation(
    butler: Butler, *, seconds: float = limits.MCP_CALL_S
) -> AsyncIterator[Conversation]:
    """Talk to a butler that stays up meanwhile.

    Args:
        butler: whom.
        seconds: by when each call is answered.

    Raises:
        CannotReach: nobody answers there, or the connection broke.
    """
    if not _speaks_mcp(butler):
        yield _CallByCall(butler, seconds=seconds)
        return
    async with open_client(butler.url, seconds=seconds) as client:
        yield client


async def ask_in_turn(
    butler: Butler,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    seconds: float = limits.MCP_CALL_S,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> ToolResult:
    """Call one tool, and report as started once the butler must have read the call.

    Raises:
        NotReady: no answer within ``seconds``.
        CannotReach: nobody answers there, or the connection broke.
    """
    if _speaks_mcp(butler):
        return await call_in_turn(
            butler.url, tool, arguments, seconds=seconds, task_status=task_status
        )
    answers: list[ToolResult] = []

    async def call() -> None:
        answers.append(await butler.try_call(tool, arguments, seconds=seconds))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        await butler.status()
        task_status.started()
    return answers[0]


def _speaks_mcp(butler: Butler) -> bool:
    return butler.url.endswith("/sse")
