"""Every boundary goes through `Deck.perform` to the tape, and from the tape to its client."""

import asyncio
import contextlib
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path

import aiohttp
import httpx
import pytest
import requests

import playhead
from playhead.tape.reader import Tape
from playhead.testing import HttpSite

OWN = str(Path(playhead.__file__).parent)


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
        store.put("a", 1)
    return store.items


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
    assert doors >= 1
    written = [event for event in Tape(run.path).events() if event.kind in ("call", "outcome")]
    assert {event.kind for event in written} == {"call", "outcome"}
    # One function puts every event on the tape; whatever a thread of ours wrote is not counted here.
    assert seen["recording/encoder.py", "append"] >= len(written)
    # And nothing below it is entered from anywhere else.
    appended = seen["recording/encoder.py", "append"]
    assert seen["tape/writer.py", "append"] == appended


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
