"""Several runs that are open in one process at the same time: each tape has the calls of its own run."""

import asyncio
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

import playhead
from playhead.hooks import registry
from playhead.recording import ambient, deck, points
from playhead.tape.reader import Tape

MANY = 50


class Echo(BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"for {self.path}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


@pytest.fixture(scope="module")
def url():
    server = Server(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def calls(path, boundary="http"):
    return [
        event.data
        for event in Tape(path).events()
        if event.kind == "call" and event.data["boundary"] == boundary
    ]


def urls(path):
    return [call["request"]["url"].rpartition("/")[2] for call in calls(path)]


def get(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read()


@playhead.tool(name="look_up")
def look_up(user):
    return user


def test_fifty_runs_in_threads_each_have_their_own_calls(url, tmp_path):
    ready = threading.Barrier(MANY)
    paths = {}

    def serve(user):
        with playhead.record(name=user, store=tmp_path, intercept=True) as run:
            ready.wait()
            get(f"{url}/{user}-a")
            look_up(user)
            run.emit("asked", user)
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(get, [f"{url}/{user}-b", f"{url}/{user}-c"]))
            helper = threading.Thread(target=get, args=(f"{url}/{user}-d",))
            helper.start()
            helper.join()
            ready.wait()
        paths[user] = run.path

    threads = [threading.Thread(target=serve, args=(f"user{n}",)) for n in range(MANY)]
    for thread in threads:
        thread.start()
    get(f"{url}/nobody")
    for thread in threads:
        thread.join()
    assert len(set(paths.values())) == MANY
    for user, path in paths.items():
        assert sorted(urls(path)) == [f"{user}-{letter}" for letter in "abcd"]
        assert [call["request"]["arguments"] for call in calls(path, "tool")] == [{"user": user}]
        asked = [event for event in Tape(path).events() if event.kind == "asked"]
        assert [event.data for event in asked] == [user]
        assert Tape(path).manifest.status == "ok"


def test_fifty_runs_in_tasks_each_have_their_own_calls(url, tmp_path):
    paths = {}

    async def serve(client, user):
        async with playhead.record(name=user, store=tmp_path, intercept=True) as run:
            await client.get(f"{url}/{user}-a")
            await asyncio.gather(client.get(f"{url}/{user}-b"), client.get(f"{url}/{user}-c"))
            await asyncio.to_thread(get, f"{url}/{user}-d")
        paths[user] = run.path

    async def main():
        async with httpx.AsyncClient() as client:  # one client for all, as backends have it
            both = [serve(client, f"user{n}") for n in range(MANY)]
            await asyncio.gather(*both, client.get(f"{url}/nobody"))

    asyncio.run(main())
    assert len(paths) == MANY
    for user, path in paths.items():
        assert sorted(urls(path)) == [f"{user}-{letter}" for letter in "abcd"]


def test_each_run_counts_lanes_and_readings_of_its_own(url, tmp_path):
    ready = threading.Barrier(2)
    paths = []

    def serve():
        with playhead.record(store=tmp_path, intercept=True) as run:
            ready.wait()
            time.time()
            helper = threading.Thread(target=get, args=(f"{url}/x",))
            helper.start()
            helper.join()
            ready.wait()
        paths.append(run.path)

    threads = [threading.Thread(target=serve) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for path in paths:
        found = list(Tape(path).events())
        assert [event.lane for event in found if event.kind == "call"] == ["main/1"]
        readings = [row for e in found if e.kind == "ambient" for row in e.data["readings"]]
        assert [
            row for row in readings if row[1] == "time" and row[0] == "main" and "serve" in row[2]
        ]
        assert any(event.kind == "hook" for event in found)


def test_children_join_the_run_that_started_them(tmp_path):
    ready = threading.Barrier(3)
    paths = {}

    def serve(user):
        with playhead.record(store=tmp_path, intercept=True) as run:
            ready.wait()
            subprocess.run(
                [sys.executable, "-c", f"import subprocess; subprocess.run(['echo', '{user}'])"],
                stdout=subprocess.DEVNULL,
                check=True,
            )
            ready.wait()
        paths[user] = run.path

    threads = [threading.Thread(target=serve, args=(f"user{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for user, path in paths.items():
        assert [call["request"]["argv"] for call in calls(path, "process")][1:] == [["echo", user]]


def test_what_belongs_to_no_run_is_on_no_tape(url, tmp_path):
    opened, asked = threading.Event(), threading.Event()
    paths = []

    def serve():
        with playhead.record(store=tmp_path, intercept=True) as run:
            opened.set()
            asked.wait()
        paths.append(run.path)

    thread = threading.Thread(target=serve)
    thread.start()
    opened.wait()
    get(f"{url}/nobody")
    assert not isinstance(playhead.current(), playhead.Run)
    asked.set()
    thread.join()
    assert calls(paths[0]) == []


def test_a_thread_of_before_belongs_to_the_run_of_the_program(url, tmp_path):
    wanted, done = threading.Event(), threading.Event()

    def work():
        wanted.wait()
        get(f"{url}/early")
        done.set()

    threading.Thread(target=work).start()
    with playhead.record(store=tmp_path, intercept=True) as run:
        wanted.set()
        done.wait()
    assert urls(run.path) == ["early"]


def test_a_run_inside_another_has_its_calls_to_itself(url, tmp_path):
    with playhead.record(store=tmp_path, intercept=True) as outer:
        get(f"{url}/outer-1")
        with (
            outer.turn("respond"),
            playhead.record(store=tmp_path, intercept=True, run_id="in") as run,
        ):
            get(f"{url}/inner")
        get(f"{url}/outer-2")
    assert urls(run.path) == ["inner"]
    assert urls(outer.path) == ["outer-1", "outer-2"]
    refs = {event.ref for event in Tape(run.path).events()}
    inner = next(event for event in Tape(run.path).events() if event.kind == "call")
    assert inner.absolute(inner.parent) in refs


def test_the_first_run_to_end_leaves_the_others_hooked(url, tmp_path):
    first_ended = threading.Event()
    both_open = threading.Barrier(2)
    paths = {}

    def short():
        with playhead.record(store=tmp_path, intercept=True) as run:
            both_open.wait()
        paths["short"] = run.path
        first_ended.set()

    def long():
        with playhead.record(store=tmp_path, intercept=True) as run:
            both_open.wait()
            first_ended.wait()
            get(f"{url}/late")
        paths["long"] = run.path

    threads = [threading.Thread(target=one) for one in (short, long)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert urls(paths["short"]) == []
    assert urls(paths["long"]) == ["late"]
    assert deck.active() is None
    assert ambient.source() is None
    assert points.active() is None
    assert not registry._installed


def test_a_failing_run_beside_others_ends_failed_alone(url, tmp_path):
    ready = threading.Barrier(2)
    paths = {}

    def serve(user, error):
        try:
            with playhead.record(name=user, store=tmp_path, intercept=True) as run:
                paths[user] = run.path
                ready.wait()
                get(f"{url}/{user}")
                if error:
                    raise error
        except ValueError:
            return

    threads = [
        threading.Thread(target=serve, args=("good", None)),
        threading.Thread(target=serve, args=("bad", ValueError("no"))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {user: Tape(path).manifest.status for user, path in paths.items()} == {
        "good": "ok",
        "bad": "failed",
    }
    assert {user: urls(path) for user, path in paths.items()} == {"good": ["good"], "bad": ["bad"]}
