"""Streams read with aiohttp, each with a total timeout; lines are printed as they come."""

import asyncio
import sys

import aiohttp

URL = sys.argv[1]


async def read(session, n):
    lines = 0
    timeout = aiohttp.ClientTimeout(total=0.08)
    try:
        params = {"pieces": 8, "ms": 3 * n}
        async with session.get(f"{URL}/sse", params=params, timeout=timeout) as answer:
            async for line in answer.content:
                if line.strip():
                    lines += 1
                    print(n, line.decode().strip())
        print(n, "complete")
    except asyncio.TimeoutError:
        print(n, "timed out after", lines)


async def main():
    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(read(session, n) for n in range(6)))


asyncio.run(main())
