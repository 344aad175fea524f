"""What reaches for the world past every hook is stopped, and said with the place and the way out."""

import asyncio
import contextlib
import contextvars
import multiprocessing
import os
import socket
import subprocess
import threading

import pytest

from playhead.errors import Divergence
from playhead.recording import deck
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call, Deck, Taped
from playhead.recording.recorder import Recorder
from playhead.replay.fence import leaks
from playhead.replay.matching.taped import TapedRun
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.tape.reader import Tape

hooked = contextvars.ContextVar("hooked", default=False)


class Lets(ReplayMode):
    """Lets some boundaries be real."""

    live: tuple[str, ...] = ()

    def answer(self, call: Call, lane: str) -> Taped | None:
        return None if call.boundary in self.live else Taped(how="returned")


@pytest.fixture
def recorder(tmp_path):
    made = Recorder(run=tmp_path, run_id="now", who="test")
    yield made
    made.close()


@pytest.fixture
def guarded(recorder, tmp_path):
    nothing = TapedRun(tape=Tape(tmp_path), calls=[], below={}, segments={}, ambient=[], outputs=[])
    mode = Lets(nothing, recorder)
    made = Deck(recorder, mode)
    deck.activate(made)
    leaks.begin(mode, hooked.get)
    yield made
    leaks.end()
    deck.deactivate(made)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


def connect(address, family=socket.AF_INET):
    with socket.socket(family) as client:
        client.connect(address)


def send(address):
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.sendto(b"x", address)


LEAKS = {
    "connect": (lambda: connect(("203.0.113.7", 443)), "connect to 203.0.113.7:443"),
    "loopback": (lambda: connect(("127.0.0.1", 9)), "connect to 127.0.0.1:9"),
    "name": (lambda: socket.getaddrinfo("api.example.com", 443), "look up api.example.com"),
    "old name": (lambda: socket.gethostbyname("api.example.com"), "look up api.example.com"),
    "datagram": (lambda: send(("203.0.113.7", 53)), "send to 203.0.113.7:53"),
    "unix": (
        lambda: connect("/run/docker.sock", socket.AF_UNIX),
        "connect to /run/docker.sock",
    ),
    "run": (lambda: subprocess.run(["curl", "-s", "x"], check=False), "run `curl -s x`"),
    "system": (lambda: os.system("curl x"), "run `curl x`"),
    "spawn": (lambda: os.posix_spawn("/bin/true", ["true", "it"], {}), "run `true it`"),
}


@pytest.mark.parametrize(("leak", "said"), LEAKS.values(), ids=LEAKS)
def test_a_leak_is_stopped_and_named(guarded, leak, said):
    with pytest.raises(Divergence) as raised:
        leak()
    message = str(raised.value)
    assert said in message
    assert "test_leaks.py" in message
    assert "lane main" in message
    assert "--live" in message
    assert raised.value.entry.kind == "leak"


def test_a_leak_is_on_the_tape_even_if_the_program_catches_it(guarded, tmp_path):
    with contextlib.suppress(Exception):
        connect(("203.0.113.7", 443))
    (event,) = [one for one in Tape(tmp_path).events() if one.kind == "divergence"]
    assert event.data["kind"] == "leak"
    assert event.data["boundary"] == "http"
    assert event.data["name"] == "connect to 203.0.113.7:443"
    assert guarded.mode.partings[0].at.startswith("tests/unit/replay/fence/test_leaks.py:")


def test_an_exec_is_stopped_in_a_forked_child(guarded):
    child = os.fork()
    if not child:
        try:
            os.execv("/bin/true", ["true"])
        except Divergence:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_an_event_loop_has_its_own_pipes(guarded):
    async def main():
        return await asyncio.to_thread(threading.get_ident)

    assert asyncio.run(main())


def test_socket_pairs_and_servers_of_the_program_are_its_own_business(guarded, tmp_path):
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    socket.getaddrinfo("127.0.0.1", 80)
    socket.getaddrinfo(None, 80)
    with socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX) as server:
        path = str(tmp_path / "own.sock")
        server.bind(path)
        server.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)


def test_processes_of_the_program_itself_talk_to_each_other(guarded):
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        assert manager.list([1, 2])[1] == 2


def test_what_a_hook_starts_passes(guarded):
    token = hooked.set(True)
    try:
        assert subprocess.run(["true"], check=False).returncode == 0
    finally:
        hooked.reset(token)


def test_what_the_replay_itself_does_passes(guarded):
    with leaks.allowed():
        assert subprocess.run(["true"], check=False).returncode == 0
    with pytest.raises(Divergence):
        subprocess.run(["true"], check=False)


def test_a_live_call_reaches_the_world_and_only_while_it_lasts(guarded, listener):
    guarded.mode.live = ("http",)
    guarded.perform(Call(boundary="http", name="GET"), FunctionAdapter(lambda: connect(listener)))
    with pytest.raises(Divergence):
        connect(listener)


def test_what_a_live_tool_does_inside_is_live(guarded, listener):
    guarded.mode.live = ("tool",)

    def tool():
        connect(listener)
        return subprocess.run(["true"], check=False).returncode

    assert guarded.perform(Call(boundary="tool", name="look"), FunctionAdapter(tool)) == 0


def test_a_live_call_does_not_open_the_door_for_another_kind(guarded):
    guarded.mode.live = ("http",)

    def fetch():
        with pytest.raises(Divergence):
            thread_failed(lambda: subprocess.run(["true"], check=False))

    guarded.perform(Call(boundary="http", name="GET"), FunctionAdapter(fetch))


def thread_failed(function):
    """Run in a thread that nobody can tell where it belongs; raise what it raised."""
    caught = []

    def run():
        try:
            contextvars.Context().run(function)
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if caught:
        raise caught[0]


def test_after_the_replay_the_guard_is_gone(guarded, listener):
    leaks.end()
    connect(listener)
    assert subprocess.run(["true"], check=False).returncode == 0
