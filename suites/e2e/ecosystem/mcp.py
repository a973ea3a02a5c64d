"""MCP as any client speaks it, over HTTP/SSE or streamable HTTP: connect, call one tool, leave.

One connection per call: a butler may be killed and restarted between two calls, and a client that
keeps a stream open would test its own reconnecting instead. A test of many calls and no breakage
may keep one: :func:`open_calls`.
"""

from __future__ import annotations

import dataclasses
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Any, Final

import anyio
import httpx2
import trio
import trio.testing
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    TextContent,
)

from harness_core.base import limits
from harness_core.base.groups import lone_error
from harness_core.base.slowness import patience
from harness_core.base.wait import deadline

__all__ = [
    "Call",
    "CannotReach",
    "ToolResult",
    "call_in_turn",
    "call_tool",
    "certificates",
    "list_tools",
    "open_calls",
    "streams_events",
]

#: A call that is answered with one of these was read and refused, as MCP asks for unknown tools and for
#: arguments that a tool cannot take; any other error says nothing of the call.
_REFUSALS: Final = (INVALID_PARAMS, METHOD_NOT_FOUND)


class CannotReach(Exception):  # noqa: N818 - an outcome that a test may expect
    """The butler did not answer the MCP handshake or the call: refused, reset or closed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The answer to one tool call.

    Attributes:
        is_error: the tool, or the validation of its arguments, failed.
        text: the answer as text.
        value: the answer as data: the structured content, or the text read as JSON, or the text.
    """

    is_error: bool
    text: str
    value: Any


#: Calls a tool with arguments.
Call = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]


async def call_tool(
    url: str,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    seconds: float = limits.MCP_CALL_S,
    headers: Mapping[str, str] | None = None,
) -> ToolResult:
    """Call one tool.

    Raises:
        NotReady: no answer within ``seconds``.
        CannotReach: no server answers there, or the connection broke.
    """
    answer = None
    with deadline(f"call {tool} at {url}", seconds=seconds):
        try:
            async with _session(url, headers=headers) as session:
                answer = await _called(session, tool, arguments or {})
        except CannotReach:
            # A butler that stops hangs up behind its answer.
            if answer is None:
                raise
    return _result(answer)


async def call_in_turn(
    url: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    seconds: float = limits.MCP_CALL_S,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> ToolResult:
    """Call one tool, and report as started once the butler must have read the call.

    What is started after that has come later, which a test of an order needs to know. The proof is
    an answer to ``status``, sent behind the call on the same connection.

    Raises:
        NotReady: no answer within ``seconds``.
        CannotReach: no server answers there, or the connection broke.
    """
    answers: list[Any] = []
    with deadline(f"call {tool} at {url}", seconds=seconds):
        async with _session(url) as session, trio.open_nursery() as nursery:

            async def call() -> None:
                answers.append(await _called(session, tool, arguments))

            nursery.start_soon(call)
            # The call is on the wire when nothing here can go on without the butler.
            await trio.testing.wait_all_tasks_blocked()
            await _called(session, "status", {})
            task_status.started()
    return _result(answers[0])


async def _called(session: ClientSession, tool: str, arguments: Mapping[str, Any]) -> Any:
    """One call and its answer.

    The session's own ``call_tool`` asks for the list of tools behind each answer; a butler that
    stops has answered by then, and hung up.
    """
    params = CallToolRequestParams(name=tool, arguments=dict(arguments))
    try:
        return await session.send_request(CallToolRequest(params=params), CallToolResult)
    except MCPError as error:
        if error.code not in _REFUSALS:
            raise
        told = [TextContent(type="text", text=error.message)]
        return CallToolResult(content=told, is_error=True)


def _result(answer: Any) -> ToolResult:
    texts = [block.text for block in answer.content if block.type == "text"]
    text = "\n".join(texts)
    value: Any = answer.structured_content
    if value is None:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    elif isinstance(value, dict) and value.keys() == {"result"}:
        # FastMCP wraps an answer that is no object.
        value = value["result"]
    return ToolResult(is_error=bool(answer.is_error), text=text, value=value)


@asynccontextmanager
async def open_calls(url: str, *, seconds: float = limits.MCP_CALL_S) -> AsyncIterator[Call]:
    """Connect once, for calls one after the other.

    Args:
        url: of the butler.
        seconds: by when each call is answered.

    Raises:
        CannotReach: no server answers there, or the connection broke.
    """
    async with _session(url) as session:

        async def call(tool: str, arguments: Mapping[str, Any]) -> ToolResult:
            with deadline(f"call {tool}", seconds=seconds):
                try:
                    return _result(await _called(session, tool, arguments))
                except MCPError as error:
                    raise CannotReach(f"cannot call {tool} at {url}: {error}") from error

        yield call


async def list_tools(
    url: str, *, seconds: float = limits.MCP_CALL_S
) -> dict[str, Mapping[str, Any]]:
    """The tools a butler offers: name → input schema.

    Raises:
        NotReady: no answer within ``seconds``.
        CannotReach: no server answers there, or the connection broke.
    """
    with deadline(f"list the tools at {url}", seconds=seconds):
        async with _session(url) as session:
            answer = await session.list_tools()
    return {tool.name: tool.input_schema for tool in answer.tools}


@asynccontextmanager
async def _session(
    url: str, *, headers: Mapping[str, str] | None = None
) -> AsyncIterator[ClientSession]:
    try:
        async with (
            lone_error(),
            _streams(url, headers=dict(headers or {})) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            yield session
    except (
        httpx2.HTTPError,
        MCPError,
        OSError,
        anyio.BrokenResourceError,
        trio.BrokenResourceError,
    ) as error:
        message = f"cannot speak MCP to {url}: {error or type(error).__name__}"
        raise CannotReach(message) from error


def streams_events(url: str) -> bool:
    """Whether a server is spoken to over HTTP/SSE, as its address says; over streamable HTTP otherwise."""
    return url.endswith("/sse")


@asynccontextmanager
async def _streams(url: str, *, headers: dict[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    timeout_s = patience(limits.MCP_CALL_S)
    async with AsyncExitStack() as stack:
        if streams_events(url):
            transport = sse_client(
                url, headers=headers, timeout=timeout_s, httpx_client_factory=_http_client
            )
        else:
            client = _http_client(headers=headers, timeout=httpx2.Timeout(timeout_s))
            await stack.enter_async_context(client)
            transport = streamable_http_client(url, http_client=client)
        yield await stack.enter_async_context(transport)


def _http_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, verify=certificates())


@cache
def certificates() -> ssl.SSLContext:
    """Read once: reading them takes longer than a call does (16 ms), and calls at once wait for each other."""
    return httpx2.create_ssl_context()
