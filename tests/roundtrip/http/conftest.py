"""Record and replay inside one test, with every HTTP client there is a hook for.

Knows the deck, the hooks, the tape's reader, and how each client is used by programs.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import httpx2
import pytest
import requests

from playhead import clock
from playhead.encoding.values import freeze
from playhead.errors import Divergence
from playhead.event import brought_along
from playhead.events import Event
from playhead.hooks import registry
from playhead.hooks.order import lane_hooks
from playhead.recording import deck
from playhead.recording.chunks import as_bytes
from playhead.recording.deck import Call, Deck, Piece, Taped
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor
from playhead.replay.matching.taped import load
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.tape.reader import Tape
from playhead.testing import HttpSite


@dataclass
class Told:
    """One call as the tape tells it."""

    event: Event
    head: dict[str, Any] | None = None
    pieces: list[Piece] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)

    @property
    def call(self) -> dict[str, Any]:
        return self.event.data

    @property
    def how(self) -> str | None:
        return self.outcome.get("how")

    def stream(self, name: str = "body") -> list[bytes]:
        return [piece.data for piece in self.pieces if piece.stream == name]

    @property
    def body(self) -> bytes:
        return b"".join(self.stream())

    def taped(self) -> Taped:
        facts = {**self.call, **self.outcome}
        return Taped(
            how=self.how or "never",
            value=self.outcome.get("value"),
            error=self.outcome.get("error"),
            head=self.head,
            pieces=tuple(self.pieces),
            facts=facts,
        )


class Take:
    """What one recording put on its tape."""

    def __init__(self, run: Path) -> None:
        self.run = run

    @property
    def events(self) -> list[Event]:
        tape = Tape(self.run)
        return [tape.whole(event) for event in tape.events()]

    @property
    def calls(self) -> list[Told]:
        told: dict[int, Told] = {}
        for event in self.events:
            if event.kind == "call":
                told[event.seq] = Told(event)
            elif event.kind == "chunk":
                _add(told[event.data["call"]], event.data)
            elif event.kind == "outcome":
                for chunk in brought_along(event):
                    _add(told[event.data["call"]], chunk.data)
                told[event.data["call"]].outcome = event.data
        return list(told.values())

    @property
    def call(self) -> Told:
        (only,) = self.calls
        return only

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.kind == kind]


def _add(told: Told, data: dict[str, Any]) -> None:
    if data["stream"] == "head":
        told.head = data["value"]
        return
    raw, at = as_bytes(data), 0
    for size, at_ns in zip(data["sizes"], data["at_ns"], strict=True):
        told.pieces.append(Piece(stream=data["stream"], data=raw[at : at + size], at_ns=at_ns))
        at += size


class FromTape:
    """A mode that serves each taped call once, to the first equal request."""

    def __init__(self, take: Take, *, live: tuple[str, ...] = ()) -> None:
        self.left = take.calls
        self.live = live
        self._lock = threading.Lock()

    def answer(self, call: Call, lane: str) -> Taped | None:
        if any(word in call.name for word in self.live):
            return None
        asked = freeze(call.request)
        with self._lock:
            for told in self.left:
                if told.call["request"] == asked and told.call["boundary"] == call.boundary:
                    self.left.remove(told)
                    return told.taped()
        raise Divergence(f"No taped call matches {call.name}: {asked}")


class Studio:
    """`with studio.record() as take:`, then `with studio.replay(take) as mode:`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self.deck: Deck | None = None

    @contextlib.contextmanager
    def record(self, *, redactor: Redactor | None = None, warns: bool = False) -> Iterator[Take]:
        with self._deck(None, redactor, warns=warns) as take:
            yield take

    @contextlib.contextmanager
    def replay(self, take: Take, *, live: tuple[str, ...] = ()) -> Iterator[FromTape]:
        mode = FromTape(take, live=live)
        with self._deck(mode, None, warns=False) as again:
            mode.take = again
            yield mode

    @contextlib.contextmanager
    def serve(self, take: Take, redactor: Redactor | None = None) -> Iterator[Take]:
        """By the mode of `playhead replay`. Yields what the replay tells of itself."""

        def mode(recorder: Recorder) -> ReplayMode:
            return ReplayMode(load(Tape(take.run)), recorder, lean=True)

        with self._deck(mode, redactor, warns=False) as again:
            yield again

    @contextlib.contextmanager
    def _deck(self, mode: Any, redactor: Redactor | None, *, warns: bool) -> Iterator[Take]:
        self._count += 1
        run = self._folder / f"run-{self._count}"
        run.mkdir()
        recorder = Recorder(run=run, run_id=f"run-{self._count}", who="test", redactor=redactor)
        opened = self.deck = Deck(recorder, mode(recorder) if callable(mode) else mode)
        deck.activate(opened)
        lane_hooks.install()
        registry.install()
        try:
            yield Take(run)
        finally:
            registry.uninstall()
            lane_hooks.uninstall()
            deck.deactivate(opened)
            recorder.close()
        assert recorder.lost == 0
        assert recorder.warned == warns


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Studio:
    wire = tuple(row for row in registry.ROWS if row.boundary in ("http", "llm"))
    monkeypatch.setattr(registry, "ROWS", wire)
    # Without the rows that replace waiting: time is real, and nothing here waits for long.
    served = tuple(row for row in registry.REPLAY_ROWS if row.boundary == "http")
    monkeypatch.setattr(registry, "REPLAY_ROWS", served)
    return Studio(tmp_path)


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(key=clock.urandom(16))


