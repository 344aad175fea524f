"""On a terminal the command has the terminal: its size, its modes, its signals, its job control."""

import fcntl
import os
import select
import shlex
import signal
import struct
import sys
import termios

import pytest


class Terminal:
    """A program as the leader of a session on a terminal of its own, and what it shows there."""

    def __init__(self, argv, env, cwd):
        self.pid, self.fd = os.forkpty()
        if self.pid == 0:
            os.chdir(cwd)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
            os.execvpe(argv[0], argv, env)
        self.shown = ""
        self.seen = 0

    def wait_for(self, text):
        """Until `text` is shown after what was waited for before."""
        while (at := self.shown.find(text, self.seen)) < 0:
            assert self._read(), f"{text!r} is not shown: {self.shown!r}"
        self.seen = at + len(text)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        """Everything shown, and the exit code."""
        while self._read():
            continue
        os.close(self.fd)
        return self.shown, os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self):
        ready, _, _ = select.select([self.fd], [], [], 60)
        assert ready, f"nothing more is shown: {self.shown!r}"
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            return False
        self.shown += piece.decode().replace("\r\n", "\n")
        return bool(piece)


@pytest.fixture
def terminal(record):
    def start(*command, options=(), shell=False):
        argv = command if shell else record.argv(*command, options=options)
        return Terminal(list(argv), {**record.env, "TERM": "dumb"}, record.folder)

    return start


# In small steps: a signal that comes right before a long sleep or read does not end it.
WAIT = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)\n"
LOOK = """
import os, sys
print(*(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)))
print(*os.get_terminal_size())
print(os.tcgetpgrp(0) == os.getpgrp())
print(type(sys.stdout).__name__, type(sys.stdout.buffer).__name__, type(sys.stdout.buffer.raw).__name__)
"""


def test_the_command_sees_the_terminal_itself(record, terminal):
    shown, code = terminal(sys.executable, "-c", LOOK).end()
    assert code == 0
    told = "True True True\n99 33\nTrue\nTextIOWrapper BufferedWriter FileIO\n"
    assert shown.startswith(told)
    assert record.take().printed() == told


def test_the_one_line_at_the_end_comes_after_all_that_the_command_showed(terminal):
    shown, _ = terminal(sys.executable, "-c", "print('last words')").end()
    first, last = shown.splitlines()
    assert first == "last words"
    assert last.startswith("● recorded ")


def test_what_is_typed_reaches_the_command_and_what_it_prints_is_on_the_tape(record, terminal):
    screen = terminal(
        sys.executable,
        "-c",
        "import sys; print('hello', input('name? ')); sys.stderr.write('e\\n')",
    )
    screen.wait_for("name? ")
    screen.type("bob\n")
    screen.end()
    take = record.take()
    assert take.printed() == "hello bob\n"
    assert take.printed("stderr") == "e\n"


@pytest.mark.parametrize("unbuffered", [True, False])
def test_every_way_to_print_is_on_the_tape_once(record, terminal, unbuffered):
    program = """
import sys
print('text', flush=True)
sys.stdout.writelines(['several\\n', 'lines\\n'])
sys.__stdout__.write('the original\\n')
sys.stdout.write('no newline')
"""
    flags = ["-u"] if unbuffered else []
    shown, _ = terminal(sys.executable, *flags, "-c", program).end()
    told = "text\nseveral\nlines\nthe original\nno newline"
    assert shown.startswith(told)
    assert record.take().printed() == told


def test_ctrl_c_reaches_the_command_once_and_the_launcher_lives_on(record, terminal):
    program = """
import os, signal, time
count = 0
def heard(*_):
    global count
    count += 1
    os.write(1, b'heard %d\\n' % count)
signal.signal(signal.SIGINT, heard)
print('ready', flush=True)
while not count: time.sleep(0.05)
print('go on?', flush=True)
input()
print('left with', count)
"""
    screen = terminal(sys.executable, "-c", program)
    screen.wait_for("ready")
    screen.type("\x03")
    screen.wait_for("go on?")
    screen.type("\n")
    shown, code = screen.end()
    assert "left with 1" in shown
    assert "● recorded" in shown
    assert code == 0


def test_ctrl_c_prints_nothing_twice(record, terminal):
    program = """
import time
try:
    print('waiting', flush=True)
    while True: time.sleep(0.05)
except KeyboardInterrupt: print('interrupted')
"""
    screen = terminal(sys.executable, "-c", program)
    screen.wait_for("waiting")
    screen.type("\x03")
    shown, code = screen.end()
    assert code == 0
    assert shown.count("waiting") == shown.count("interrupted") == 1
    assert record.take().printed() == "waiting\ninterrupted\n"
    assert record.take().damages == []


