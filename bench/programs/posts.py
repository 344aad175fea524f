"""Posts over one client; what each call took goes into a file, by a clock that no replay moves.

posts.py CLIENT URL COUNT REPORT
"""

from __future__ import annotations

import asyncio
import io
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playhead import clock

SHARE = 100
ANSWER = b'{"ok": true, "text": "' + b"x" * 400 + b'"}'


def body(number: int) -> bytes:
    return json.dumps({"n": number, "text": f"question number {number} " + "word " * 60}).encode()


def clients(name: str, url: str) -> tuple[Callable[[int], Any], Callable[[int], Any] | None]:
    """One that asks the world, and the same client with an answer from memory."""
    if name in ("httpx", "httpx2"):
        library = __import__(name)
        world = library.Client()
        answer = library.MockTransport(lambda _: library.Response(200, content=ANSWER))
        memory = library.Client(transport=answer)
        return (
            lambda n: world.post(url, content=body(n)).content,
            lambda n: memory.post(url, content=body(n)).content,
        )
    import requests
    from requests.adapters import BaseAdapter
    from urllib3 import HTTPResponse

    class Memory(BaseAdapter):
        def send(self, request: Any, **_: Any) -> Any:  # type: ignore[override]
            raw = HTTPResponse(io.BytesIO(ANSWER), status=200, preload_content=False)
            return requests.adapters.HTTPAdapter().build_response(request, raw)

        def close(self) -> None:
            pass

    world, memory = requests.Session(), requests.Session()
    memory.mount("http://", Memory())
    return (
        lambda n: world.post(url, data=body(n)).content,
        lambda n: memory.post(url, data=body(n)).content,
    )


def per_call(send: Callable[[int], Any], numbers: range) -> float:
    began = clock.mono_ns()
    for number in numbers:
        send(number)
    return (clock.mono_ns() - began) / len(numbers) / 1000


async def with_aiohttp(url: str, count: int) -> list[float]:
    import aiohttp

    took = []
    async with aiohttp.ClientSession() as client:
        for first in range(0, count, SHARE):
            began = clock.mono_ns()
            for number in range(first, first + SHARE):
                async with client.post(url, data=body(number)) as answer:
                    await answer.read()
            took.append((clock.mono_ns() - began) / SHARE / 1000)
    return took


def main(name: str, url: str, count: int, report: Path) -> None:
    own: list[float] = []
    if name == "aiohttp":
        took = asyncio.run(with_aiohttp(url, count))
    else:
        world, memory = clients(name, url)
        took = []
        for first in range(0, count, SHARE):
            numbers = range(first, first + SHARE)
            took.append(per_call(world, numbers))
            own.append(per_call(memory, numbers) if memory else 0.0)
    told = {"took": statistics.median(took), "own": statistics.median(own) if own else None}
    report.write_text(json.dumps({**told, "first": took[0], "last": took[-1]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
