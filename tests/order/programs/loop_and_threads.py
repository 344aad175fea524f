"""Threads that call back into an event loop: `call_soon_threadsafe` and `run_coroutine_threadsafe`."""

import asyncio
import sys
import threading

import httpx
import requests

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": f"async{n}", "ms": n * 5 % 20})
    print("loop", answer.json()["n"])
    return n


def work(loop, client, n):
    requests.get(f"{URL}/wait", params={"n": f"thread{n}", "ms": n * 7 % 20}, timeout=10)
    loop.call_soon_threadsafe(print, "from thread", n)
    print("got", asyncio.run_coroutine_threadsafe(ask(client, n), loop).result())


async def main():
    loop = asyncio.get_running_loop()
    async with httpx.AsyncClient() as client:
        threads = [threading.Thread(target=work, args=(loop, client, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))


asyncio.run(main())
