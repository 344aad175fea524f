"""A shop agent on Anthropic's SDK whose tools are an MCP server's."""

import asyncio
import sys
from pathlib import Path

import anthropic
from mcp import ClientSession, StdioServerParameters, stdio_client

SHOP = Path(__file__).with_name("mcp_shop_server.py")


async def main() -> None:
    client = anthropic.AsyncAnthropic()
    server = StdioServerParameters(command=sys.executable, args=[str(SHOP)])
    async with stdio_client(server) as streams, ClientSession(*streams) as shop:
        await shop.initialize()
        listed = (await shop.list_tools()).tools
        tools = [
            {"name": one.name, "description": one.description, "input_schema": one.input_schema}
            for one in listed
        ]
        messages = [{"role": "user", "content": "Three cups, please."}]
        while True:
            answer = await client.messages.create(
                model="claude-sonnet-4-5", max_tokens=500, tools=tools, messages=messages
            )
            messages.append({"role": "assistant", "content": answer.content})
            asked = [block for block in answer.content if block.type == "tool_use"]
            if not asked:
                break
            results = []
            for block in asked:
                gave = await shop.call_tool(block.name, block.input)
                print("tool:", block.name, gave.content[0].text)
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": block.id,
                        "content": gave.content[0].text,
                    }
                )
            messages.append({"role": "user", "content": results})
    print("agent:", answer.content[0].text)
    await client.close()


asyncio.run(main())
