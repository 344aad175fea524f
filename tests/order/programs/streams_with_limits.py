"""Streams of which each has its own limits: a total one, one for each piece, and one of the whole group."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def read(client, n):
    pieces = 0
    try:
        async with asyncio.timeout(0.02 + n * 0.012):
            query = {"pieces": 8, "ms": 4 + n}
            async with client.stream("GET", f"{URL}/sse", params=query) as answer:
                lines = answer.aiter_lines()
                while True:
                    line = await asyncio.wait_for(anext(lines), 0.011)
                    if line:
                        pieces += 1
                        print(n, line)
    except StopAsyncIteration:
        print("ended", n, pieces)
    except TimeoutError:
        print("late", n, pieces)


async def main():
    async with httpx.AsyncClient() as client:
        try:
            async with asyncio.timeout(0.09):
                await asyncio.gather(*(read(client, n) for n in range(6)))
        except TimeoutError:
            print("all late")


asyncio.run(main())
