"""What recording HTTP costs, beside no recording, OpenTelemetry's instrumentation and vcrpy.

    python -m bench.http [--rounds 60]

The server is a process of its own: uvicorn, on which the goals for POSTs were set, and beside it the
least that answers at all, which makes everything around it look larger than in any real run. Within a round every recorder does the same work once, in
turn, so that neighbours on the machine disturb all alike; ratios are of medians over the rounds,
CPU is this process's own. `thin` is the least code that keeps request and answer (bench/thin.py): the
floor. Playhead writes a full, redacted tape, with the native core and in Python; the others keep what they keep.
Goals: a POST within 1.15 of bare (httpx, httpx2, requests) and 1.35 (aiohttp, 50 at once); the
first chunk of a stream within 0.5 ms of bare; 50 streams at once within 1.10 of bare.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import requests
import uvicorn
import vcr
from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bench.thin import Thin
from playhead import clock
from playhead.hooks import registry
from playhead.hooks.order import lane_hooks
from playhead.host import native_core
from playhead.launch import native_build
from playhead.recording import deck
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor

QUESTION = {
    "model": "small",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "What is the weather like in Lyon today? " * 6}],
}
ANSWER = json.dumps(
    {"content": "It is sunny, and a light wind blows from the north. " * 8}
).encode()
EVENT = b'event: delta\ndata: {"text": "a few words of an answer "}\n\n'
_WARMING = 3
HEADERS = {"authorization": "Bearer sk-bench-" + "a1B2" * 10}


# -- the server ------------------------------------------------------------------------------------


class Answering(asyncio.Protocol):
    """Answers /post at once, and /sse/COUNT/GAP_MS in so many chunks."""

    def __init__(self) -> None:
        self.held = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.held) < end + 4 + length:
                return
            self.held = self.held[end + 4 + length :]
            self.answer(head.split(b" ", 2)[1].decode())

    def answer(self, path: str) -> None:
        if path.startswith("/sse/"):
            _, _, count, gap = path.split("/")
            self.streaming = asyncio.ensure_future(self.stream(int(count), int(gap) / 1000))
            return
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(head % len(ANSWER) + ANSWER)

    async def stream(self, count: int, gap: float) -> None:
        kind = b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        self.transport.write(b"HTTP/1.1 200 OK\r\n" + kind)
        for _ in range(count):
            self.transport.write(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
            await asyncio.sleep(gap)
        self.transport.write(b"0\r\n\r\n")


async def application(scope: Any, receive: Any, send: Any) -> None:
    """The same answer to a POST, from a server that people use."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        continue
    length = b"%d" % len(ANSWER)
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


class Uvicorn(uvicorn.Server):
    """Says where it listens. On a socket that it is given it would wait 40 ms before each body."""

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


async def serve_uvicorn() -> None:
    config = uvicorn.Config(application, port=0, log_level="error", loop="asyncio", http="h11")
    await Uvicorn(config).serve()


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def running_server(kind: str = "quick") -> Iterator[str]:
    argv = [sys.executable, "-m", "bench.http", "--serve", kind]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline()) if server.stdout else 0
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


# -- the recorders ---------------------------------------------------------------------------------


@contextlib.contextmanager
def bare() -> Iterator[None]:
    yield


@dataclass
class Playhead:
    """A full, redacted tape, written by the native core if this machine can compile it, or in Python."""

    folder: Path
    is_native: bool = True
    opened: deck.Deck = field(init=False)

    def __post_init__(self) -> None:
        native_build.core_of(os.environ)
        self.folder.mkdir()
        recorder = Recorder(
            run=self.folder, run_id="bench", who="bench", redactor=Redactor(key=b"bench")
        )
        self.opened = deck.Deck(recorder)
        wire = tuple(row for row in registry.ROWS if row.boundary == "http")
        registry.ROWS = wire  # type: ignore[misc]  # only what is measured

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        deck.activate(self.opened)
        lane_hooks.install()
        registry.install()
        core = native_core.core
        if not self.is_native:
            native_core.core = None
        try:
            yield
        finally:
            native_core.core = core
            registry.uninstall()
            lane_hooks.uninstall()
            deck.deactivate(self.opened)


