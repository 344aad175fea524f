"""Posts over one client; what each call took goes into a file, by a clock that no replay moves.

posts.py CLIENT URL COUNT REPORT

In turn with it the same client is answered from memory: as `own` by what stands in for its transport,
and for requests as `own_socket`, too, by a socket beneath urllib3 and http.client.
"""

from __future__ import annotations

import asyncio
import io
import json
import socket
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.recording import deck

SHARE = 100
ANSWER = b'{"ok": true, "text": "' + b"x" * 400 + b'"}'


def body(number: int) -> bytes:
    return json.dumps({"n": number, "text": f"question number {number} " + "word " * 60}).encode()


def clients(name: str, url: str) -> tuple[Callable[[int], Any], Callable[[int], Any]]:
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


class MemorySocket:
    """Takes what is sent, and holds the answer."""

    WIRE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(ANSWER),
        ANSWER,
    )

    def __init__(self) -> None:
        # A pool looks whether its connection was dropped: this one never is.
        self._open, self._other = socket.socketpair()

    def fileno(self) -> int:
        return self._open.fileno()

    def sendall(self, data: bytes) -> None:
        """It is thrown away."""

    def settimeout(self, timeout: float | None) -> None:
        """Nothing is waited for."""

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(io.BytesIO(self.WIRE))  # type: ignore[arg-type]  # reads like a raw one

    def close(self) -> None:
        self._open.close()
        self._other.close()


def over_a_socket(url: str) -> Callable[[int], Any]:
    """requests with all that is its own beneath it, down to the socket."""
    import requests
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool

    class Connection(HTTPConnection):
        def connect(self) -> None:
            self.sock = MemorySocket()  # type: ignore[assignment]  # as much of one as is used

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    adapter = requests.adapters.HTTPAdapter()
    adapter.poolmanager.pool_classes_by_scheme = {"http": Pool}
    session = requests.Session()
    session.mount("http://", adapter)
    return lambda n: session.post(url, data=body(n)).content


@contextmanager
def unheard() -> Iterator[None]:
    """Nothing of this is recorded or replayed: hooks pass through."""
    found = deck.declared()
    if found is not None:
        deck.deactivate(found)
    try:
        yield
    finally:
        if found is not None:
            deck.activate(found)


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
    own_socket: list[float] = []
    if name == "aiohttp":
        took = asyncio.run(with_aiohttp(url, count))
    else:
        world, memory = clients(name, url)
        beneath = over_a_socket(url) if name == "requests" else None
        took = []
        for first in range(0, count, SHARE):
            numbers = range(first, first + SHARE)
            took.append(per_call(world, numbers))
            own.append(per_call(memory, numbers))
            if beneath is not None:
                with unheard():
                    own_socket.append(per_call(beneath, numbers))
    told = {"took": took, "own": own, "own_socket": own_socket}
    medians = {name: statistics.median(one) if one else None for name, one in told.items()}
    report.write_text(json.dumps({**medians, "first": took[0], "last": took[-1]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
