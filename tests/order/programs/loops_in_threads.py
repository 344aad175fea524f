"""A thread pool inside of asyncio inside of threads."""

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import requests

URL = sys.argv[1]


def ask(name, n):
    params = {"n": f"{name}{n}", "ms": n * 7 % 25}
    answer = requests.get(f"{URL}/wait", params=params, timeout=30).json()["n"]
    print("asked", answer)
    return answer


async def work(name):
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2, thread_name_prefix=name) as pool:
        jobs = [loop.run_in_executor(pool, ask, name, n) for n in range(4)]
        for one in asyncio.as_completed(jobs):
            print(name, "has", await one)
        back = asyncio.run_coroutine_threadsafe
        print(
            name, await asyncio.to_thread(lambda: back(asyncio.sleep(0.002, name), loop).result())
        )


threads = [threading.Thread(target=lambda name=name: asyncio.run(work(name))) for name in "abc"]
for one in threads:
    one.start()
for one in threads:
    one.join()
print("joined")