@pytest.fixture
def site() -> Iterator[HttpSite]:
    with HttpSite() as served:
        yield served


@dataclass
class Answer:
    """What a program got to see of an answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Program:
    """A program that uses one HTTP client. Pieces are as the client hands them out, undecoded."""

    name: str

    def ask(self, method: str, url: str, body: bytes | None = None) -> Answer:
        raise NotImplementedError

    def pieces(self, url: str, seen: list[bytes], stop: int | None = None) -> None:
        """Every piece of an answer into `seen`; leaves after `stop` of them."""
        raise NotImplementedError

    def upload(self, url: str, pieces: list[bytes]) -> Answer:
        raise NotImplementedError

    def together(self, url: str, bodies: list[bytes]) -> list[Answer]:
        """All of these at once; the answers in the order of the questions."""
        with ThreadPoolExecutor(len(bodies)) as pool:
            return list(pool.map(lambda body: self.ask("POST", url, body), bodies))


class Httpx(Program):
    def __init__(self, library: Any) -> None:
        self.name = library.__name__
        self._library = library

    def ask(self, method: str, url: str, body: bytes | None = None) -> Answer:
        with self._library.Client(follow_redirects=True) as client:
            got = client.request(method, url, content=body)
            return Answer(got.status_code, _pairs(got.headers.raw), got.content)

    def pieces(self, url: str, seen: list[bytes], stop: int | None = None) -> None:
        with self._library.Client() as client, client.stream("GET", url) as got:
            for piece in got.iter_raw():
                seen.append(piece)
                if len(seen) == stop:
                    break

    def upload(self, url: str, pieces: list[bytes]) -> Answer:
        with self._library.Client(follow_redirects=True) as client:
            got = client.post(url, content=(piece for piece in pieces))
            return Answer(got.status_code, _pairs(got.headers.raw), got.content)


class AsyncHttpx(Program):
    def __init__(self, library: Any) -> None:
        self.name = f"{library.__name__} async"
        self._library = library

    async def _ask(self, method: str, url: str, body: Any) -> Answer:
        async with self._library.AsyncClient(follow_redirects=True) as client:
            return await self._with(client, method, url, body)

    async def _with(self, client: Any, method: str, url: str, body: Any) -> Answer:
        got = await client.request(method, url, content=body)
        return Answer(got.status_code, _pairs(got.headers.raw), got.content)

    def ask(self, method: str, url: str, body: bytes | None = None) -> Answer:
        return asyncio.run(self._ask(method, url, body))

    def pieces(self, url: str, seen: list[bytes], stop: int | None = None) -> None:
        async def read() -> None:
            async with self._library.AsyncClient() as client, client.stream("GET", url) as got:
                async for piece in got.aiter_raw():
                    seen.append(piece)
                    if len(seen) == stop:
                        break

        asyncio.run(read())

    def upload(self, url: str, pieces: list[bytes]) -> Answer:
        return asyncio.run(self._ask("POST", url, _slowly(pieces)))

    def together(self, url: str, bodies: list[bytes]) -> list[Answer]:
        async def all_of_them() -> list[Answer]:
            # One client, as in real programs. Each would load its own certificates, and the loop stands
            # still meanwhile: on a busy machine long enough for the others' connections to time out.
            async with self._library.AsyncClient() as client:
                asked = [self._with(client, "POST", url, body) for body in bodies]
                return await asyncio.gather(*asked)

        return asyncio.run(all_of_them())


class Aiohttp(Program):
    name = "aiohttp"

    async def _ask(self, session: Any, method: str, url: str, body: Any) -> Answer:
        async with session.request(method, url, data=body) as got:
            return Answer(got.status, _pairs(got.raw_headers), await got.read())

    async def _alone(self, method: str, url: str, body: Any) -> Answer:
        async with aiohttp.ClientSession() as session:
            return await self._ask(session, method, url, body)

    def ask(self, method: str, url: str, body: bytes | None = None) -> Answer:
        return asyncio.run(self._alone(method, url, body))

    def pieces(self, url: str, seen: list[bytes], stop: int | None = None) -> None:
        async def read() -> None:
            undecoded = aiohttp.ClientSession(auto_decompress=False)
            async with undecoded as session, session.get(url) as got:
                async for piece in got.content.iter_any():
                    seen.append(piece)
                    if len(seen) == stop:
                        break

        asyncio.run(read())

    def upload(self, url: str, pieces: list[bytes]) -> Answer:
        return asyncio.run(self._alone("POST", url, _slowly(pieces)))

    def together(self, url: str, bodies: list[bytes]) -> list[Answer]:
        async def all_of_them() -> list[Answer]:
            async with aiohttp.ClientSession() as session:
                asked = [self._ask(session, "POST", url, body) for body in bodies]
                return await asyncio.gather(*asked)

        return asyncio.run(all_of_them())


class Requests(Program):
    name = "requests"

    def ask(self, method: str, url: str, body: Any = None) -> Answer:
        with requests.Session() as session:
            got = session.request(method, url, data=body)
            return Answer(got.status_code, list(got.raw.headers.items()), got.content)

    def pieces(self, url: str, seen: list[bytes], stop: int | None = None) -> None:
        with requests.Session() as session, session.get(url, stream=True) as got:
            for piece in got.raw.stream(65536, decode_content=False):
                seen.append(piece)
                if len(seen) == stop:
                    break

    def upload(self, url: str, pieces: list[bytes]) -> Answer:
        return self.ask("POST", url, (piece for piece in pieces))


class HttpClient(Program):
    name = "http.client"

    def _request(self, method: str, url: str, body: Any = None) -> Any:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        headers = {} if isinstance(body, bytes) or body is None else {"X-Made": "slowly"}
        connection.request(method, target, body, headers)
        return connection

    def ask(self, method: str, url: str, body: Any = None) -> Answer:
        connection = self._request(method, url, body)
        with contextlib.closing(connection):
            got = connection.getresponse()
            return Answer(got.status, got.getheaders(), got.read())

    def pieces(self, url: str, seen: list[bytes], stop: int | None = None) -> None:
        connection = self._request("GET", url)
        with contextlib.closing(connection), connection.getresponse() as got:
            while piece := got.read1(65536):
                seen.append(piece)
                if len(seen) == stop:
                    break

    def upload(self, url: str, pieces: list[bytes]) -> Answer:
        return self.ask("POST", url, (piece for piece in pieces))


class UrllibRequest(HttpClient):
    name = "urllib.request"

    def ask(self, method: str, url: str, body: Any = None) -> Answer:
        asked = urllib.request.Request(url, data=body, method=method)
        asked.add_header("Content-Type", "application/octet-stream")
        with urllib.request.urlopen(asked) as got:
            return Answer(got.status, got.getheaders(), got.read())

    def pieces(self, url: str, seen: list[bytes], stop: int | None = None) -> None:
        with urllib.request.urlopen(url) as got:
            while piece := got.read1(65536):
                seen.append(piece)
                if len(seen) == stop:
                    break


PROGRAMS = [
    Httpx(httpx),
    Httpx(httpx2),
    AsyncHttpx(httpx),
    AsyncHttpx(httpx2),
    Aiohttp(),
    Requests(),
    HttpClient(),
    UrllibRequest(),
]


async def _slowly(pieces: list[bytes]) -> Any:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


def _pairs(raw: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]


def _name(program: Program) -> str:
    return program.name.replace(" ", "-")


@pytest.fixture(params=PROGRAMS, ids=_name)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


@pytest.fixture(params=[one for one in PROGRAMS if one.name != "http.client"], ids=_name)
def follower(request: pytest.FixtureRequest) -> Program:
    """A program whose client follows redirects by itself."""
    return request.param


@pytest.fixture
def silent_site() -> Iterator[str]:
    """A site that hangs up on every request without a word."""

    async def hang_up(exchange: Any) -> None:
        await exchange.end("close")

    with HttpSite({"/x": hang_up}) as served:
        yield served.url
