"""A task group in which one of six calls fails while others are under way; each task has its own client."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(n):
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    if n == 3:
        raise ValueError(f"the tool broke at {n}")
    print("done", n, answer.json()["n"])


async def main():
    await asyncio.to_thread(print, "starting")
    async with asyncio.TaskGroup() as group:
        for n in range(6):
            group.create_task(ask(n))


asyncio.run(main())
