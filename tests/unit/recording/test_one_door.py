"""Every boundary goes through `Deck.perform` to the tape, and from the tape to its client."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from pathlib import Path

import aiohttp
import httpx
import pytest
import requests
import websockets.sync.client
from mcp import ClientSession, StdioServerParameters
from mcp.client import stdio
from websockets.sync.server import serve

import playhead
from playhead.hooks import registry
from playhead.host import native_core
from playhead.launch.proxy.ports import listen
from playhead.launch.proxy.proxy_server import Proxy
from playhead.launch.proxy.routes import origin_of
from playhead.launch.shims.caller import Caller, ChildLanes
from playhead.launch.shims.shim_frames import ShimCall, call_frame, frame
from playhead.launch.shims.shim_request import Surroundings
from playhead.recording import deck
from playhead.recording.deck import Deck
from playhead.replay.matching.taped import load
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.tape.reader import Tape
from playhead.testing import HttpSite

OWN = str(Path(playhead.__file__).parent)
SHOP = Path(__file__).parents[1] / "hooks" / "mcp" / "mcp_shop.py"


@contextlib.contextmanager
def traced():
    """Counts the calls of our functions, by module and name, in this thread."""
    seen = Counter()

    def profile(frame, event, arg):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OWN):
            module = os.path.relpath(code.co_filename, OWN)
            seen[module, code.co_name] += 1

    sys.setprofile(profile)
    try:
        yield seen
    finally:
        sys.setprofile(None)


@playhead.tool
def look_up(key):
    return key.upper()


@playhead.tool
def count_up(to):
    yield from range(to)


class Store:
    def __init__(self):
        self.items = {}

    def put(self, key, value):
        self.items[key] = value


def by_tool(url):
    return look_up("a")


def by_generator(url):
    return list(count_up(3))


def by_state(url):
    store = Store()
    with playhead.watch(store, "items", ["put"]):
        return store.put("a", 1)


def by_httpx(url):
    return httpx.post(f"{url}/echo", content=b"hello").content


def by_requests(url):
    return requests.post(f"{url}/echo", data=b"hello").content


def by_urllib(url):
    with urllib.request.urlopen(f"{url}/echo", data=b"hello") as answer:
        return answer.read()


def by_aiohttp(url):
    async def post():
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/echo", data=b"hello") as answer,
        ):
            return await answer.read()

    return asyncio.run(post())


def by_llm(url):
    asked = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    return httpx.post(f"{url}/v1/chat/completions", json=asked).content


def by_websocket(url):
    with serve(lambda peer: peer.send(peer.recv()), "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port = server.socket.getsockname()[1]
        with websockets.sync.client.connect(f"ws://127.0.0.1:{port}/chat") as client:
            client.send("hello")
            told = client.recv()
        server.shutdown()
        thread.join()
    return told


def by_mcp(url):
    async def session():
        server = StdioServerParameters(command=sys.executable, args=[str(SHOP), os.devnull])
        async with stdio.stdio_client(server) as streams, ClientSession(*streams) as client:
            await client.initialize()

    return asyncio.run(session())


def by_proxy(url):
    """The proxy and its client, in one thread."""

    async def ask():
        over, listener = asyncio.Event(), listen()
        port = listener.getsockname()[1]
        proxy = asyncio.ensure_future(Proxy({origin_of(url): listener}, {}).serve_until(over))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        told = await reader.read()
        writer.close()
        over.set()
        await proxy
        return told

    return asyncio.run(ask())


def by_shim(url):
    """One shim that tells of a program's start and end."""
    ours, theirs = socket.socketpair()
    asked = ShimCall(
        **dict.fromkeys(("run", "parent", "lane"), ""),
        pid=1,
        ppid=1,
        how="path",
        name="true",
        real="/bin/true",
        cwd="/",
        kinds=("null", "null", "null"),
        passed=(),
        argv=("true",),
        env={},
    )
    caller = Caller(ours, deck.declared(), Surroundings(folder="/", cwd="/", env={}), ChildLanes())
    theirs.sendall(call_frame(asked) + frame(b"X", b"0"))
    assert caller.hear()
    caller.leave()
    theirs.close()


def by_process(url):
    return subprocess.run(["echo", "hello"], capture_output=True, check=True).stdout


def by_system(url):
    return os.system("true")


def by_spawn(url):
    return os.spawnv(os.P_WAIT, "/bin/true", ["true"])


BOUNDARIES = [
    by_tool,
    by_generator,
    by_state,
    by_httpx,
    by_requests,
    by_urllib,
    by_aiohttp,
    by_llm,
    by_websocket,
    by_mcp,
    by_proxy,
    by_shim,
    by_process,
    by_system,
    by_spawn,
]


