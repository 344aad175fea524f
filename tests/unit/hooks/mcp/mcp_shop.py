"""An MCP server for tests: tools with hints, one that fails, one that reports progress.

`mcp_shop.py NOTES` speaks over stdio and needs no library, because importing the SDK takes longer than all that a test
does with the server. `mcp_shop.py NOTES http` is the SDK's own server (1.x or 2.x) over HTTP, on a port that it prints.
Leaves a line in NOTES each time it starts or works: a replay must not.
"""

import json
import sys
from pathlib import Path

READ = {"readOnlyHint": True}
GONE = {"readOnlyHint": False, "destructiveHint": True}


def note(line: str) -> None:
    with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def stock(item: str) -> int:
    """How many there are."""
    note(f"stock {item}")
    return len(item)


def discard(item: str) -> str:
    """Throw away."""
    raise ValueError(f"{item} is glued on")


def serve_stdio() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue  # a notification
        try:
            answer = {"result": answered(message["method"], message.get("params") or {})}
        except LookupError as error:
            answer = {"error": {"code": -32602, "message": str(error)}}
        send({"id": message["id"], **answer})


def send(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answered(method: str, params: dict) -> dict:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shop", "version": "1.0"},
        }
    if method == "tools/list":
        return {"tools": [described("stock", "item", READ), described("discard", "item", GONE),
                          described("pack", "count", None)]}  # fmt: skip
    if method == "tools/call":
        return called(params["name"], params["arguments"], params.get("_meta") or {})
    raise LookupError(f"no {method} {params.get('name')}")


def described(name: str, parameter: str, hints: dict | None) -> dict:
    kind = "integer" if parameter == "count" else "string"
    schema = {"type": "object", "properties": {parameter: {"type": kind}}, "required": [parameter]}
    return {"name": name, "inputSchema": schema, **({"annotations": hints} if hints else {})}


def called(name: str, arguments: dict, meta: dict) -> dict:
    if name == "pack":
        for done in range(1, arguments["count"] + 1):
            told = {"progress": done, "total": arguments["count"], "message": f"box {done}"}
            params = {"progressToken": meta.get("progressToken"), **told}
            send({"method": "notifications/progress", "params": params})
        return {"content": [{"type": "text", "text": "packed"}]}
    try:
        text = str({"stock": stock, "discard": discard}[name](**arguments))
    except ValueError as error:
        text = f"Error executing tool {name}: {error}"
        return {"content": [{"type": "text", "text": text}], "isError": True}
    return {"content": [{"type": "text", "text": text}]}


def serve_http() -> None:
    import socket

    import uvicorn

    try:
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:  # mcp 1.x
        from mcp.server.fastmcp import FastMCP as Server
    from mcp.types import ToolAnnotations

    server = Server("shop")
    server.tool(annotations=ToolAnnotations.model_validate(READ))(stock)
    server.tool(annotations=ToolAnnotations.model_validate(GONE))(discard)
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
    serve_stdio()
