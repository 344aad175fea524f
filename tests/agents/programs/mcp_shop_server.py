"""The shop as an MCP server over stdio."""

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shop")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def price(item: str) -> int:
    """What an item costs."""
    return {"cup": 4, "plate": 6}[item]


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def order(item: str, quantity: int) -> str:
    """Order some of an item."""
    return f"ordered {quantity} {item}"


server.run("stdio")
