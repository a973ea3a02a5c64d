"""Calls one MCP tool of another butler, with a deadline for each stage."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from butlers import faults
from butlers.log import describe


#: Only for the planted fault: what failed calls leave open.
_HELD: list[Any] = []


class CallProblem(Exception):
    """A call that brought no answer.

    Args:
        error_class: `target_unavailable`, `timeout` or `validation_error`.
    """

    def __init__(self, message: str, *, error_class: str) -> None:
        super().__init__(message)
        self.error_class = error_class


async def call(
    url: str, tool: str, arguments: Mapping[str, Any], *, connect_timeout_s: float,
    timeout_s: float, headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Connect, call one tool, disconnect.

    Args:
        url: the target's `/sse`.
        arguments: of the tool.
        connect_timeout_s: until the target has answered `initialize`.
        timeout_s: from there until the tool's answer.

    Raises:
        CallProblem: with the outcome class that fits the stage.
    """
    from mcp.client.session import ClientSession
    from mcp.client.sse import sse_client
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    # Not `call_tool`: that asks for the list of tools behind each answer, and a target that stops
    # has hung up by then.
    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
    reached = False
    answer = None
    try:
        async with asyncio.timeout(connect_timeout_s) as limit:
            async with (
                sse_client(
                    url, headers=dict(headers or {}), timeout=connect_timeout_s,
                    sse_read_timeout=timeout_s + connect_timeout_s,
                    httpx_client_factory=partial(_http_client, secure=url.startswith("https:")),
                ) as (read, write),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                reached = True
                limit.reschedule(asyncio.get_running_loop().time() + timeout_s)
                reply = await session.send_request(request, CallToolResult)
                if faults.on("answer-lost-at-stop"):
                    await session.list_tools()
                answer = reply
    except Exception as error:
        # An answer in hand counts, also when the target hung up before we did: it may be stopping.
        if faults.on("failures-held"):
            _HELD.append(open(os.devnull))  # noqa: PTH123, SIM115
        if answer is None:
            raise _problem(
                error, reached=reached, connect_timeout_s=connect_timeout_s, timeout_s=timeout_s
            ) from error
    if answer.is_error:
        raise CallProblem(_text(answer), error_class="validation_error")
    return _body(answer)


def _http_client(
    headers: Any = None, timeout: Any = None, auth: Any = None, *, secure: bool
) -> Any:
    import httpx2

    # Without certificates no TLS is trusted, and none is spoken where the target's URL is plain.
    context = _certificates() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, verify=context)


@cache
def _certificates() -> Any:
    """Read once: reading them takes longer than a call between butlers does."""
    import httpx2

    return httpx2.create_ssl_context()


def _problem(
    error: Exception, *, reached: bool, connect_timeout_s: float, timeout_s: float
) -> CallProblem:
    if not isinstance(error, TimeoutError):
        return CallProblem(describe(error), error_class="target_unavailable")
    if not reached:
        return CallProblem(
            f"no MCP handshake within {connect_timeout_s:g} s", error_class="target_unavailable"
        )
    word = "internal_error" if faults.on("timeout-misnamed") else "timeout"
    return CallProblem(f"no answer within {timeout_s:g} s", error_class=word)


def _text(answer: Any) -> str:
    return " ".join(getattr(block, "text", "") for block in answer.content).strip() or "refused"


def _body(answer: Any) -> dict[str, Any]:
    if isinstance(answer.structured_content, dict):
        return answer.structured_content
    try:
        body = json.loads(_text(answer))
    except ValueError as error:
        raise CallProblem("the answer is no JSON", error_class="internal_error") from error
    if not isinstance(body, dict):
        raise CallProblem("the answer is no JSON object", error_class="internal_error")
    return body
