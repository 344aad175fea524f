"""A shop agent on Pydantic AI: a typed answer, a tool that asks the model to try again."""

import asyncio
from dataclasses import dataclass

from pydantic_ai import Agent, ModelRetry, RunContext


@dataclass
class Shop:
    prices: dict[str, int]


agent = Agent("anthropic:claude-sonnet-4-5", deps_type=Shop, instructions="You sell.")


@agent.tool
def price(ctx: RunContext[Shop], item: str) -> int:
    """What an item costs."""
    if item not in ctx.deps.prices:
        raise ModelRetry(f"no {item}; there are {sorted(ctx.deps.prices)}")
    return ctx.deps.prices[item]


@agent.tool_plain
async def order(item: str, quantity: int) -> str:
    """Order some of an item."""
    return f"ordered {quantity} {item}"


async def main() -> None:
    result = await agent.run("Three cups, please.", deps=Shop({"cup": 4, "plate": 6}))
    print("agent:", result.output)
    print("tokens:", result.usage.input_tokens, result.usage.output_tokens)


asyncio.run(main())
