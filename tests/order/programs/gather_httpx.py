"""Ten calls at once with `asyncio.gather`; each prints when it is done."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    print("done", n, answer.json()["n"])


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(ask(client, n) for n in range(10)))


asyncio.run(main())
