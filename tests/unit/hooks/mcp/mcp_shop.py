"""An MCP server for tests: tools with hints, one that fails, one that reports progress.

Runs under mcp 1.x and 2.x: `mcp_shop.py NOTES` over stdio, `mcp_shop.py NOTES http` over HTTP, on a
port that it prints. Leaves a line in NOTES each time it starts or works: a replay must not.
"""

import socket
import sys
from pathlib import Path

try:
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:  # mcp 1.x
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server
from mcp.types import ToolAnnotations

server = Server("shop")
READ = ToolAnnotations.model_validate({"readOnlyHint": True})
GONE = ToolAnnotations.model_validate({"readOnlyHint": False, "destructiveHint": True})


def note(line: str) -> None:
    with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


@server.tool(annotations=READ)
def stock(item: str) -> int:
    """How many there are."""
    note(f"stock {item}")
    return len(item)


@server.tool(annotations=GONE)
def discard(item: str) -> str:
    """Throw away."""
    raise ValueError(f"{item} is glued on")


@server.tool()
async def pack(count: int, ctx: Context) -> str:
    """Pack, and say how far it is."""
    for done in range(count):
        await ctx.report_progress(done + 1, count, f"box {done + 1}")
    return "packed"


def serve_http() -> None:
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(config).run(sockets=[listening])


note("started")
if sys.argv[2:] == ["http"]:
    serve_http()
else:
    server.run("stdio")
