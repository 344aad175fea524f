"""A server as the program: connections from outside are input, and a replay opens them again."""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import websockets.sync.client

from playhead.testing import HttpSite

UVICORN = """
import asyncio, json, sys, time, uuid
import httpx, uvicorn

async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive()).get("text"):
            await send({"type": "websocket.send", "text": f"{message['text']} {uuid.uuid4()}"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/stream":
        for n in range(3):
            await asyncio.sleep(0.01)
            event = f"data: {n} {time.time()}\\n\\n".encode()
            await send({"type": "http.response.body", "body": event, "more_body": True})
        return await send({"type": "http.response.body"})
    async with httpx.AsyncClient() as client:
        got = await client.post(sys.argv[1], content=body)
    answer = {"length": got.json()["length"], "id": str(uuid.uuid4())}
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

uvicorn.run(app, port=0, lifespan="off", loop="asyncio")
"""
AIOHTTP = """
import asyncio, os, sys, time, uuid
from aiohttp import ClientSession, web

async def ask(request):
    async with ClientSession() as client:
        async with client.post(sys.argv[1], data=await request.read()) as got:
            answer = {"length": (await got.json())["length"], "id": str(uuid.uuid4())}
    print("answered", answer["length"], flush=True)
    return web.json_response(answer)

async def stream(request):
    response = web.StreamResponse()
    await response.prepare(request)
    for n in range(3):
        await asyncio.sleep(0.01)
        await response.write(f"data: {n} {time.time()}\\n\\n".encode())
    return response

app = web.Application()
app.add_routes([web.post("/ask", ask), web.get("/stream", stream)])
print(f"process [{os.getpid()}]", flush=True)
web.run_app(app, host="127.0.0.1", port=0, print=lambda text: print(text, flush=True))
"""
HTTP_SERVER = """
import http.server, json, os, sys, time, urllib.request, uuid

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=body)) as got:
            answer = {"length": json.load(got)["length"], "id": str(uuid.uuid4())}
        self.answer(json.dumps(answer).encode())

    def do_GET(self):
        self.answer(b"".join(b"data: %d %f;" % (n, time.time()) for n in range(3)))

    def answer(self, content):
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"process [{os.getpid()}]", flush=True)
print(f"Running on http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
"""
# As gunicorn: worker processes accept from the socket of their parent.
WORKERS = """
import http.server, json, os, select, signal, socket, sys, time, urllib.request, uuid

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=body)) as got:
            answer = {"length": json.load(got)["length"], "id": str(uuid.uuid4())}
        self.answer(json.dumps(answer).encode())

    def do_GET(self):
        self.answer(b"".join(b"data: %d %f;" % (n, time.time()) for n in range(3)))

    def answer(self, content):
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

def work(listener):
    while True:
        try:
            made, address = listener.accept()
        except BlockingIOError:
            select.select([listener], [], [])
            continue
        made.setblocking(True)
        Handler(made, address, None)
        made.close()

listener = socket.create_server(("127.0.0.1", 0))
listener.setblocking(False)
workers = []
for _ in range(2):
    worker = os.fork()
    if not worker:
        work(listener)
    workers.append(worker)

def stop(*_):
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
    for worker in workers:
        os.waitpid(worker, 0)
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
print(f"process [{os.getpid()}]", flush=True)
print(f"Running on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
while True:
    signal.pause()
"""
PROGRAMS = {
    "uvicorn": UVICORN,
    "uvicorn on uvloop": UVICORN.replace('loop="asyncio"', 'loop="uvloop"'),
    "aiohttp": AIOHTTP,
    "http.server": HTTP_SERVER,
    "workers": WORKERS,
}


def play(folder, *words):
    argv = [
        sys.executable,
        "-m",
        "playhead",
        words[0],
        "--store",
        str(folder / "store"),
        *words[1:],
    ]
    return subprocess.run(
        argv, check=False, cwd=folder, capture_output=True, timeout=100, text=True
    )