def test_output_is_on_the_tape_once_wherever_its_recording_is_interrupted(record, terminal):
    # Interrupted where Ctrl-C might: when a function begins, and when a function in C has returned.
    program = """
import sys, time
def interrupt_at(moment):
    left = None
    def watch(frame, event, arg):
        nonlocal left
        if event == 'call' and frame.f_code.co_name == 'tell':
            left = moment
        elif left is not None and event in ('call', 'c_return'):
            left -= 1
            if left < 0:
                left = None
                raise KeyboardInterrupt
    return watch
interrupted = 0
for moment in range(120):
    time.sleep(0.006)  # else another thread writes it
    sys.setprofile(interrupt_at(moment))
    try:
        sys.stdout.write(f'{moment} ')
    except KeyboardInterrupt:
        interrupted += 1
    sys.setprofile(None)
print('interrupted', interrupted)
"""
    shown, code = terminal(sys.executable, "-c", program).end()
    assert code == 0
    printed, _, count = shown.partition("●")[0].partition("interrupted")
    assert printed.split() == [str(moment) for moment in range(120)]
    assert int(count) > 20
    assert record.take().printed() == shown.partition("●")[0]
    assert record.take().damages == []


def test_a_command_that_ctrl_c_ends_was_interrupted(record, terminal):
    screen = terminal(sys.executable, "-c", WAIT)
    screen.wait_for("ready")
    screen.type("\x03")
    _, code = screen.end()
    assert code == 130
    assert record.take().manifest.status == "interrupted"
    assert record.take().manifest.error["type"] == "builtins:KeyboardInterrupt"


def test_ctrl_backslash_quits_the_command_alone(record, terminal):
    screen = terminal("sh", "-c", "ulimit -c 0; echo ready; exec sleep 1000")
    screen.wait_for("ready")
    screen.type("\x1c")
    shown, code = screen.end()
    assert code == 128 + signal.SIGQUIT
    assert "● recorded" in shown


def test_ctrl_z_stops_the_job_and_fg_goes_on_with_it(record, terminal):
    program = "print('rea' + 'dy', flush=True); print('got', input())"
    screen = terminal("bash", "--norc", "--noprofile", "-i", shell=True)
    screen.type("PS1='> '; bind 'set enable-bracketed-paste off' 2>/dev/null\n")
    screen.type(shlex.join(record.argv(sys.executable, "-c", program)) + "\n")
    screen.wait_for("ready")
    screen.type("\x1a")
    screen.wait_for("Stopped")
    screen.type("jobs -r; jobs -s\n")
    screen.wait_for("Stopped")
    screen.type("fg\n")
    screen.wait_for("record --")
    screen.type("a line\n")
    screen.wait_for("got a line")
    screen.wait_for("● recorded")
    screen.type("echo left $?\n")
    screen.wait_for("left 0")
    screen.type("exit\n")
    screen.end()
    assert record.take().status == "ok"


def test_a_command_that_is_no_python_has_the_terminal_too(record, terminal):
    shown, code = terminal("sh", "-c", "test -t 1 && test -t 2 && echo yes").end()
    assert code == 0
    assert shown.startswith("yes\n")
    assert record.take().of("run.start")[0].data["output"] == {
        "stdout": "terminal",
        "stderr": "terminal",
    }


def test_a_pipe_beside_the_terminal_is_seen_by_the_attendant(record, terminal):
    line = f"{shlex.join(record.argv('echo', 'through'))} | tr a-z A-Z"
    shown, _ = terminal("sh", "-c", line, shell=True).end()
    assert "THROUGH\n" in shown
    assert record.take().printed() == "through\n"


def test_a_child_on_the_same_terminal_tells_what_it_prints(record, terminal):
    program = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(\"from below\")'])"
    )
    terminal(sys.executable, "-c", program).end()
    assert record.take().printed() == "from below\n"


def test_a_child_whose_output_its_parent_reads_is_not_taken_for_the_terminals(record, terminal):
    program = """
import subprocess, sys
print(subprocess.run([sys.executable, '-c', 'print("quiet")'], capture_output=True).stdout)
"""
    terminal(sys.executable, "-c", program).end()
    assert record.take().printed() == "b'quiet\\n'\n"
