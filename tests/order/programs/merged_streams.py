"""Async generators over streams, merged into one, some of them left early."""

import asyncio
import contextlib
import sys

import httpx

URL = sys.argv[1]


async def lines(client, n):
    params = {"pieces": 4 + n % 2, "ms": 3 + n}
    async with client.stream("GET", f"{URL}/sse", params=params) as answer:
        async for line in answer.aiter_lines():
            if line:
                yield n, line


async def merged(*sources):
    pending = {asyncio.ensure_future(anext(one)): one for one in sources}
    try:
        while pending:
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                source = pending.pop(one)
                with contextlib.suppress(StopAsyncIteration):
                    yield one.result()
                    pending[asyncio.ensure_future(anext(source))] = source
    finally:
        for one in pending:
            one.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def main():
    async with httpx.AsyncClient(timeout=30) as client:
        async for n, line in merged(*(lines(client, n) for n in range(5))):
            print(n, line)
        print("second")
        async with contextlib.aclosing(merged(*(lines(client, n) for n in range(4)))) as both:
            async for n, line in both:
                print(n, line)
                if line.endswith("2"):
                    break
    print("left")


asyncio.run(main())
