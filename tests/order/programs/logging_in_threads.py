"""Tasks and the threads that they start log through one handler, which has a lock of its own."""

import asyncio
import logging
import sys

import httpx

URL = sys.argv[1]
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s %(message)s")
log = logging.getLogger("program")


def work(n):
    log.info("in thread %s", n)
    return n + 1


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20})
    log.info("answer %s", answer.json()["n"])
    log.info("end %s", await asyncio.to_thread(work, n))


async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(ask(client, n) for n in range(6)))


logging.getLogger("httpx").setLevel(logging.WARNING)
asyncio.run(main())