class OpenTelemetry:
    """Spans, batched in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(BatchSpanProcessor(self.exporter))
        self.instrumentors = [
            HTTPXClientInstrumentor(),
            RequestsInstrumentor(),
            AioHttpClientInstrumentor(),
        ]

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        for one in self.instrumentors:
            one.instrument(tracer_provider=self.provider)
        try:
            yield
        finally:
            for one in self.instrumentors:
                one.uninstrument()
            self.exporter.clear()


@dataclass
class Vcr:
    """A cassette that is never saved: what that costs is not measured."""

    folder: Path
    count: int = 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        self.count += 1
        recorder = vcr.VCR(record_mode="all", serializer="json")
        with recorder.use_cassette(str(self.folder / f"{self.count}.json")) as cassette:
            yield
            self.played = len(cassette)
            cassette.data.clear()  # what saving costs is not measured
            cassette.dirty = False


# -- the work: each makes its client, and gives what to do with it, and how to close it --------------

Work = Callable[[], Awaitable[float | None]]
Made = tuple[Work, Callable[[], Awaitable[None]]]


def posts_httpx(library: Any, url: str) -> Made:
    client = library.Client()

    async def work() -> None:
        for _ in range(20):
            client.post(f"{url}/post", json=QUESTION, headers=HEADERS)

    return work, _closing(client)


def posts_requests(url: str) -> Made:
    session = requests.Session()

    async def work() -> None:
        for _ in range(20):
            session.post(f"{url}/post", json=QUESTION, headers=HEADERS)

    return work, _closing(session)


def posts_aiohttp(url: str) -> Made:
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100))

    async def one() -> None:
        async with session.post(f"{url}/post", json=QUESTION, headers=HEADERS) as got:
            await got.read()

    return _together(one, 50), session.close


def first_httpx(library: Any, url: str) -> Made:
    client = library.Client()

    async def work() -> float:
        began = clock.mono_ns()
        with client.stream("GET", f"{url}/sse/10/2", headers=HEADERS) as got:
            pieces = got.iter_raw()
            next(pieces)
            took = clock.mono_ns() - began
            for _ in pieces:
                continue
        return took / 1e9

    return work, _closing(client)


def first_requests(url: str) -> Made:
    session = requests.Session()

    async def work() -> float:
        began = clock.mono_ns()
        with session.get(f"{url}/sse/10/2", stream=True, headers=HEADERS) as got:
            pieces = got.iter_content(None)
            next(pieces)
            took = clock.mono_ns() - began
            for _ in pieces:
                continue
        return took / 1e9

    return work, _closing(session)


def first_aiohttp(url: str) -> Made:
    session = aiohttp.ClientSession()

    async def work() -> float:
        began = clock.mono_ns()
        async with session.get(f"{url}/sse/10/2", headers=HEADERS) as got:
            await got.content.readany()
            took = clock.mono_ns() - began
            await got.read()
        return took / 1e9

    return work, session.close


def streams_aiohttp(url: str) -> Made:
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100))

    async def one() -> None:
        async with session.get(f"{url}/sse/50/5", headers=HEADERS) as got:
            async for _ in got.content.iter_any():
                continue

    return _together(one, 50), session.close


def streams_httpx2(url: str) -> Made:
    limits = httpx2.Limits(max_connections=100, max_keepalive_connections=100)
    client = httpx2.AsyncClient(limits=limits)

    async def one() -> None:
        async with client.stream("GET", f"{url}/sse/50/5", headers=HEADERS) as got:
            async for _ in got.aiter_raw():
                continue

    return _together(one, 50), client.aclose


def _together(one: Callable[[], Awaitable[None]], count: int) -> Work:
    async def work() -> None:
        await asyncio.gather(*(one() for _ in range(count)))

    return work


def _closing(client: Any) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        client.close()

    return close


# (title, what is made, calls a round, goal)
CASES: list[tuple[str, Callable[[str], Made], int, str]] = [
    ("httpx POST", partial(posts_httpx, httpx), 20, "1.15x"),
    ("httpx2 POST", partial(posts_httpx, httpx2), 20, "1.15x"),
    ("requests POST", posts_requests, 20, "1.15x"),
    ("aiohttp POST x50", posts_aiohttp, 50, "1.35x"),
    ("httpx first chunk", partial(first_httpx, httpx), 1, "bare + 500 us"),
    ("httpx2 first chunk", partial(first_httpx, httpx2), 1, "bare + 500 us"),
    ("requests first chunk", first_requests, 1, "bare + 500 us"),
    ("aiohttp first chunk", first_aiohttp, 1, "bare + 500 us"),
    ("aiohttp 50 streams", streams_aiohttp, 50, "1.10x"),
    ("httpx2 50 streams", streams_httpx2, 50, "1.10x"),
]


# -- measuring -------------------------------------------------------------------------------------

Recorders = dict[str, Callable[[], Any]]
Figures = dict[str, list[tuple[float, float]]]


async def timed(
    recorders: Recorders, made: Callable[[str], Made], url: str, rounds: int
) -> Figures:
    """Wall and CPU seconds of each recorder in each round; a float from the work replaces wall."""
    figures: Figures = {name: [] for name in recorders}
    works: dict[str, Made] = {}
    for name, recorder in recorders.items():
        with recorder():  # some recorders only see clients that were made under them
            works[name] = made(url)
    for number in range(rounds + _WARMING):
        for name, recorder in recorders.items():
            with recorder():
                wall, cpu = clock.mono_ns(), time.process_time()
                told = await works[name][0]()
                took, cpu = (clock.mono_ns() - wall) / 1e9, time.process_time() - cpu
            if number >= _WARMING:
                figures[name].append((took if told is None else told, cpu))
    for _, close in works.values():
        await close()
    return figures


def report(title: str, figures: Figures, calls: int, goal: str) -> None:
    print(f"\n{title}  (goal: {goal})")
    base = figures["bare"]
    bare_wall = statistics.median(wall for wall, _ in base)
    bare_cpu = statistics.median(cpu for _, cpu in base)
    for name, taken in figures.items():
        wall = statistics.median(wall for wall, _ in taken)
        cpu = statistics.median(cpu for _, cpu in taken)
        print(
            f"  {name:14s} {wall / calls * 1e6:9.1f} us  {wall / bare_wall:5.2f}x"
            f"  {(wall - bare_wall) / calls * 1e6:+8.1f} us"
            f"   CPU {cpu / bare_cpu:5.2f}x {(cpu - bare_cpu) / calls * 1e6:+8.1f} us"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", choices=("quick", "uvicorn"), help="be the server")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default="", help="what to measure, by a part of its title")
    parser.add_argument("--without", default="", help="recorders to leave out, by commas")
    asked = parser.parse_args()
    if asked.serve:
        asyncio.run(serve_uvicorn() if asked.serve == "uvicorn" else serve())
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server() as quick,
        running_server("uvicorn") as uvicorns,
    ):
        recorders: Recorders = {
            "bare": bare,
            "thin": Thin(Path(folder)),
            "playhead": Playhead(Path(folder) / "native"),
            "in Python": Playhead(Path(folder) / "python", is_native=False),
            "opentelemetry": OpenTelemetry(),
            "vcrpy": Vcr(Path(folder)),
        }
        for name in asked.without.split(","):
            recorders.pop(name, None)
        for title, made, calls, goal in CASES:
            if asked.only not in title:
                continue
            servers = {"": quick}
            if "POST" in title:
                servers = {", uvicorn": uvicorns, ", a server that does nothing": quick}
            for server, url in servers.items():
                figures = asyncio.run(timed(recorders, made, url, asked.rounds))
                report(f"{title}{server}", figures, calls, goal)


if __name__ == "__main__":
    main()
