"""An MCP server over stdio that logs to stderr, and a client that prints to both streams in between."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = """
import json, sys
print("server starts", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "calculator", "version": "1"}
    elif method == "tools/list":
        result = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
    else:
        print("server handles", message["params"]["arguments"], file=sys.stderr, flush=True)
        result = {"content": [{"type": "text", "text": "42"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
print("server ends", file=sys.stderr, flush=True)
"""


async def main():
    server = StdioServerParameters(command=sys.executable, args=["-c", SERVER])
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        print("tools", [tool.name for tool in (await session.list_tools()).tools])
        for n in range(3):
            print("client asks", n, file=sys.stderr, flush=True)
            answer = await session.call_tool("add", {"a": n})
            print(answer.content[0].text)


asyncio.run(main())
