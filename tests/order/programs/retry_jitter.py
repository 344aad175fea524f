"""Retries with jitter, in parallel."""

import asyncio
import random
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    for attempt in range(4):
        params = {"n": n, "ms": n % 3 * 5, "attempt": attempt}
        answer = await client.get(f"{URL}/flaky", params=params)
        if answer.status_code == 200:
            print(n, "answered after", attempt)
            return
        pause = random.uniform(0.005, 0.02) * 2**attempt
        print(n, "retries in", round(pause, 4))
        await asyncio.sleep(pause)
    print(n, "gave up")


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(ask(client, n) for n in range(6)))


asyncio.run(main())