def recorded(folder, program, *options, words=()):
    """Start the recording of a server that ends by itself."""
    (folder / "server.py").write_text(program)
    argv = [sys.executable, "-m", "playhead", "record", "--store", str(folder / "store")]
    return subprocess.Popen(
        [*argv, *options, "--", sys.executable, "server.py", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def served(folder, program, upstream):
    """Record the server, use it, and stop it. What it printed, and its exit code."""
    argv = [sys.executable, "-m", "playhead", "record", "--store", str(folder / "store"), "--"]
    running = subprocess.Popen(
        [*argv, sys.executable, program, upstream],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    printed = ""
    with running:
        while not (address := re.search(r"unning on http://127.0.0.1:(\d+)", printed)):
            line = running.stdout.readline().decode()
            assert line, printed
            printed += line
        client = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=30)
        # Two requests over one connection, then one over another.
        for word in (b"one", b"three"):
            client.request("POST", "/ask", body=word)
            assert json.load(client.getresponse())["length"] == len(word)
        client.close()
        client.request("GET", "/stream")
        assert client.getresponse().read().count(b"data: ") == 3
        client.close()
        # This connection is open until the server ends.
        client.request("POST", "/late", body=b"late")
        assert client.getresponse().read()
        if "uvicorn" in Path(folder, program).read_text():
            with websockets.sync.client.connect(f"ws://127.0.0.1:{address[1]}/talk") as talk:
                for word in ("first", "second"):
                    talk.send(word)
                    assert talk.recv().startswith(word)
        os.kill(int(re.search(r"process \[(\d+)\]", printed)[1]), signal.SIGTERM)
        printed += running.stdout.read().decode()
        client.close()
    return running.returncode


# SERVERS=all has all of them. aiohttp.web: of 20 runs on a busy machine one replay did not end.
SHORT = [
    one
    for one in PROGRAMS
    if one in ("uvicorn", "http.server") or os.environ.get("SERVERS") == "all"
]


@pytest.mark.parametrize("kind", SHORT)
def test_a_replay_sends_the_taped_requests_and_compares_the_answers(tmp_path, kind):
    program = PROGRAMS[kind]
    path = tmp_path / "server.py"
    path.write_text(program)
    with HttpSite() as site:
        code = served(tmp_path, path.name, f"{site.url}/upload")
    replayed = play(tmp_path, "replay")
    assert replayed.returncode == 0, replayed.stderr
    assert "identical" in replayed.stderr
    assert code == (0 if kind in ("aiohttp", "workers") else 143)
    if kind == "uvicorn":
        # The second request came over the connection of the first.
        alone = play(tmp_path, "replay", "--request", "2", "--json")
        assert alone.returncode == 0, alone.stderr
        report = json.loads(alone.stderr.splitlines()[-1])
        assert report["request"] == {"number": 2, "name": "POST /ask", "calls": 1, "answered": True}
        assert report["coverage"]["http"]["exact"] == 1
        assert report["output_same"] is None
        missing = play(tmp_path, "replay", "--request", "9")
        assert missing.returncode == 2
        assert "has no request 9: it has" in missing.stderr
    path.write_text(program.replace('"length": ', '"size": '))
    if kind != "uvicorn":
        other = play(tmp_path, "replay", "--request", "3")
        assert other.returncode == 0, other.stderr
        assert "GET /stream: the answer and that it makes no call were compared" in other.stderr
        late = play(tmp_path, "replay", "--request", "4")
        assert late.returncode == 3
        assert "answer to POST /late" in late.stderr
    changed = play(tmp_path, "replay")
    assert changed.returncode == 3
    assert "answer to POST /ask" in changed.stderr
    if kind == "uvicorn":
        path.write_text(program.replace("content=body", "content=b'other'"))
        asked = play(tmp_path, "replay")
        assert asked.returncode == 3
        assert "no taped call matches" in asked.stderr


# The system holds what a corked socket sends back for 0.2 s, as a busy machine does until it has a processor for it.
LATE_IN_A_LOOP = """
import asyncio, socket
from playhead.hooks.input import asyncio_servers

connect = asyncio_servers._Client.open

def connect_late(client, target):
    port = connect(client, target)
    client._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    return port

asyncio_servers._Client.open = connect_late

async def main():
    left = asyncio.Semaphore(0)

    async def answer(reader, writer):
        while (line := await reader.readline()) != b"end\\n":
            print("got", line, flush=True)
            writer.write(line.upper())
        writer.close()
        left.release()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print("Running on", server.sockets[0].getsockname()[1], flush=True)
    for _ in range(2):
        await left.acquire()
        print("left", flush=True)

asyncio.run(main())
"""
LATE_IN_THREADS = """
import socket, socketserver
from playhead.hooks.input import threaded_servers

connect = threaded_servers._TapedClient._open

def connect_late(client):
    connect(client)
    client._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)

threaded_servers._TapedClient._open = connect_late

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while (line := self.rfile.readline()) != b"end\\n":
            print("got", line, flush=True)
            self.wfile.write(line.upper())
        print("left", flush=True)

with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
    print("Running on", server.server_address[1], flush=True)
    server.handle_request()
    server.handle_request()
"""


LATE = {"in a loop": LATE_IN_A_LOOP}
if os.environ.get("SERVERS") == "all":
    LATE["in threads"] = LATE_IN_THREADS


@pytest.mark.parametrize("program", LATE.values(), ids=LATE)
def test_a_replay_waits_until_the_system_has_delivered_a_request(tmp_path, program):
    with recorded(tmp_path, program) as running:
        first = running.stdout.readline()
        for words in (("one", "two"), ("three",)):
            address = ("127.0.0.1", int(first.split()[-1]))
            with socket.create_connection(address, timeout=30) as made, made.makefile("rw") as file:
                for word in words:
                    file.write(f"{word}\n")
                    file.flush()
                    assert file.readline() == f"{word.upper()}\n"
                file.write("end\n")
                file.flush()
                assert file.read() == ""
        printed = first + running.stdout.read()
    replayed = play(tmp_path, "replay")
    assert (replayed.returncode, replayed.stdout) == (0, printed), replayed.stderr


# As gunicorn with threads: the program accepts only when the system reports a connection.
WAITS_FIRST = """
import select, selectors, socket

class Wrapped:
    def __init__(self, listener):
        self.fileno = listener.fileno

def by_select(listener):
    select.select([listener], [], [])

def by_poll(listener):
    waiting = select.poll()
    waiting.register(Wrapped(listener), select.POLLIN)
    waiting.poll()

def by_epoll(listener):
    with select.epoll() as waiting:
        waiting.register(listener.fileno(), select.EPOLLIN)
        waiting.poll()

def by_selector(listener):
    with selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)
        waiting.select()

for wait in (by_select, by_poll, by_epoll, by_selector):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print("Running on", listener.getsockname()[1], flush=True)
        wait(listener)
        made, _ = listener.accept()
        with made, made.makefile("rw") as file:
            print(wait.__name__, file.readline().upper(), end="", file=file)
"""


def test_a_server_that_waits_for_a_connection_before_it_accepts_is_replayed(tmp_path):
    printed = ""
    with recorded(tmp_path, WAITS_FIRST) as running:
        while line := running.stdout.readline():
            printed += line
            address = ("127.0.0.1", int(line.split()[-1]))
            with socket.create_connection(address, timeout=30) as made, made.makefile("rw") as file:
                file.write("word\n")
                file.flush()
                assert file.read().endswith(" WORD\n")
    replayed = play(tmp_path, "replay")
    assert (replayed.returncode, replayed.stdout) == (0, printed), replayed.stderr
    (tmp_path / "server.py").write_text(WAITS_FIRST.replace("upper", "lower"))
    changed = play(tmp_path, "replay")
    assert changed.returncode == 3
    assert "by_select WORD" in changed.stderr


ENDS_WITH_CLIENT = """
import asyncio

async def main():
    left = asyncio.Semaphore(0)

    async def answer(reader, writer):
        while line := await reader.readline():
            writer.write(line.upper())
        print("the client sends no more", flush=True)
        writer.write(b"goodbye\\n")
        writer.close()
        left.release()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print("Running on", server.sockets[0].getsockname()[1], flush=True)
    for _ in range(3):
        await left.acquire()

asyncio.run(main())
"""


def test_a_server_that_answers_until_its_client_ends_is_replayed(tmp_path):
    with recorded(tmp_path, ENDS_WITH_CLIENT) as running:
        first = running.stdout.readline()
        address = ("127.0.0.1", int(first.split()[-1]))
        for words, reads in ((b"one\n", True), (b"", True), (b"two\n", False)):
            with socket.create_connection(address, timeout=30) as made:
                made.sendall(words)
                if reads:
                    made.shutdown(socket.SHUT_WR)
                    assert made.makefile("rb").read() == words.upper() + b"goodbye\n"
        printed = first + running.stdout.read()
    assert printed.count("the client sends no more") == 3
    replayed = play(tmp_path, "replay")
    assert (replayed.returncode, replayed.stdout) == (0, printed), replayed.stderr


ENCRYPTED = """
import asyncio, sys

async def main():
    left = asyncio.Event()

    async def answer(reader, writer):
        line = await reader.readline()
        is_tls = writer.get_extra_info("sslcontext") is not None
        writer.write(line.upper() + b"encrypted\\n" * is_tls)
        writer.close()
        left.set()

    if sys.argv[1] == "tls":
        import ssl
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*sys.argv[2:])
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        print("Running on", server.sockets[0].getsockname()[1], flush=True)
    else:
        await asyncio.start_unix_server(answer, sys.argv[2])
        print("Running on", sys.argv[2], flush=True)
    await left.wait()

asyncio.run(main())
"""


def test_requests_to_a_server_with_tls_are_sent_again_above_the_encryption(tmp_path, certificate):
    with recorded(tmp_path, ENCRYPTED, words=("tls", *certificate)) as running:
        first = running.stdout.readline()
        context = ssl._create_unverified_context()
        address = ("127.0.0.1", int(first.split()[-1]))
        with (
            socket.create_connection(address, timeout=30) as made,
            context.wrap_socket(made) as tls,
        ):
            tls.sendall(b"one\n")
            assert tls.makefile("rb").read() == b"ONE\nencrypted\n"
        running.stdout.read()
    replayed = play(tmp_path, "replay")
    assert (replayed.returncode, replayed.stdout) == (0, first), replayed.stderr
    (tmp_path / "server.py").write_text(ENCRYPTED.replace("upper", "lower"))
    changed = play(tmp_path, "replay")
    assert changed.returncode == 3
    assert "b'ONE" in changed.stderr


def test_requests_from_outside_to_a_unix_socket_make_a_run_partial(tmp_path):
    path = str(tmp_path / "s")
    with recorded(tmp_path, ENCRYPTED, words=("unix", path)) as running:
        running.stdout.readline()
        with socket.socket(socket.AF_UNIX) as made:
            made.connect(path)
            made.sendall(b"one\n")
            assert made.makefile("rb").read() == b"ONE\n"
        running.stdout.read()
    refused = play(tmp_path, "replay")
    assert refused.returncode == 4
    assert "requests to a Unix socket were not recorded" in " ".join(refused.stderr.split())


ONE_THREAD = """
import http.server, uuid

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        content = f"{body.decode()} {uuid.uuid4()}".encode()
        self.send_response(500 if body == b"bad" else 200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
    print("Running on", server.server_address[1], flush=True)
    server.handle_request()
    server.handle_request()
"""


def test_each_request_can_be_a_run_of_its_own(tmp_path):
    with recorded(tmp_path, ONE_THREAD, "--run-per", "request", "--name", "server") as running:
        port = int(running.stdout.readline().split()[-1])
        for words in (("one", "bad"), ("two",)):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            for word in words:
                client.request("POST", f"/{word}", body=word)
                assert client.getresponse().read().decode().startswith(word)
            client.close()
    runs = json.loads(play(tmp_path, "list", "--json").stdout)
    found = {one["name"]: one for one in runs}
    assert {name: one["status"] for name, one in found.items()} == {
        "server": "ok",
        "POST /one": "ok",
        "POST /bad": "failed",
        "POST /two": "ok",
    }
    second = found["POST /bad"]["id"]
    assert play(tmp_path, "verify", second).returncode == 0
    shown = play(tmp_path, "show", second).stdout
    assert "request 1 POST /bad → 500" in shown
    assert "POST /one" not in shown
    # It is replayed as a request of the server's run, which it needs.
    replayed = play(tmp_path, "replay", second)
    assert replayed.returncode == 0, replayed.stderr
    assert f"request 2 of {found['server']['id']}" in replayed.stderr
    play(tmp_path, "rm", "--yes", found["server"]["id"])
    refused = play(tmp_path, "replay", second)
    assert refused.returncode == 4
    assert "needs that run" in refused.stderr
