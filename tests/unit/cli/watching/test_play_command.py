"""`playhead play` into a pipe, and on a real terminal with real keys."""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from fcntl import ioctl

import pytest

from playhead.testing import Reply


@pytest.fixture
def tape(forge):
    tape = forge()
    tape.llm("hello", Reply(text="one two three"), took=1.0)
    tape.tool("pay", {}, took=1.0, error=ValueError("no"))
    for number in range(600):
        tape.tool(f"tool{number}", {}, took=1.0)
    tape.end()
    return tape


def test_into_a_pipe_it_does_not_wait(tape, store, playhead):
    lines = playhead("play", "last", "--store", store).out.splitlines()
    assert lines[2] == "           › one two three"
    assert lines[4] == "00:01.0  #2 tool pay()"
    assert lines[5] == "00:02.0  ✗ #2 ValueError: no  1.0 s"
    assert len(lines) == 606


def test_places_and_filters_choose_what_is_played(tape, store, playhead):
    out = playhead("play", "last", "--from", "2", "--to", "3", "--store", store).out
    assert [line[:11] for line in out.splitlines()] == ["00:01.0  #2", "00:02.0  ✗ ", "00:02.0  #3"]
    out = playhead("play", "last", "--boundary", "llm", "--store", store).out
    assert "tool" not in out
    assert playhead("play", "last", "--kind", "nothing*", "--store", store).out == ""


@pytest.mark.parametrize(
    "asked",
    [
        ["--from", "soon"],
        ["--from", "99h"],
        ["--from", "2s", "--to", "1s"],
        ["--to", "99999"],
        ["--speed", "0"],
        ["--max-wait", "x"],
    ],
)
def test_what_cannot_be_played_is_a_usage_error(tape, store, playhead, asked):
    ended = playhead("play", "last", *asked, "--store", store)
    assert ended.code == 2
    assert "Traceback" not in ended.err


class Tty:
    """`playhead` on a terminal of 80 by 24."""

    def __init__(self, *words: str) -> None:
        self.fd, follower = pty.openpty()
        ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.modes = termios.tcgetattr(follower)
        self.follower = follower
        environ = {**os.environ, "TERM": "xterm-256color"}
        environ.pop("NO_COLOR", None)
        argv = [sys.executable, "-m", "playhead", *words]
        self.running = subprocess.Popen(
            argv,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=environ,
            start_new_session=True,
        )
        self.shown = ""

    def press(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def until(self, pattern: str) -> str:
        """Everything since the last time, as soon as it holds the pattern."""
        while not (hit := re.search(pattern, self.shown, re.DOTALL)):
            ready, _, _ = select.select([self.fd], [], [], 30)
            assert ready, f"waited for {pattern!r}, saw {self.shown[-2000:]!r}"
            self.shown += os.read(self.fd, 65536).decode("utf-8", "replace")
        seen, self.shown = self.shown[: hit.end()], self.shown[hit.end() :]
        return seen

    def close(self) -> int:
        code = self.running.wait(30)
        os.close(self.follower)
        os.close(self.fd)
        return code


def test_keys_pause_step_seek_and_quit_and_the_terminal_is_as_before(tape, store):
    tty = Tty("play", "last", "--speed", "0.125", "--store", str(store))
    tty.until(r"▶ 00:00\.\d")
    tty.press(b" ")
    tty.until("‖ 00:00")
    tty.press(b".")
    tty.until("› ")
    tty.press(b"f")
    tty.until("ValueError: no")
    tty.until(r"‖ 00:02\.0")
    tty.press(b"\x1b[C")
    tty.until(r"‖ 00:07\.0")
    tty.press(b"\x1b[D")
    tty.until(r"‖ 00:02\.0")
    tty.press(b"+")
    tty.until(r"  0\.25×")
    tty.press(b"?")
    tty.until("one step back")
    tty.press(b"x")
    tty.until("ValueError: no")
    tty.press(b"q")
    tty.until(r"\x1b\[r.*\x1b\[\?25h")
    assert tty.running.wait(30) == 0
    assert termios.tcgetattr(tty.follower) == tty.modes
    tty.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130)])
def test_an_interrupt_puts_the_terminal_back(tape, store, number, code):
    tty = Tty("play", "last", "--store", str(store))
    tty.until(r"▶ 00:00\.\d")
    tty.running.send_signal(number)
    tty.until(r"\x1b\[r.*\x1b\[\?25h")
    assert tty.close() == code


def test_at_the_end_it_leaves_by_itself(forge, store):
    tape = forge()
    tape.tool("lookup", {}, took=0.2)
    tape.end()
    tty = Tty("play", "last", "--store", str(store))
    tty.until("lookup")
    tty.until(r"\x1b\[r.*\x1b\[\?25h")
    assert tty.close() == 0
