"""Six server-sent event streams read at once; chunks are printed as they come."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def read(client, n):
    params = {"n": n, "pieces": 6, "ms": 3 + n}
    async with client.stream("GET", f"{URL}/sse", params=params) as answer:
        async for line in answer.aiter_lines():
            if line:
                print(n, line)
    print(n, "end")


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(read(client, n) for n in range(6)))


asyncio.run(main())
