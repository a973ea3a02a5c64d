"""Many calls to one butler, and calls whose order is certain.

Over MCP a conversation keeps one connection, which spares a handshake per call; a butler whose
tools are reached in another way is called as ever.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio
import trio.testing

from harness_core.base import limits
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.mcp import Call, ToolResult, call_in_turn, open_calls
from suites.e2e.ecosystem.tools import McpTools

__all__ = ["Conversation", "ask_in_turn", "open_conversation"]


class Conversation:
    """Calls to one butler, one after the other; built by :func:`open_conversation`."""

    def __init__(self, name: str, call: Call) -> None:
        self._name = name
        self._call = call

    async def try_call(self, tool: str, **arguments: Any) -> ToolResult:
        """Call a tool that may refuse."""
        return await self._call(tool, arguments)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that must succeed, and return its answer as data.

        Raises:
            AssertionError: the tool answered with an error.
        """
        answer = await self.try_call(tool, **arguments)

        assert not answer.is_error, f"{self._name}.{tool} refused {arguments}: {answer.text}"
        return answer.value


@asynccontextmanager
async def open_conversation(
    butler: Butler, *, seconds: float = limits.MCP_CALL_S
) -> AsyncIterator[Conversation]:
    """Call a butler that stays up meanwhile.

    Args:
        butler: which.
        seconds: by when each call is answered.

    Raises:
        CannotReach: no server answers there, or the connection broke.
    """
    if not _speaks_mcp(butler):
        yield Conversation(butler.name, partial(butler.try_call, seconds=seconds))
        return
    async with open_calls(butler.url, seconds=seconds) as call:
        yield Conversation(butler.name, call)


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
        CannotReach: no server answers there, or the connection broke.
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
    return isinstance(butler.client, McpTools)
