"""Worker threads of anyio."""

import sys
import time

import anyio
import anyio.to_thread
import requests

URL = sys.argv[1]


def ask(n):
    answer = requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30}, timeout=10)
    print("thread", n)
    time.sleep(0.001 * n)
    return answer.json()["n"]


async def job(n):
    print("done", await anyio.to_thread.run_sync(ask, n))


async def main():
    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(job, n)


anyio.run(main)
