"""pydantic-ai: a model asks for four tools at once, async and blocking ones; two agents run in parallel."""

import asyncio
import sys

import httpx
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

URL = sys.argv[1]
model = OpenAIChatModel(
    "gpt-test", provider=OpenAIProvider(base_url=f"{URL}/v1", api_key="sk-test")
)
agent = Agent(model)


@agent.tool_plain
async def search(n: int) -> str:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    print("searched", n)
    return answer.json()["n"]


@agent.tool_plain
def look(n: int) -> str:
    answer = httpx.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    print("looked", n)
    return answer.json()["n"]


async def ask(n):
    result = await agent.run(f"question {n}")
    print(n, result.output)


async def main():
    await asyncio.gather(*(ask(n) for n in range(3)))


asyncio.run(main())
