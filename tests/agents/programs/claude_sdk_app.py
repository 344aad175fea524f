"""A shop agent on Claude's Agent SDK, whose tools run inside this program."""

import asyncio

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    TextBlock,
    create_sdk_mcp_server,
    query,
    tool,
)


@tool("price", "What an item costs.", {"item": str})
async def price(args):
    return {"content": [{"type": "text", "text": str({"cup": 4, "plate": 6}[args["item"]])}]}


@tool("order", "Order some of an item.", {"item": str, "quantity": int})
async def order(args):
    text = f"ordered {args['quantity']} {args['item']}"
    return {"content": [{"type": "text", "text": text}]}


async def main() -> None:
    options = ClaudeAgentOptions(
        mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[price, order])},
        allowed_tools=["mcp__shop__price", "mcp__shop__order"],
        system_prompt="You sell.",
        setting_sources=[],
    )
    async for message in query(prompt="Three cups, please.", options=options):
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    print("agent:", block.text)


asyncio.run(main())
