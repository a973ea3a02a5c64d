"""The tools of a butler as MCP clients see them: the schema of each, checked calls, their answers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, get_type_hints

import mcp_types
import pydantic_core
from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from butlers.errors import ButlerError, StartError
from butlers.log import Log, describe
from butlers.tool import Tool, ToolFunction


class Toolbox:
    """Tools by name.

    Args:
        tools: what is offered.
        log: is given what a tool did not mean to raise.

    Raises:
        StartError: two tools have one name, or a signature that no schema describes.
    """

    def __init__(self, tools: Iterable[Tool], *, log: Log) -> None:
        self._log = log
        self._calls: dict[str, TypeAdapter[Any]] = {}
        self.offered: list[mcp_types.Tool] = []
        for tool in tools:
            if tool.name in self._calls:
                raise StartError(f"cannot offer tool {tool.name}: two tools have this name")
            try:
                call: TypeAdapter[Any] = TypeAdapter(_explicit(tool.function))
                schema = call.json_schema(schema_generator=_Untitled)
            except Exception as error:  # whatever a signature may hold
                raise StartError(f"cannot offer tool {tool.name}: {describe(error)}") from error
            self._calls[tool.name] = call
            self.offered.append(
                mcp_types.Tool(name=tool.name, description=tool.description, input_schema=schema)
            )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> mcp_types.CallToolResult:
        """Call a tool; whatever prevents its answer is an answer that says why."""
        if name not in self._calls:
            return refusal(f"Unknown tool: {name!r}")
        try:
            # Checks the arguments and calls the function, which begins when it is awaited.
            work = self._calls[name].validate_python(dict(arguments))
        except ValidationError as error:
            return refusal(str(error))
        try:
            value = pydantic_core.to_jsonable_python(await work)
        except ButlerError as error:
            return refusal(str(error))
        except Exception as error:  # the edge of a call: its failure stays its own
            self._log.warning("tool.failed", tool=name, error=describe(error))
            return refusal(f"Error calling tool {name!r}: {error}")
        text = pydantic_core.to_json(value).decode()
        return mcp_types.CallToolResult(content=[_text(text)], structured_content=value)


def refusal(reason: str) -> mcp_types.CallToolResult:
    """What a call is answered with that brought nothing."""
    return mcp_types.CallToolResult(content=[_text(reason)], is_error=True)


def _text(text: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(type="text", text=text)


def _explicit(function: ToolFunction) -> ToolFunction:
    """With types for annotations: of a method, or a file that is no module, pydantic finds no names."""

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return await function(*args, **kwargs)

    call.__annotations__ = get_type_hints(function, include_extras=True)
    return call


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that are names written again: a model reads and pays for every word."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False
