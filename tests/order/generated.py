"""Concurrent programs from a generator: the same seed makes the same program. Knows sources; does not run them."""

import random

_HEAD = '''"""Generated with seed {seed}."""

import asyncio
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import httpx

URL = sys.argv[1]


async def ask(client, n, ms):
    answer = await client.get(f"{{URL}}/wait", params={{"n": n, "ms": ms}})
    return answer.json()["n"]


def ask_blocking(n, ms):
    return httpx.get(f"{{URL}}/wait", params={{"n": n, "ms": ms}}).json()["n"]


'''

_GATHER = """
async def part_{n}(client):
    async def one(k):
        print("{n} gather", await ask(client, f"{n}.{{k}}", k * {a} % {b}))
        await asyncio.sleep(k * {a} % {b} / 1000)
        print("{n} slept", k)

    await asyncio.gather(*(one(k) for k in range({count})))
"""

_TASKS = """
async def part_{n}(client):
    async def one(k):
        for _ in range({turns}):
            await asyncio.sleep(0)
        print("{n} task", await ask(client, f"{n}.{{k}}", k * {a} % {b}))

    tasks = {{asyncio.create_task(one(k)) for k in range({count})}}
    while tasks:
        done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        print("{n} done", len(done))
"""

_TIMEOUT = """
async def part_{n}(client):
    async def one(k):
        try:
            print("{n} in time", await asyncio.wait_for(ask(client, f"{n}.{{k}}", k * {a} % {b}), 0.02))
        except asyncio.TimeoutError:
            print("{n} late", k)

    await asyncio.gather(*(one(k) for k in range({count})))
"""

_THREADS = """
async def part_{n}(client):
    def one(k):
        print("{n} thread", ask_blocking(f"{n}.{{k}}", k * {a} % {b}))
        return k

    for done in asyncio.as_completed([asyncio.to_thread(one, k) for k in range({count})]):
        print("{n} back", await done)
"""

_QUEUE = """
async def part_{n}(client):
    items = queue.Queue()

    def work(w):
        while (k := items.get()) is not None:
            print("{n} worker", w, ask_blocking(f"{n}.{{k}}", k * {a} % {b}))

    def run():
        threads = [threading.Thread(target=work, args=(w,)) for w in range(3)]
        for thread in threads:
            thread.start()
        for k in [*range({count}), None, None, None]:
            items.put(k)
        for thread in threads:
            thread.join()

    await asyncio.to_thread(run)
"""

_EXECUTOR = """
async def part_{n}(client):
    def run():
        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(ask_blocking, f"{n}.{{k}}", k * {a} % {b}) for k in range({count})]
            for job in as_completed(jobs):
                print("{n} job", job.result())

    await asyncio.to_thread(run)
"""

_PROCESSES = """
async def part_{n}(client):
    async def one(k):
        script = f"echo {n}.{{k}}; sleep 0.0{{k}}; echo {n}.{{k}} again"
        process = await asyncio.create_subprocess_exec("sh", "-c", script, stdout=-1)
        async for line in process.stdout:
            print(line.decode().strip())
        print("{n} exit", k, await process.wait())

    await asyncio.gather(*(one(k) for k in range({count})))
"""

_STREAMS = """
async def part_{n}(client):
    async def one(k):
        async with client.stream("GET", f"{{URL}}/sse", params={{"pieces": 3, "ms": {a}}}) as answer:
            async for line in answer.aiter_lines():
                if line:
                    print("{n} stream", k, line)

    await asyncio.gather(*(one(k) for k in range({count})))
"""

_ASYNC_QUEUE = """
async def part_{n}(client):
    items = asyncio.Queue(2)

    async def make():
        for k in range({count}):
            await items.put(await ask(client, f"{n}.{{k}}", k * {a} % {b}))
        await items.put(None)

    async def take():
        while (item := await items.get()) is not None:
            print("{n} item", item)
            await asyncio.sleep({a} / 1000)

    await asyncio.gather(make(), take())
"""

_TAIL = """
async def main():
    async with httpx.AsyncClient(timeout=30) as client:
        await asyncio.gather({parts})


asyncio.run(main())
"""

_PARTS = (
    _GATHER,
    _TASKS,
    _TIMEOUT,
    _THREADS,
    _QUEUE,
    _EXECUTOR,
    _PROCESSES,
    _STREAMS,
    _ASYNC_QUEUE,
)


def source(seed: int) -> str:
    """A program in which two to four parts run at the same time."""
    dice = random.Random(seed)
    count = dice.randint(2, 4)
    parts = [
        part.format(
            n=n,
            count=dice.randint(2, 5),
            turns=dice.randint(0, 6),
            a=dice.choice((3, 7, 11)),
            b=dice.choice((20, 40)),
        )
        for n, part in enumerate(dice.sample(_PARTS, count))
    ]
    calls = ", ".join(f"part_{n}(client)" for n in range(count))
    return _HEAD.format(seed=seed) + "\n".join(parts) + _TAIL.format(parts=calls)
