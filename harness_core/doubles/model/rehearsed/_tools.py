"""The tools that a request offers, and a call of one when its schema takes the arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from harness_core.doubles.model._request import MCP, MessagesRequest, Tool, bare
from harness_core.doubles.model.rehearsed._prompt import Done
from harness_core.doubles.model.rehearsed._shown import shown
from harness_core.doubles.turns import ResultOf, Use

_SHOWN_NAMES: Final = 12
_SHOWN_CHARS: Final = 200


class Missing(Exception):  # noqa: N818 - what is missing, not what went wrong
    """What a turn needs and the request does not have."""


def tool_named(name: str, tools: Sequence[Tool]) -> Tool | None:
    """The tool that a row or a subject file calls by its bare name."""
    return next((tool for tool in tools if bare(tool.name) == name), None)


def offered(request: MessagesRequest, *, cli: bool, servers: frozenset[str]) -> tuple[Tool, ...]:
    """The tools of a request that belong to the subject.

    Args:
        request: what the model is asked.
        cli: the caller is a command line, whose own tools (shell, files, schedulers) are never
            called: only those of MCP servers are the subject's.
        servers: the subject's MCP servers; empty for all.
    """
    if request.tool_choice == "none":
        return ()
    mcp = [tool for tool in request.tools if tool.name.startswith(MCP)]
    if not cli and not mcp:
        return request.tools
    return tuple(
        tool for tool in mcp if not servers or tool.name.removeprefix(MCP).split("__")[0] in servers
    )


def call_of(
    use: Use, tools: Sequence[Tool], done: Sequence[Done], *, obeyed: bool
) -> tuple[str, dict[str, Any]]:
    """The tool that a turn calls, by its whole name, and the arguments.

    Args:
        use: the turn.
        tools: what is offered.
        done: the calls so far, for arguments that are results.
        obeyed: orders in a message had it done; who gives them knows no schema, and that the tool
            is there to be called is what counts.

    Raises:
        Missing: the tool is not offered, its schema does not take the arguments, or the result
            that one of them stands for is not there.
    """
    tool = tool_named(use.tool, tools)
    if tool is None:
        names = [bare(each.name) for each in tools]
        more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        listed = ", ".join(names[:_SHOWN_NAMES]) + more if names else "none of the subject's"
        message = f"the tool {use.tool!r} was not offered; offered: {listed}"
        raise Missing(message)
    arguments: dict[str, Any] = _with_results(use.arguments, done)
    error = best_match(Draft202012Validator(tool.input_schema).iter_errors(arguments))
    if error is not None and not obeyed:
        where = ".".join(map(str, error.absolute_path))
        at = f" at {where}" if where else ""
        message = (
            f"the schema of {use.tool!r} does not take {json.dumps(arguments)}{at}: {error.message}"
        )
        raise Missing(message)
    return tool.name, arguments


def _with_results(value: Any, done: Sequence[Done]) -> Any:
    if isinstance(value, ResultOf):
        return _result(value, done)
    if isinstance(value, Mapping):
        return {key: _with_results(inner, done) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_results(inner, done) for inner in value]
    return value


def _result(wanted: ResultOf, done: Sequence[Done]) -> Any:
    call = next((each for each in reversed(done) if bare(each.name) == wanted.tool), None)
    if call is None or call.result is None:
        message = f"{wanted.tool!r} gave no result, of which {wanted.at!r} was needed"
        raise Missing(message)
    found: Any = _data(call.result)
    for key in wanted.at.split("."):
        found = _data(found)
        if isinstance(found, Mapping) and key not in found and "result" in found:
            found = _data(found["result"])  # what MCP wraps an answer in that is no object
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            message = f"the answer of {wanted.tool!r} has no {wanted.at!r}: {shown(call.result, chars=_SHOWN_CHARS)}"
            raise Missing(message) from error
    return found


def _data(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
