"""A stream breaks off; the traceback ends the program."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def read(client, n):
    params = {"n": n, "pieces": 4, "ms": 5, "cut": int(n == 1)}
    async with client.stream("GET", f"{URL}/sse", params=params) as answer:
        async for line in answer.aiter_lines():
            if line:
                print(n, line)


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(read(client, n) for n in range(3)))


asyncio.run(main())
