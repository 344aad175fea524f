"""A proxy on a thread of its own, recording into a run or answering from one."""

import asyncio
import contextlib
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from playhead import config
from playhead.launch import record_run as recording
from playhead.launch.opening import Wish
from playhead.launch.proxy.authority import Authority
from playhead.launch.proxy.ports import listen
from playhead.launch.proxy.proxy_server import Proxy
from playhead.launch.proxy.routes import origin_of
from playhead.recording import deck
from playhead.replay.begin import mode_of
from playhead.replay.matching.taped import TapedRun, answer_of, load
from playhead.replay.replay_plan import ReplayPlan
from playhead.tape.reader import Tape


class Between:
    """`with Between(site.url) as proxy:` stands for the site at `proxy.url`."""

    def __init__(self, url: str, authority: Authority | None = None) -> None:
        self._authority = authority
        self._listener = listen()
        self._origin = origin_of(url)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._started = threading.Event()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        proxy = Proxy({self._origin: self._listener}, {}, authority=self._authority)
        await proxy.serve_until(self._over)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *raised: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


@dataclass
class Room:
    """Where runs are made: `with room.recording(url) as then`, and `with room.replaying(then)`."""

    folder: Path

    def recording(self, url: str, authority: Authority | None = None) -> "Recorded":
        return Recorded(self.folder, url, None, authority)

    def replaying(self, then: "Recorded", authority: Authority | None = None, **plan) -> "Recorded":
        told = ReplayPlan(tape=str(then.tape.run), **plan)
        return Recorded(self.folder, then.upstream, told, authority)


class Recorded:
    def __init__(
        self, folder: Path, url: str, plan: ReplayPlan | None, authority: Authority | None
    ) -> None:
        wish = Wish(name="proxied", store=folder, level="full")
        self.run = recording.open_run(wish, config.load(), '"test"')
        self.upstream = url
        self.between = Between(url, authority)
        self.mode = None
        if plan is not None:
            deck.deactivate(deck.declared())
            self.mode, _ = mode_of(plan, self.run.recorder)
            deck.activate(deck.Deck(self.run.recorder, self.mode))

    def __enter__(self) -> Self:
        self.between.__enter__()
        self.url, self.port = self.between.url, self.between.port
        return self

    def __exit__(self, *raised: object) -> None:
        self.between.__exit__()
        if self.mode is not None:
            deck.deactivate(deck.declared())
        recording.finish(self.run, None)

    @property
    def tape(self) -> Tape:
        return Tape(self.run.path)

    @property
    def loaded(self) -> TapedRun:
        return load(self.tape)

    def answers(self):
        return [answer_of(self.tape, call, match={}) for call in self.loaded.calls]


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path))
    return Room(tmp_path)


@pytest.fixture
def wire():
    return Wire


class Wire:
    """A connection that hides nothing: bytes out, bytes in."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.socket.close()

    def ask(self, target: str, method: str = "GET", body: bytes = b"", **headers: str) -> None:
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def until(self, end: bytes) -> bytes:
        """Everything up to these bytes."""
        got = b""
        while not got.endswith(end):
            piece = self.socket.recv(65536)
            if not piece:
                raise AssertionError(f"the connection ended after {got[-200:]!r}")
            got += piece
        return got

    def rest(self) -> bytes:
        """Everything until the connection ends, well or badly."""
        got = b""
        while True:
            try:
                piece = self.socket.recv(65536)
            except ConnectionError:
                return got
            if not piece:
                return got
            got += piece


class TlsServer:
    """`with tls_server(handler) as port:`, on a thread of its own."""

    def __init__(self, handler) -> None:
        self._handler = handler
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        here = Path(__file__).parent
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(here / "loopback.crt", here / "loopback.key")
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._met, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        async with server:
            await self._over.wait()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._handler(reader, writer)
        writer.close()
        await writer.wait_closed()

    def __enter__(self) -> int:
        self._thread.start()
        self._started.wait()
        return self.port

    def __exit__(self, *raised: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


@pytest.fixture
def tls_server():
    return TlsServer
