"""What a tool is: what `butler.add_tool` keeps and a module offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

ToolFunction = Callable[..., Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One MCP tool; `domain` tools are what a session may use."""

    name: str
    function: ToolFunction
    description: str
    domain: bool
