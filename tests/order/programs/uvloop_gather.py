"""The same as `gather_httpx`, on uvloop."""

import asyncio
import sys

import httpx
import uvloop

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    print("done", n, answer.json()["n"])


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(ask(client, n) for n in range(10)))


uvloop.run(main())
