"""Two event loops in two threads."""

import asyncio
import sys
import threading

import httpx

URL = sys.argv[1]


async def ask(client, name, n):
    answer = await client.get(f"{URL}/wait", params={"n": f"{name}{n}", "ms": n * 7 % 20})
    print("done", answer.json()["n"])


async def main(name):
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(ask(client, name, n) for n in range(5)))


threads = [threading.Thread(target=asyncio.run, args=(main(name),)) for name in "ab"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
