"""A shop agent on the OpenAI Agents SDK: streamed, with a sync and an async function tool."""

import asyncio

from agents import Agent, Runner, function_tool, set_tracing_disabled

set_tracing_disabled(True)


@function_tool
def price(item: str) -> int:
    """What an item costs."""
    return {"cup": 4, "plate": 6}[item]


@function_tool
async def order(item: str, quantity: int) -> str:
    """Order some of an item."""
    await asyncio.sleep(0)
    return f"ordered {quantity} {item}"


async def main() -> None:
    agent = Agent(name="shop", instructions="You sell.", model="gpt-5", tools=[price, order])
    result = Runner.run_streamed(agent, "Three cups, please.")
    async for event in result.stream_events():
        if event.type == "run_item_stream_event" and event.name == "tool_output":
            print("tool:", event.item.output)
    print("agent:", result.final_output)


asyncio.run(main())