@pytest.fixture(scope="module")
def url():
    with HttpSite() as site:
        yield site.url


@pytest.mark.parametrize("cross", BOUNDARIES, ids=lambda one: one.__name__)
def test_a_call_of_every_boundary_passes_the_door_and_ends_in_append(cross, url, tmp_path):
    with playhead.record(store=tmp_path, intercept=True) as run, traced() as seen:
        cross(url)
    doors = seen["recording/deck.py", "perform"] + seen["recording/deck.py", "perform_async"]
    # A coroutine is entered once more each time it is resumed.
    assert doors >= seen["recording/crossing.py", "__init__"] >= 1
    written = [event for event in Tape(run.path).events() if event.kind in ("call", "outcome")]
    assert {event.kind for event in written} == {"call", "outcome"}
    # One function puts every event on the tape; whatever a thread of ours wrote is not counted here.
    assert seen["recording/encoder.py", "append"] >= len(written)
    # And nothing below it is entered from anywhere else. The native core writes most events in one step.
    appended = seen["recording/encoder.py", "append"]
    assert seen["tape/writer.py", "append"] <= appended


# Those whose other end is not this test's to replay: they open servers, processes and sockets of their own.
SERVED = [one for one in BOUNDARIES if one not in (by_websocket, by_mcp, by_proxy, by_shim)]


@pytest.mark.parametrize("cross", SERVED, ids=lambda one: one.__name__)
def test_a_taped_answer_of_every_boundary_passes_the_same_door(cross, url, tmp_path, monkeypatch):
    with playhead.record(store=tmp_path / "then", intercept=True) as run:
        then = cross(url)
    rows = tuple(row for row in registry.REPLAY_ROWS if row.boundary == "http")
    monkeypatch.setattr(registry, "REPLAY_ROWS", rows)
    with playhead.record(store=tmp_path / "now") as now:
        mode = ReplayMode(load(Tape(run.path)), now.recorder)
        recording, replaying = deck.declared(), Deck(now.recorder, mode)
        deck.activate(replaying)
        registry.install()
        try:
            with traced() as seen:
                assert cross(url) == then
        finally:
            registry.uninstall()
            deck.activate(recording)
    assert not mode.partings
    assert seen["recording/deck.py", "perform"] + seen["recording/deck.py", "perform_async"] >= 1
    # What the client gets passes the one place at which a replay is ordered; a process has its player.
    places = ("reach", "reach_async", "reach_later", "reach_end_async")
    reached = sum(seen["recording/crossing.py", name] for name in places)
    played = seen["hooks/process/player.py", "go"]
    assert reached + played >= 1


def test_no_boundary_has_another_way_to_the_tape_or_asks_for_the_mode():
    """What the trace shows of one call, the source shows of all: adapters see neither modes nor recordings."""
    folders = ("hooks", "launch/proxy", "launch/shims")
    asks = [
        f"{path.relative_to(OWN)}: {line.strip()}"
        for folder in folders
        for path in Path(OWN, folder).rglob("*.py")
        # It installs the hooks of a replay; no call passes through it.
        if path.name != "registry.py"
        for line in path.read_text().splitlines()
        if "deck.mode" in line or ".mode.answer" in line or "Crossing(" in line
    ]
    assert asks == []


class Memory(httpx.BaseTransport):
    """Answers without a network."""

    def handle_request(self, request):
        headers = {"content-type": "application/json", "content-length": "2"}
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"{}"))


# How many of our functions a recorded httpx POST enters at most, early and late in a run. These only ever shrink:
# the goals are 120 and 100. Of several calls the least counts: a clock reading or a stream that is flushed by
# our thread between two pieces adds to some of them.
BUDGET = {range(3, 9): 90, range(90, 101): 88}
# Without the native core, the search for secrets adds functions of Python.
MORE_IN_PYTHON = 40


def test_a_recorded_post_stays_within_its_budget_of_function_calls(tmp_path, capsys):
    entered = {}
    with (
        playhead.record(store=tmp_path, intercept=True),
        httpx.Client(transport=Memory()) as client,
    ):
        for number in range(1, 101):
            with traced() as seen:
                body = {"number": number, "item": "cup"}
                client.post("https://shop.example/v1/orders", json=body)
            entered[number] = (sum(seen.values()), len({module for module, _ in seen}))
    least = {numbers: min(entered[number] for number in numbers) for numbers in BUDGET}
    with capsys.disabled():
        for numbers, (functions, modules) in least.items():
            print(
                f"\nPOST {numbers[0]} to {numbers[-1]}: {functions} functions in {modules} modules"
            )
    more = 0 if native_core.core else MORE_IN_PYTHON
    assert all(functions <= BUDGET[numbers] + more for numbers, (functions, _) in least.items())
