"""Calls of aiohttp at once."""

import asyncio
import sys

import aiohttp

URL = sys.argv[1]


async def ask(session, n):
    async with session.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30}) as answer:
        print("head", n)
        body = await answer.json()
        print("body", n, body["n"])


async def main():
    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(ask(session, n) for n in range(10)))


asyncio.run(main())
