"""Timeouts inside timeouts."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    try:
        await asyncio.wait_for(client.get(f"{URL}/wait", params={"n": n, "ms": n * 12}), 0.03)
        print(n, "answered")
    except asyncio.TimeoutError:
        print(n, "inner timeout")
        await asyncio.sleep(0.02)
        print(n, "slept")


async def main():
    async with httpx.AsyncClient() as client:
        for first in (0, 2):
            try:
                jobs = asyncio.gather(*(ask(client, n) for n in range(first, first + 4)))
                await asyncio.wait_for(jobs, 0.045)
            except asyncio.TimeoutError:
                print("outer timeout")


asyncio.run(main())
