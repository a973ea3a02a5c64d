"""A stock keeper: two tools, served over MCP."""

import json
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

STOCK, server = Path(sys.argv[1]), MCPServer("stock")


@server.tool()
def look(item: str) -> int:
    """How many of an item are there."""
    return json.loads(STOCK.read_text()).get(item, 0)


@server.tool()
def take(item: str, count: int) -> str:
    """Take some of an item out of the stock."""
    if not 0 < count <= look(item):
        raise ValueError(f"{look(item)} of {item} are there")
    STOCK.write_text(json.dumps(json.loads(STOCK.read_text()) | {item: look(item) - count}))
    return f"took {count} of {item}"


server.run()
