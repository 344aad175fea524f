"""Many `sleep(0)` after a completion, while other calls complete."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n % 3})
    for turn in range(30):
        await asyncio.sleep(0)
        if turn % 10 == 0:
            print(n, "turn", turn)
    print("done", answer.json()["n"])


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(ask(client, n) for n in range(6)))


asyncio.run(main())
