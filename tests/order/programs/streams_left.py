"""Streams read at once. One is closed after its second line, while the others come to their ends."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def read(client, n):
    lines = 0
    async with client.stream("GET", f"{URL}/sse", params={"n": n, "pieces": 4}) as answer:
        async for line in answer.aiter_lines():
            if line:
                lines += 1
                print(n, line)
                if n % 2 and lines == 2:
                    break
    print(n, "is closed")


async def main():
    async with httpx.AsyncClient() as client:
        tasks = [asyncio.create_task(read(client, n)) for n in range(6)]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        print("first", sorted(map(tasks.index, done)))
        await asyncio.gather(*rest)


asyncio.run(main())
