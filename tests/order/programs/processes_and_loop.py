"""A `ProcessPoolExecutor` behind an event loop, beside async calls and ticks."""

import asyncio
import multiprocessing
import sys
import urllib.request
from concurrent.futures import ProcessPoolExecutor

import httpx


def ask(n, url):
    with urllib.request.urlopen(f"{url}/wait?n={n}&ms={n * 7 % 30}") as answer:
        return n, len(answer.read())


async def in_loop(client, n, url):
    await client.get(f"{url}/wait", params={"n": n, "ms": n * 7 % 30})
    print("loop", n)


async def tick(stop):
    ticks = 0
    while ticks < 3 or not stop.is_set():
        await asyncio.sleep(0.05)
        ticks += 1
    print("stopped")


async def main(url):
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        async with httpx.AsyncClient(timeout=30) as client:
            ticking = asyncio.create_task(tick(stop))
            others = [asyncio.create_task(in_loop(client, 50 + n, url)) for n in range(5)]
            for one in asyncio.as_completed(
                [loop.run_in_executor(pool, ask, n, url) for n in range(6)]
            ):
                print("process", *await one)
            await asyncio.gather(*others)
            stop.set()
            await ticking


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
