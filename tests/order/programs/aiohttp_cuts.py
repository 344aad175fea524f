"""aiohttp with few connections: uploads that are made while they are sent, and streams that the server breaks off."""

import asyncio
import sys

import aiohttp

URL = sys.argv[1]


async def upload(n):
    for part in range(3):
        await asyncio.sleep(0.002 * n)
        print(n, "sends", part)
        yield b"part %d" % part


async def read(session, n):
    params = {"pieces": 4, "ms": 2 * (n % 3), "cut": n % 2}
    body = {"data": upload(n)} if n > 3 else {}
    try:
        async with session.request(
            "POST" if body else "GET", f"{URL}/sse", params=params, **body
        ) as answer:
            print(n, "begins")
            async for piece in answer.content.iter_any():
                print(n, piece)
        print(n, "complete")
    except aiohttp.ClientError as error:
        print(n, type(error).__name__)


async def main():
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=4)) as session:
        await asyncio.gather(*(read(session, n) for n in range(7)))


asyncio.run(main())
