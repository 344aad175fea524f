"""`KeyboardInterrupt` ends the program while calls are in flight."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 10})
    print("done", answer.json()["n"])
    if n == 2:
        raise KeyboardInterrupt


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(ask(client, n) for n in range(6)))


asyncio.run(main())
