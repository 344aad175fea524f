"""Calls of httpx2 at once, with `as_completed`."""

import asyncio
import sys

import httpx2

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    return answer.json()["n"]


async def main():
    async with httpx2.AsyncClient() as client:
        for done in asyncio.as_completed([ask(client, n) for n in range(10)]):
            print("done", await done)


asyncio.run(main())
