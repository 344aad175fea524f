"""Connections without a hook of their own: taped as conversations, and played with the servers gone."""

import os
import shutil
import signal
import socketserver
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import websockets.sync.server
from tests import warm_start

PLAYHEAD = (sys.executable, "-m", "playhead")


class Lines(socketserver.StreamRequestHandler):
    """Greets, answers each line in capitals, and closes after `quit`."""

    def handle(self):
        self.server.served.append(1)
        self.wfile.write(b"220 hello\r\n")
        for line in self.rfile:
            self.wfile.write(line.upper())
            if line.strip() == b"quit":
                return


class _Server:
    def __init__(self, server):
        self.server = server
        self.served = server.served = []
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def lines():
    server = _Server(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Lines))
    yield server
    server.stop()


@pytest.fixture
def unix_lines(tmp_path):
    server = _Server(socketserver.ThreadingUnixStreamServer(str(tmp_path / "sock"), Lines))
    yield server
    server.stop()


@pytest.fixture
def play(tmp_path):
    """Record a program, stop its servers, replay it; the two results."""
    folder = tmp_path / "work"
    folder.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PLAYHEAD_", "PYTHON"))}
    env = {**kept, "PLAYHEAD_HOME": str(tmp_path / "home")}

    def run(*argv, **more):
        return warm_start.run(
            [*PLAYHEAD, *argv],
            cwd=folder,
            env={**env, **more},
            capture_output=True,
            text=True,
            timeout=100,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    class Play:
        def record(self, program, *words):
            (folder / "agent.py").write_text(program)
            return run("record", "--", sys.executable, "agent.py", *map(str, words))

        def replay(self, *options, **more):
            return run("replay", *options, "last", **more)

        def show(self):
            return run("show", "last").stdout

        def edit(self, old, new):
            text = (folder / "agent.py").read_text()
            assert old in text
            (folder / "agent.py").write_text(text.replace(old, new))

    return Play()


BLOCKING = """
import socket, sys
made = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
with made, made.makefile("rw") as file:
    print(file.readline())
    for word in ("one", "two", "quit"):
        file.write(word + "\\n")
        file.flush()
        print(file.readline(), made.getpeername()[0], made.getsockname())
    print(repr(file.read()))
"""
ASYNCIO = """
import asyncio, random, sys
async def talk(number):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    print(await reader.readline())
    for word in range(3):
        writer.write(f"{number}-{word}\\n".encode())
        await writer.drain()
        print(await reader.readline())
        await asyncio.sleep(random.random() / 50)
    writer.write(b"quit\\n")
    print(await reader.read())
    writer.close()
async def main():
    await asyncio.gather(*[talk(number) for number in range(4)])
asyncio.run(main())
"""
TRIO = """
import sys, trio
async def main():
    stream = await trio.open_tcp_stream("127.0.0.1", int(sys.argv[1]))
    print(await stream.receive_some())
    for word in (b"one\\n", b"quit\\n"):
        await stream.send_all(word)
        print(await stream.receive_some())
    print(await stream.receive_some())
trio.run(main)
"""
SELECTED = """
import select, socket, sys
made = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
made.setblocking(False)
for word in (b"one\\n", b"quit\\n"):
    select.select([made], [], [])
    print(made.recv(100))
    made.sendall(word)
select.select([made], [], [])
print(made.recv(100))
"""
# As results of Celery do, which leave a Redis channel when they are deleted.
AT_THE_VERY_END = """
import builtins, socket, sys

class Late:
    def __del__(self):
        self.socket.sendall(b"bye\\n")

builtins.late = Late()
builtins.late.socket = made = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(made.recv(100))
"""
SMTP = """
import smtplib, sys
class Quiet(smtplib.SMTP):
    pass
client = smtplib.SMTP()
print(client.connect("127.0.0.1", int(sys.argv[1])))
client.send("quit\\r\\n")
print(client.file.readline() if client.file else client.sock.recv(100))
"""


@pytest.mark.parametrize(
    "program",
    [BLOCKING, ASYNCIO, TRIO, SELECTED, SMTP, AT_THE_VERY_END],
    ids=["blocking", "asyncio", "trio", "select", "smtplib", "at the very end"],
)
def test_a_conversation_is_played_with_the_server_gone(play, lines, program):
    taken = play.record(program, lines.server.server_address[1])
    assert taken.returncode == 0, taken.stderr
    assert "partial" not in taken.stderr
    assert "ignored" not in taken.stderr
    count = len(lines.served)
    lines.stop()
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout
    assert len(lines.served) == count >= 1


SOCK_RECV = """
import asyncio, random, socket, sys
async def talk(number):
    loop, made = asyncio.get_running_loop(), socket.socket()
    made.setblocking(False)
    await loop.sock_connect(made, ("127.0.0.1", int(sys.argv[1])))
    print(number, await loop.sock_recv(made, 1000))
    for word in (f"{number}-0", f"{number}-1", "quit"):
        await loop.sock_sendall(made, word.encode() + b"\\n")
        print(await loop.sock_recv(made, 1000))
        await asyncio.sleep(random.random() / 50)
    print(number, await loop.sock_recv(made, 1000))
    made.close()
async def main():
    await asyncio.gather(*[talk(number) for number in range(12)])
asyncio.run(main())
"""
PROTOCOL = """
import asyncio, sys
class Talk(asyncio.Protocol):
    def __init__(self, number, done):
        self.number, self.done, self.words = number, done, [b"one\\n", b"two\\n", b"quit\\n"]
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        print(self.number, data)
        if self.words:
            self.transport.write(self.words.pop(0))
    def connection_lost(self, error):
        print("lost", self.number)
        self.done.set_result(None)
async def main():
    loop, ends = asyncio.get_running_loop(), []
    for number in range(12):
        ends.append(loop.create_future())
        await loop.create_connection(lambda: Talk(number, ends[-1]), "127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(*ends)
asyncio.run(main())
"""
NURSERY = """
import random, sys, trio
async def talk(number):
    stream = await trio.open_tcp_stream("127.0.0.1", int(sys.argv[1]))
    print(number, await stream.receive_some())
    for word in (f"{number}-0", f"{number}-1", "quit"):
        await stream.send_all(word.encode() + b"\\n")
        print(await stream.receive_some())
        await trio.sleep(random.random() / 50)
    print(number, await stream.receive_some())
async def main():
    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(talk, number)
trio.run(main)
"""


@pytest.mark.parametrize(
    "program",
    [ASYNCIO.replace("range(4)", "range(12)"), SOCK_RECV, PROTOCOL, NURSERY],
    ids=["streams", "sock_recv", "protocol", "trio"],
)
def test_twelve_conversations_of_one_event_loop_are_played_in_their_order(play, lines, program):
    played_alike(play, program, lines.server.server_address[1], lines.stop)


def played_alike(play, program, port, stop):
    taken = play.record(program, port)
    assert taken.returncode == 0, taken.stderr
    stop()
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout


@pytest.fixture
def greeter():
    """A WebSocket server that greets, answers in capitals, and closes after `quit`."""

    def talk(connection):
        connection.send("hello")
        for message in connection:
            connection.send(message.upper())
            if message == "quit":
                return

    server = websockets.sync.server.serve(talk, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


SOCKETS = """
import asyncio, random, sys, websockets
async def talk(number):
    async with websockets.connect(f"ws://127.0.0.1:{sys.argv[1]}", proxy=None) as made:
        print(number, await made.recv())
        for word in (f"{number}-0", f"{number}-1", "quit"):
            await made.send(word)
            print(await made.recv())
            await asyncio.sleep(random.random() / 50)
    print(number, "closed")
async def main():
    await asyncio.gather(*[talk(number) for number in range(12)])
asyncio.run(main())
"""
AIOHTTP_SOCKETS = """
import asyncio, random, sys, aiohttp
async def talk(session, number):
    async with session.ws_connect(f"http://127.0.0.1:{sys.argv[1]}") as made:
        print(number, await made.receive_str())
        for word in (f"{number}-0", f"{number}-1", "quit"):
            await made.send_str(word)
            print(await made.receive_str())
            await asyncio.sleep(random.random() / 50)
    print(number, "closed")
async def main():
    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*[talk(session, number) for number in range(12)])
asyncio.run(main())
"""


@pytest.mark.parametrize("program", [SOCKETS, AIOHTTP_SOCKETS], ids=["websockets", "aiohttp"])
def test_twelve_websockets_of_one_event_loop_are_played_in_their_order(play, greeter, program):
    played_alike(play, program, greeter.socket.getsockname()[1], greeter.shutdown)


def test_a_conversation_over_a_unix_socket_is_played_with_the_server_gone(play, unix_lines):
    program = BLOCKING.replace("TCP_NODELAY", "SO_KEEPALIVE").replace("IPPROTO_TCP", "SOL_SOCKET")
    program = program.replace(
        'socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)',
        "socket.socket(socket.AF_UNIX); made.connect(sys.argv[1])",
    ).replace("made.getpeername()[0]", "made.getpeername()")
    taken = play.record(program, unix_lines.server.server_address)
    assert taken.returncode == 0, taken.stderr
    unix_lines.stop()
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout


def test_tls_is_taped_above_the_encryption(play, lines, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    lines.server.socket = context.wrap_socket(lines.server.socket, server_side=True)
    program = BLOCKING.replace("import socket, sys", "import socket, ssl, sys").replace(
        "with made,",
        "context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n"
        "context.load_verify_locations(sys.argv[2])\n"
        "context.check_hostname = False\n"
        "made = context.wrap_socket(made)\n"
        "with made,",
    )
    taken = play.record(program, lines.server.server_address[1], certificate[0])
    assert taken.returncode == 0, taken.stderr
    assert "ONE" in taken.stdout
    lines.stop()
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout


ASYNCIO_TLS = """
import asyncio, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(sys.argv[2])
context.check_hostname = False
class Lines(asyncio.Protocol):
    def __init__(self):
        self.got = asyncio.Queue()
    def data_received(self, data):
        self.got.put_nowait(data)
async def main():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]), ssl=context)
    print(await reader.readline(), type(writer.transport.get_protocol()).__name__)
    writer.writelines([b"one\\n", b"quit\\n"])
    print(await reader.read())
    writer.close()
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_connection(Lines, "127.0.0.1", int(sys.argv[1]), ssl=context)
    print(await protocol.got.get())
    transport.write(b"two\\n")
    print(await protocol.got.get())
    transport.close()
asyncio.run(main())
"""

UVLOOP_TLS = ASYNCIO_TLS.replace("asyncio.run", "import uvloop\nuvloop.run")
TRIO_TLS = """
import ssl, sys, trio
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(sys.argv[2])
context.check_hostname = False
async def main():
    stream = await trio.open_ssl_over_tcp_stream("127.0.0.1", int(sys.argv[1]), ssl_context=context)
    await stream.do_handshake()
    print(await stream.receive_some())
    for word in (b"two\\n", b"quit\\n"):
        await stream.send_all(word)
        print(await stream.receive_some())
    await stream.aclose()
trio.run(main)
"""


@pytest.mark.parametrize(
    "program", [ASYNCIO_TLS, UVLOOP_TLS, TRIO_TLS], ids=["asyncio", "uvloop", "trio"]
)
def test_tls_of_an_event_loop_is_taped_above_the_encryption(play, lines, certificate, program):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    lines.server.socket = context.wrap_socket(lines.server.socket, server_side=True)
    taken = play.record(program, lines.server.server_address[1], certificate[0])
    assert taken.returncode == 0, taken.stderr
    assert "partial" not in taken.stderr
    assert "TWO" in taken.stdout
    lines.stop()
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout


WEBSOCKETS = """
import asyncio, sys
from websockets.asyncio.client import connect
async def talk(name):
    heard = []
    async with connect(f"ws://127.0.0.1:{sys.argv[1]}/") as socket:
        for number in range(3):
            await socket.send(f"{name} {number}")
            heard.append(await socket.recv())
    return heard
async def main():
    print(await talk("first"))
    print(await asyncio.gather(*[talk(f"parallel-{n}") for n in range(4)]))
asyncio.run(main())
"""
# Each answer as it comes: one replay on a busy machine had two answers in another order.
PRINTED = WEBSOCKETS.replace("heard.append(await socket.recv())", "print(await socket.recv())")
ALL = os.environ.get("SERVERS") == "all"


@pytest.mark.parametrize("program", [WEBSOCKETS, PRINTED] if ALL else [WEBSOCKETS])
def test_equal_websockets_at_the_same_time_get_their_own_answers(play, program):
    def echo(socket):
        for message in socket:
            socket.send(f"echo {message}")

    server = websockets.sync.server.serve(echo, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    taken = play.record(program, server.socket.getsockname()[1])
    server.shutdown()
    assert taken.returncode == 0, taken.stderr
    assert taken.stdout.count("echo") == 15
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout


LOOKUPS = """
import asyncio, socket, sys
port = int(sys.argv[1])
name = "0x7f000001"  # an address, in a form that only the resolver understands
print(socket.getaddrinfo(name, port, type=socket.SOCK_STREAM), socket.gethostbyname(name))
with socket.create_connection((name, port)) as made:
    print(made.recv(100))
async def main():
    reader, writer = await asyncio.open_connection(name, port)
    print(await reader.readline())
    writer.close()
    for look_up in (lambda: socket.getaddrinfo("nowhere.invalid", 1), socket.gethostbyname):
        try:
            print(look_up("nowhere.invalid") if look_up is socket.gethostbyname else look_up())
        except socket.gaierror as error:
            print(type(error).__name__, error)
asyncio.run(main())
"""


def test_names_of_hosts_are_looked_up_on_the_tape(play, lines):
    taken = play.record(LOOKUPS, lines.server.server_address[1])
    assert taken.returncode == 0, taken.stderr
    assert taken.stdout.count("220 hello") == 2
    lines.stop()
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout


def test_a_changed_word_in_a_conversation_is_found(play, lines):
    play.record(BLOCKING, lines.server.server_address[1])
    lines.stop()
    play.edit('"two"', '"due"')
    again = play.replay("--in-place")
    assert again.returncode == 3
    first = again.stderr.partition("1. ")[2].partition("2. ")[0]
    assert "sends b'due" in " ".join(first.split())
    assert "its tape has b'two" in " ".join(first.split())


def test_a_program_that_encrypts_by_itself_is_partial(play, lines):
    program = BLOCKING.replace('"two"', '"SSH-2.0-x"').replace('"one"', '"SSH-2.0-y"')
    assert program != BLOCKING
    recorded = play.record(program, lines.server.server_address[1])
    assert "partial: SSH to 127.0.0.1" in " ".join(recorded.stderr.split())
    assert play.replay().returncode == 4


class Killer(socketserver.StreamRequestHandler):
    """Kills the client whose process id the request names, and never answers."""

    def handle(self):
        self.server.served.append(1)
        pid = next(line for line in self.rfile if line.lower().startswith(b"x-pid:"))
        os.kill(int(pid.partition(b":")[2]), signal.SIGKILL)


def test_a_run_that_was_killed_while_it_waited_for_an_answer_is_replayed_up_to_there(play):
    server = _Server(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Killer))
    program = (
        "import os, sys, urllib.request\n"
        "print('before', flush=True)\n"
        "to = f'http://127.0.0.1:{sys.argv[1]}/'\n"
        "urllib.request.urlopen(urllib.request.Request(to, headers={'X-Pid': str(os.getpid())}))\n"
    )
    taken = play.record(program, server.server.server_address[1])
    server.stop()
    assert taken.returncode == 137
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout == "before\n"
    assert len(server.served) == 1


def test_a_refused_connection_is_refused_again(play, lines):
    lines.stop()
    program = (
        "import socket, sys\n"
        "try:\n"
        "    socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "except ConnectionRefusedError as error:\n"
        "    print(type(error).__name__, error.errno)\n"
    )
    taken = play.record(program, lines.server.server_address[1])
    assert taken.stdout == "ConnectionRefusedError 111\n"
    again = play.replay()
    assert again.returncode == 0, again.stderr


def test_a_connection_to_a_server_in_the_same_process_stays_inside_the_program(play):
    program = (
        "import socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "def serve():\n"
        "    peer, _ = server.accept()\n"
        "    peer.sendall(peer.recv(10).upper())\n"
        "    peer.close()\n"
        "threading.Thread(target=serve).start()\n"
        "client = socket.create_connection(server.getsockname())\n"
        "client.sendall(b'inside')\n"
        "print(client.recv(10))\n"
    )
    taken = play.record(program)
    assert taken.stdout == "b'INSIDE'\n"
    again = play.replay()
    assert again.returncode == 0, again.stderr


@pytest.fixture
def redis_port(tmp_path):
    pytest.importorskip("redis")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("There is no Redis server here.")
    path = Path("/tmp") / f"playhead-redis-{os.getpid()}.sock"
    started = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(path), "--save", ""],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in started.stdout:
        if "eady to accept" in line:
            break

    class Redis:
        address = str(path)

        def stop(self):
            started.kill()
            started.wait()
            started.stdout.close()

    yield Redis()
    Redis().stop()


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_redis_clients_come_back_byte_for_byte(play, redis_port, kind):
    program = (
        "import sys, uuid, redis\n"
        "client = redis.Redis(unix_socket_path=sys.argv[1])\n"
        "key = str(uuid.uuid4())\n"
        "client.set(key, 'value')\n"
        "print(client.get(key), client.incr('count'))\n"
        "with client.pipeline() as pipe:\n"
        "    print(pipe.lpush('list', 'a', 'b').lrange('list', 0, -1).execute())\n"
    )
    if kind == "asyncio":
        program = (
            "import asyncio, sys, redis.asyncio as redis\n"
            "async def main():\n"
            "    client = redis.Redis(unix_socket_path=sys.argv[1])\n"
            "    print(await asyncio.gather(*[client.incr('count') for _ in range(5)]))\n"
            "    await client.aclose()\n"
            "asyncio.run(main())\n"
        )
    taken = play.record(program, redis_port.address)
    assert taken.returncode == 0, taken.stderr
    redis_port.stop()
    again = play.replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.stdout


def test_a_fork_server_is_part_of_the_program(play):
    program = (
        "import multiprocessing\n"
        "def work(queue, number):\n"
        "    queue.put(number * 2)\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('forkserver')\n"
        "    queue = context.Queue()\n"
        "    for number in range(2):\n"
        "        process = context.Process(target=work, args=(queue, number))\n"
        "        process.start()\n"
        "        print(queue.get())\n"
        "        process.join()\n"
    )
    taken = play.record(program)
    assert taken.stdout == "0\n2\n", taken.stderr
    again = play.replay()
    assert again.returncode == 0, again.stderr
