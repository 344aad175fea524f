"""tenacity: retries with jitter in tasks and in threads at once."""

import asyncio
import itertools
import random
import sys

import httpx
from tenacity import (
    AsyncRetrying,
    retry,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random,
    wait_random_exponential,
)

URL = sys.argv[1]
random.seed()
attempts = itertools.count()


@retry(stop=stop_after_attempt(6), wait=wait_random(0, 0.02), reraise=True)
def in_thread(n):
    params = {"n": n, "ms": 3, "attempt": next(attempts) // 6}
    answer = httpx.get(f"{URL}/flaky", params=params)
    print("thread", n, answer.status_code)
    answer.raise_for_status()
    return n


async def in_task(client, n):
    async for attempt in AsyncRetrying(
        stop=stop_after_attempt(6),
        wait=wait_random_exponential(multiplier=0.004, max=0.03),
        retry=retry_if_exception_type(httpx.HTTPStatusError),
    ):
        with attempt:
            number = attempt.retry_state.attempt_number
            params = {"n": n, "ms": n * 3 % 10, "attempt": number}
            answer = await client.get(f"{URL}/flaky", params=params)
            print("task", n, number, answer.status_code)
            answer.raise_for_status()
    return n


async def main():
    async with httpx.AsyncClient(timeout=30) as client:
        tasks = [in_task(client, n) for n in range(6)]
        threads = [asyncio.to_thread(in_thread, n) for n in range(10, 14)]
        for one in asyncio.as_completed([*tasks, *threads]):
            print("done", await one)


asyncio.run(main())
