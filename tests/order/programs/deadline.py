"""A timeout of 40 ms around calls of 0 to 80 ms: the program prints which ones are late."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    try:
        answer = await asyncio.wait_for(
            client.get(f"{URL}/wait", params={"n": n, "ms": n * 10}), 0.04
        )
    except asyncio.TimeoutError:
        print(n, "late")
    else:
        print(n, "in time", answer.json()["n"])


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(ask(client, n) for n in range(9)))


asyncio.run(main())
