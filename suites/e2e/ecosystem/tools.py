"""How a butler's tools are called: over MCP, or over plain HTTP as ``[tools]`` of the subject file says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2

from harness_core.base import limits
from harness_core.base.wait import deadline
from harness_core.doubles.http import sse_opens
from harness_core.ports import Stage, tcp_accepts
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.mcp import (
    CannotReach,
    ToolResult,
    call_tool,
    certificates,
    list_tools,
    streams_events,
)
from suites.e2e.ecosystem.subject_file import tables_of

__all__ = ["HttpTools", "McpTools", "Tools", "tools_of"]


class Tools(Protocol):
    """Calls a butler's tools."""

    @property
    def url(self) -> str:
        """Where they are."""

    async def call(
        self,
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

    async def list(self) -> dict[str, Mapping[str, Any]]:
        """The tools: name → input schema."""

    def protocol_stage(self, *, seconds: float) -> Stage:
        """When calls can be made."""


class McpTools:
    """Tools over MCP: HTTP/SSE, as the contract says, or streamable HTTP."""

    def __init__(self, port: int, url: str = "") -> None:
        self.port = port
        self.url = url or f"http://127.0.0.1:{port}/sse"

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        seconds: float = limits.MCP_CALL_S,
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        """Call one tool on a connection of its own."""
        return await call_tool(self.url, tool, arguments, seconds=seconds, headers=headers)

    async def list(self) -> dict[str, Mapping[str, Any]]:
        """The tools: name → input schema."""
        return await list_tools(self.url)

    def protocol_stage(self, *, seconds: float) -> Stage:
        """Its event stream opens; without one, its port accepts connections."""
        if not streams_events(self.url):
            return Stage(name="protocol", probe=tcp_accepts(self.port), seconds=seconds)
        return Stage(name="protocol", probe=sse_opens(self.url), seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTools:
    """Tools over plain HTTP and JSON.

    Attributes:
        url: what reports call the place.
        port: where it is.
        call_url: with ``{tool}``.
        list_url: where the list of tools is.
        result: key of the result in an answer; empty when the whole answer is the result.
        error: key of the reason of a refusal.
    """

    url: str
    port: int
    call_url: str
    list_url: str
    result: str
    error: str

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        seconds: float = limits.MCP_CALL_S,
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        """POST the arguments; a status from 400 on, or the key of errors, is a refusal."""
        url = self.call_url.replace("{tool}", tool)
        with deadline(f"call {tool} at {url}", seconds=seconds):
            response = await _request("POST", url, body=dict(arguments or {}), headers=headers)
        value = _json(response)
        refusal = value.get(self.error) if isinstance(value, Mapping) and self.error else None
        if response.status_code >= httpx2.codes.BAD_REQUEST or refusal:
            return ToolResult(is_error=True, text=str(refusal or response.text), value=value)
        if self.result and isinstance(value, Mapping) and self.result in value:
            value = value[self.result]
        text = value if isinstance(value, str) else json.dumps(value)
        return ToolResult(is_error=False, text=text, value=value)

    async def list(self) -> dict[str, Mapping[str, Any]]:
        """GET the list of tools."""
        with deadline(f"list the tools at {self.list_url}", seconds=limits.MCP_CALL_S):
            response = await _request("GET", self.list_url)
        rows = _json(response)
        if not isinstance(rows, list) or response.status_code >= httpx2.codes.BAD_REQUEST:
            message = f"cannot list tools at {self.list_url}: {response.text[:200]}"
            raise CannotReach(message)
        return {str(row["name"]): row.get("input_schema", {}) for row in rows}

    def protocol_stage(self, *, seconds: float) -> Stage:
        """Its port accepts connections; the first call says the rest."""
        return Stage(name="protocol", probe=tcp_accepts(self.port), seconds=seconds)


def tools_of(subject: Subject, *, name: str, port: int) -> Tools:
    """What calls one butler's tools, as the subject file describes."""
    table = tables_of(subject).tools
    own, call, listing = (
        url.replace("{port}", str(port)).replace("{name}", name)
        for url in (table.url, table.call, table.list)
    )
    if table.transport == "mcp":
        return McpTools(port, own)
    return HttpTools(
        url=call.replace("{tool}", ""),
        port=port,
        call_url=call,
        list_url=listing,
        result=table.result,
        error=table.error,
    )


async def _request(
    method: str, url: str, *, body: object = None, headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    try:
        # A proxy of the environment has no business between two processes of one machine.
        async with httpx2.AsyncClient(
            trust_env=False, timeout=None, verify=certificates()
        ) as client:
            return await client.request(method, url, json=body, headers=dict(headers or {}))
    except httpx2.HTTPError as error:
        message = f"cannot reach {url}: {error or type(error).__name__}"
        raise CannotReach(message) from error


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text
