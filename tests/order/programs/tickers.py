"""Timers beside calls: tickers print while calls are in flight."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def tick(name, pause):
    n = 0
    while True:
        await asyncio.sleep(pause)
        n += 1
        print("tick", name, n)


async def main():
    tickers = [
        asyncio.create_task(tick(name, pause)) for name, pause in (("a", 0.007), ("b", 0.011))
    ]
    async with httpx.AsyncClient() as client:
        for n in range(4):
            answer = await client.get(f"{URL}/wait", params={"n": n, "ms": 15})
            print("done", answer.json()["n"])
    for ticker in tickers:
        ticker.cancel()


asyncio.run(main())
