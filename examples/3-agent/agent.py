"""An agent: `python agent.py QUESTION` answers it with the tools that an MCP server offers."""

import asyncio
import os
import sys
from pathlib import Path

import anthropic
from mcp import Client, StdioServerParameters, stdio_client

MODEL, MOST_CALLS = "claude-haiku-4-5-20251001", 4
TOOLS = [str(Path(__file__).with_name("tools.py")), os.environ["STOCK"]]


async def answer(question: str) -> tuple[bool, str]:
    """Ask the model, and do what it wants of the tools, until it has an answer; or say why not."""
    model = anthropic.AsyncAnthropic(max_retries=2)
    server = StdioServerParameters(command=sys.executable, args=TOOLS)
    async with Client(stdio_client(server)) as tools:
        keys = {"name", "description", "input_schema"}
        offered = [it.model_dump(include=keys) for it in (await tools.list_tools()).tools]
        given = {"model": MODEL, "max_tokens": 500, "tools": offered}
        talk = [{"role": "user", "content": question}]
        for _ in range(MOST_CALLS):
            try:
                reply = await model.messages.create(messages=talk, **given)
            except anthropic.APIError as error:
                return True, f"the model cannot be asked: {error}"
            wanted = [block for block in reply.content if block.type == "tool_use"]
            if not wanted:
                return False, "".join(block.text for block in reply.content)
            talk.append({"role": "assistant", "content": reply.content})
            talk.append({"role": "user", "content": [await use(tools, each) for each in wanted]})
    return True, f"no answer after {MOST_CALLS} calls of the model"


async def use(tools: Client, block: anthropic.types.ToolUseBlock) -> dict:
    """Call a tool; what it says is for the model, also when it refuses."""
    said = await tools.call_tool(block.name, block.input)
    result = {"type": "tool_result", "tool_use_id": block.id, "is_error": bool(said.is_error)}
    return result | {"content": said.content[0].text}


failed, text = asyncio.run(answer(sys.argv[1]))
sys.exit(text if failed else print(text))
