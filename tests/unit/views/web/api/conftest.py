"""A real server on a real socket, and somebody who asks it."""

import json
import socket
import threading
from dataclasses import dataclass
from http.client import HTTPConnection

import pytest

from playhead.testing import Reply, Usage
from playhead.views.web.api.api_app import app
from playhead.views.web.api.start import listen, server_for


@dataclass(frozen=True)
class Said:
    status: int
    headers: dict
    raw: bytes

    @property
    def json(self):
        return json.loads(self.raw)

    @property
    def reason(self):
        return self.json["error"]["reason"]


class Site:
    """Asks over a socket, with exactly the headers that a test wants."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.home = f"127.0.0.1:{port}"

    def connection(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, path, method="GET", *, body=None, host=None, **headers) -> Said:
        connection = self.connection()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        raw = None if body is None else json.dumps(body).encode()
        if raw is not None:
            named.setdefault("Content-Type", "application/json")
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host or self.home)
            if raw is not None:
                connection.putheader("Content-Length", str(len(raw)))
            for name, value in named.items():
                connection.putheader(name, value)
            connection.endheaders(raw)
            answer = connection.getresponse()
            heads = {name.lower(): value for name, value in answer.getheaders()}
            return Said(answer.status, heads, answer.read())
        finally:
            connection.close()

    def raw(self, request: bytes) -> bytes:
        """For what no HTTP client would send."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as wire:
            wire.sendall(request)
            parts = []
            while part := wire.recv(65536):
                parts.append(part)
        return b"".join(parts)


class Switch:
    """One server for the tests of a module, an application for each: starting and stopping take their time."""

    def __init__(self) -> None:
        self.app = None

    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)


# Not for the session: its thread reads the clock, which tests of clocks would count.
@pytest.fixture(scope="module")
def switch():
    listener = listen("127.0.0.1", 0)
    switch = Switch()
    switch.site = Site(listener.getsockname()[1])
    server = server_for(switch)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield switch
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture
def serve(store, switch):
    """`serve(token="x")`: from now on, the server of the store that `forge` fills."""

    def start(**options) -> Site:
        switch.app = app(store, **options)
        return switch.site

    return start


@pytest.fixture
def site(serve):
    return serve()


@pytest.fixture
def refund(forge):
    """A run with a turn, an LLM call, a tool that works and one that does not."""
    tape = forge(tags={"env": "ci"})
    turn = tape.turn("respond", "answer the customer")
    reply = Reply(text="I look it up.", usage=Usage(input=1000, output=100))
    asked = tape.llm("Where is my refund?", reply, parent=turn)
    tape.tool("lookup_order", {"order": 4711}, value={"paid": True}, parent=turn, cause=asked)
    tape.seam(turn, "looked up")
    tape.tool("issue_refund", {"order": 4711}, error=ValueError("too late"), parent=turn)
    tape.turn_end(turn, error=ValueError("too late"))
    tape.end("failed", ValueError("too late"))
    return tape
