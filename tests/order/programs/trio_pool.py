"""Workers of trio behind a limiter, with retries that back off, and a thread that calls back into trio."""

import sys

import httpx
import trio

URL = sys.argv[1]


async def fetch(client, limiter, n, send):
    for attempt in range(4):
        async with limiter:
            answer = await client.get(
                f"{URL}/flaky", params={"n": n, "attempt": attempt, "ms": n * 5 % 17}
            )
        if answer.status_code == 200:
            await send.send((n, attempt))
            return
        with trio.move_on_after(0.004 * (attempt + 1)):
            await trio.sleep_forever()
        print("again", n, attempt)


def report(n, attempt):
    trio.from_thread.run_sync(print, "done", n, attempt)


async def main():
    send, receive = trio.open_memory_channel(2)
    limiter = trio.CapacityLimiter(3)
    async with httpx.AsyncClient() as client, trio.open_nursery() as nursery:
        for n in range(7):
            nursery.start_soon(fetch, client, limiter, n, send)
        for _ in range(7):
            n, attempt = await receive.receive()
            await trio.to_thread.run_sync(report, n, attempt)


trio.run(main)
