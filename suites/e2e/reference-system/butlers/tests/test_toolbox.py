"""Tools as MCP clients see them: what is offered, what is refused and in which words."""

import asyncio
from typing import Annotated, Any

import pytest
from butlers.errors import ButlerError, StartError
from butlers.log import Log
from butlers.tool import Tool
from butlers.toolbox import Toolbox
from pydantic import Field


async def weigh(kilos: Annotated[float, Field(description="weight", gt=0)]) -> dict[str, Any]:
    """Record a weight."""
    if kilos > 500:
        raise ButlerError("cannot weigh that: the scale ends at 500")
    return {"kilos": kilos, "per_stone": 1 / (kilos - 6)}


class Scales:
    async def weigh(self, kilos: "Annotated[float, Field(gt=0)]") -> "dict[str, Any]":
        return {"kilos": kilos}


def toolbox(*functions: Any) -> Toolbox:
    tools = [
        Tool(name=f.__name__, function=f, description="Record a weight.", domain=True)
        for f in functions
    ]
    return Toolbox(tools, log=Log("x"))


def said(name: str, arguments: dict[str, Any]) -> str:
    """The text of a refusal."""
    answer = asyncio.run(toolbox(weigh).call(name, arguments))
    assert answer.is_error
    return answer.content[0].text


def test_a_tool_is_offered_with_the_schema_of_its_signature() -> None:
    """Types, bounds and descriptions; names are not written twice, as titles."""
    (offered,) = toolbox(weigh).offered

    assert ("weigh", "Record a weight.") == (offered.name, offered.description)
    assert {
        "type": "object",
        "properties": {
            "kilos": {"type": "number", "description": "weight", "exclusiveMinimum": 0}
        },
        "required": ["kilos"],
        "additionalProperties": False,
    } == offered.input_schema


def test_a_call_is_answered_as_text_and_as_an_object() -> None:
    """Both say the same; a number may come as text, as it does from some clients."""
    answer = asyncio.run(toolbox(weigh).call("weigh", {"kilos": "8"}))

    assert {"kilos": 8.0, "per_stone": 0.5} == answer.structured_content
    assert '{"kilos":8.0,"per_stone":0.5}' == answer.content[0].text
    assert not answer.is_error


def test_a_method_can_be_a_tool() -> None:
    """Its annotations are looked up where it was written, also when they are text."""
    answer = asyncio.run(toolbox(Scales().weigh).call("weigh", {"kilos": 8}))

    assert {"kilos": 8.0} == answer.structured_content


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("weigh", {}, "kilos"),
        ("weigh", {"kilos": -1}, "greater than 0"),
        ("weigh", {"kilos": 8, "stranger": 1}, "stranger"),
        ("weigh", {"kilos": 501}, "cannot weigh that: the scale ends at 500"),
        ("weigh", {"kilos": 6}, "Error calling tool 'weigh': float division by zero"),
        ("wiegh", {"kilos": 8}, "Unknown tool: 'wiegh'"),
    ],
)
def test_a_refusal_says_what_is_wrong(name: str, arguments: dict[str, Any], words: str) -> None:
    """Every call is answered, whatever prevents it."""
    assert words in said(name, arguments)


def test_what_no_tool_means_to_raise_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """An operator sees it too; a refusal that was meant is no news."""
    said("weigh", {"kilos": 501})
    assert "" == capsys.readouterr().err
    said("weigh", {"kilos": 6})
    assert "tool.failed tool=weigh" in capsys.readouterr().err


def test_what_cannot_be_offered_stops_the_start() -> None:
    """Two tools of one name, and a signature that no schema describes."""
    async def odd(what: Log) -> dict[str, Any]:
        return {}

    with pytest.raises(StartError, match="cannot offer tool weigh: two tools have this name"):
        toolbox(weigh, weigh)
    with pytest.raises(StartError, match="cannot offer tool odd: "):
        toolbox(odd)
