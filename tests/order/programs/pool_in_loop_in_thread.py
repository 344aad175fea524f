"""A pool inside of a loop inside of a thread, three times at once."""

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import requests

URL = sys.argv[1]


def job(name, n):
    answer = requests.get(f"{URL}/wait", params={"n": f"{name}{n}", "ms": n * 7 % 20}, timeout=10)
    print("job", name, answer.json()["n"])
    return n


async def agent(name):
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2) as pool:
        async with httpx.AsyncClient() as client:
            jobs = [loop.run_in_executor(pool, job, name, n) for n in range(4)]
            answer = await client.get(f"{URL}/wait", params={"n": name, "ms": 10})
            print("agent", name, answer.json()["n"])
            for one in asyncio.as_completed(jobs):
                print("agent", name, "has", await one)


threads = [threading.Thread(target=lambda name=name: asyncio.run(agent(name))) for name in "xyz"]
for one in threads:
    one.start()
for one in threads:
    one.join()
print("end")
