"""Context variables in tasks, threads and callbacks, with a logger that prints them."""

import asyncio
import contextvars
import logging
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx

URL = sys.argv[1]
request = contextvars.ContextVar("request", default="-")


class Filter(logging.Filter):
    def filter(self, record):
        record.request = request.get()
        return True


handler = logging.StreamHandler(sys.stdout)
handler.addFilter(Filter())
handler.setFormatter(logging.Formatter("%(request)s %(message)s"))
log = logging.getLogger("agent")
log.addHandler(handler)
log.setLevel(logging.INFO)


def tool(n):
    log.info("tool %s", n)
    return n


async def handle(client, pool, n):
    request.set(f"r{n}")
    loop = asyncio.get_running_loop()
    log.info("begin")
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 25})
    log.info("answer %s", answer.json()["n"])
    context = contextvars.copy_context()
    jobs = [loop.run_in_executor(pool, context.copy().run, tool, k) for k in range(2)] + [
        asyncio.ensure_future(asyncio.to_thread(tool, 9))
    ]
    for one in jobs:
        one.add_done_callback(lambda one: log.info("callback %s", one.result()))
    await asyncio.gather(*jobs)
    log.info("end")


async def main():
    with ThreadPoolExecutor(3) as pool:
        async with httpx.AsyncClient() as client:
            await asyncio.gather(*(handle(client, pool, n) for n in range(5)))


asyncio.run(main())
