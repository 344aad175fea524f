"""Signals and exit codes: the command gets what is meant for it, once, and its end is ours."""

import os
import signal
import subprocess
import sys

import pytest

COUNTS = """
import os, signal, sys, time
heard = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, frame: heard.append(signal.Signals(number).name))
print('ready', flush=True)
shown = []
while shown[-1:] != ['SIGUSR2']:
    while len(shown) < len(heard):
        shown.append(heard[len(shown)])
        print(shown[-1], flush=True)
    time.sleep(0.02)
"""


@pytest.fixture
def counting(record):
    """A command that counts its signals, in a process group of its own."""
    running = record.start(
        sys.executable, "-c", COUNTS, text=True, start_new_session=True, stderr=subprocess.DEVNULL
    )
    with running:
        assert running.stdout.readline() == "ready\n"
        yield running


@pytest.mark.parametrize("code", [0, 1, 3, 42, 255])
def test_the_exit_code_is_the_commands(record, code):
    take = record("sh", "-c", f"exit {code}")
    assert take.ended.returncode == code
    assert take.manifest.exit_code == code
    assert take.status == ("failed" if code else "ok")
    assert take.of("run.end")[0].data["exit_code"] == code


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("SIGTERM", "interrupted"),
        ("SIGINT", "interrupted"),
        ("SIGHUP", "interrupted"),
        ("SIGKILL", "interrupted"),
        ("SIGABRT", "failed"),
        ("SIGSEGV", "failed"),
        ("SIGPIPE", "failed"),
    ],
)
def test_a_death_by_signal_is_told_as_a_shell_tells_it(record, name, status):
    take = record("sh", "-c", f"ulimit -c 0; kill -s {name[3:]} $$")
    number = signal.Signals[name]
    assert take.ended.returncode == 128 + number
    assert take.manifest.exit_code == -number
    assert take.manifest.status == status
    assert take.damages == []


def test_kill_9_of_the_command_leaves_a_tape_that_says_what_was_in_flight(record):
    program = "import os, subprocess\nsubprocess.run(['true'])\nos.kill(os.getpid(), 9)\n"
    take = record(sys.executable, "-c", program)
    assert take.ended.returncode == 137
    assert take.manifest.status == "interrupted"
    assert len(take.calls()) == 1
    assert len(take.of("segment.end")) == 1
    assert take.damages == []


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1"])
def test_a_signal_to_the_launcher_alone_is_passed_on_once(record, counting, name):
    counting.send_signal(signal.Signals[name])
    # One after the other: of two signals that wait, the system delivers the one with the lower number first.
    assert counting.stdout.readline().strip() == name
    counting.send_signal(signal.SIGUSR2)
    assert counting.stdout.read().split() == ["SIGUSR2"]
    assert counting.wait() == 0


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1"])
def test_a_signal_to_the_whole_group_reaches_the_command_once(record, counting, name):
    os.killpg(counting.pid, signal.Signals[name])
    assert counting.stdout.readline().strip() == name
    os.killpg(counting.pid, signal.SIGUSR2)
    assert counting.stdout.read().split() == ["SIGUSR2"]
    assert counting.wait() == 0
    assert record.take().status == "ok"


def test_kill_9_of_the_launcher_leaves_the_command_unharmed(record):
    program = """
import subprocess, sys
print('ready', flush=True)
for line in sys.stdin:
    subprocess.run(['true'])
    print('still here', line, end='', flush=True)
print('done')
"""
    running = record.start(sys.executable, "-c", program, stdin=subprocess.PIPE, text=True)
    with running:
        assert running.stdout.readline() == "ready\n"
        running.kill()
        assert running.wait() == -signal.SIGKILL
        for word in ("one", "two"):
            running.stdin.write(f"{word}\n")
            running.stdin.flush()
            assert running.stdout.readline() == f"still here {word}\n"
        running.stdin.close()
        assert running.stdout.read() == "done\n"
    take = record.take()
    assert take.status == "interrupted"
    assert len(take.calls()) == 2
    assert take.printed() == "ready\nstill here one\nstill here two\ndone\n"
    assert take.damages == []


def test_the_command_is_in_the_process_group_that_it_would_be_in(record):
    take = record(
        sys.executable, "-c", "import os; print(os.getpgrp(), os.getsid(0))", process_group=0
    )
    group, session = take.ended.stdout.split()
    assert int(group) == take.manifest.pid
    assert int(session) == os.getsid(0)


@pytest.mark.parametrize("before", ["", "trap '' HUP USR1; "])
def test_what_is_ignored_stays_ignored_and_nothing_else_is(record, before):
    look = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    shell = ["sh", "-c", f'{before}exec "$@"', "sh"]
    assert masks(record.bare(*shell, *record.argv(*look))) == masks(record.bare(*shell, *look))


def masks(ended):
    """Blocked and ignored, without the two signals that the C library keeps for itself."""
    blocked, ignored = (int(line.split()[1], 16) for line in ended.stdout.splitlines())
    return blocked, ignored & ~(0b11 << 31)


def test_an_exception_that_ends_the_program_is_the_runs_error(record):
    take = record(sys.executable, "-c", "def inner(): raise ValueError('boom')\ninner()\n")
    assert take.ended.returncode == 1
    assert "ValueError: boom" in take.ended.stderr
    error = take.of("run.end")[0].data["error"]
    assert error["$exception"] == "builtins:ValueError"
    assert error["traceback"][-1].endswith(":1 inner")
    assert take.manifest.error == {"type": "builtins:ValueError", "message": "boom"}


def test_an_exit_on_purpose_is_no_error(record):
    take = record(sys.executable, "-c", "import sys; sys.exit(3)")
    assert take.ended.returncode == 3
    assert take.manifest.error is None
    assert take.manifest.status == "failed"


def test_a_command_that_stops_itself_stops_the_launcher_until_it_goes_on(record):
    running = record.start("sh", "-c", "echo $$; kill -STOP $$; echo on", text=True)
    with running:
        pid = int(running.stdout.readline())
        _, status = os.waitpid(running.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert os.WSTOPSIG(status) == signal.SIGSTOP
        os.kill(running.pid, signal.SIGCONT)
        assert running.stdout.readline() == "on\n"
        assert running.wait() == 0
    assert pid != running.pid
