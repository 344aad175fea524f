"""Task groups within task groups; gather within them."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 25})
    print("done", answer.json()["n"])
    return n


async def branch(client, n):
    found = await asyncio.gather(*(ask(client, n * 10 + m) for m in range(3)))
    print("branch", n, found)
    if n < 2:
        await asyncio.gather(branch(client, n + 3), ask(client, n * 10 + 7))


async def main():
    async with httpx.AsyncClient() as client:
        tasks = [asyncio.create_task(branch(client, n)) for n in range(3)]
        await asyncio.gather(*tasks)


asyncio.run(main())
