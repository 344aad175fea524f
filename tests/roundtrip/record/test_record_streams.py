"""Stdin, stdout and stderr are the command's own; what goes through them is on the tape."""

import os
import random
import re
import shlex
import string
import subprocess
import sys
import threading

import pytest

ECHO = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)\n"


def test_stdin_reaches_the_command_line_by_line(record):
    running = record.start(sys.executable, "-c", ECHO, stdin=subprocess.PIPE, text=True)
    with running:
        for word in ("one", "two"):
            running.stdin.write(f"{word}\n")
            running.stdin.flush()
            assert running.stdout.readline() == f"{word.upper()}\n"
        running.stdin.close()
        assert running.wait() == 0
    assert record.take().printed() == "ONE\nTWO\n"


def test_every_byte_arrives_and_is_on_the_tape(record):
    program = "import os, sys\nsys.stdout.buffer.write(bytes(range(256)) * 8192)\n"
    take = record(sys.executable, "-c", program, text=False)
    assert take.ended.stdout == bytes(range(256)) * 8192
    assert sum(one.data["bytes"] for one in take.of("output")) == 256 * 8192


def test_what_is_written_right_before_the_end_is_not_lost(record):
    program = "import os\nos.write(1, b'x' * 60000)\nos.write(2, b'the end')\nos._exit(7)\n"
    take = record(sys.executable, "-c", program)
    assert take.ended.returncode == 7
    assert take.ended.stdout == take.printed() == "x" * 60000
    assert take.printed("stderr") == "the end"


def test_characters_that_a_read_cuts_in_two_are_whole_on_the_tape(record):
    text = "x" + "äöü€😀" * 40000
    program = "import sys\nsys.stdout.buffer.write(('x' + 'äöü€😀' * 40000).encode())\n"
    take = record(sys.executable, "-c", program)
    assert take.ended.stdout == text
    assert all("text" in one.data for one in take.of("output"))
    assert take.printed() == text


@pytest.mark.parametrize("shape", ["file", "append", "pipe"])
def test_stdout_and_stderr_in_one_place_keep_their_order(record, shape):
    program = "import os\nfor n in range(200): os.write(1 + n % 2, b'%d\\n' % n)\n"
    target = record.folder / "both.txt"
    if shape == "pipe":
        take = record(sys.executable, "-c", program, capture_output=False, stderr=-2, stdout=-1)
        told = take.ended.stdout
    else:
        target.write_text("before\n" if shape == "append" else "")
        with target.open("a" if shape == "append" else "w") as file:
            record(
                *(sys.executable, "-c", program),
                capture_output=False,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        told = target.read_text()
    numbers = [line for line in told.splitlines() if line.isdigit()]
    assert numbers == [str(number) for number in range(200)]
    assert told.startswith("before\n0\n" if shape == "append" else "0\n")


def test_a_reader_that_leaves_ends_the_command_as_it_would_without_us(record):
    line = shlex.join(record.argv("yes"))
    ended = record.bare("bash", "-c", f"{line} | head -n 1; echo ${{PIPESTATUS[0]}}")
    assert ended.stdout == "y\n141\n"
    assert record.take().manifest.exit_code == -13


def test_a_slow_reader_slows_the_command_and_loses_nothing(record):
    program = "import sys\nfor n in range(60000): print(n)\nsys.stderr.write('written')\n"
    running = record.start(sys.executable, "-c", program, stderr=subprocess.PIPE, text=True)
    with running:
        first = running.stdout.readline()
        rest = running.stdout.read()
        assert running.wait() == 0
    assert (first + rest).splitlines() == [str(number) for number in range(60000)]


def test_one_stream_that_nobody_reads_does_not_hold_up_the_other(record):
    program = "import os\nos.write(2, b'e' * 1000)\nos.write(1, b'o' * 70000)\nos.write(2, b'!')\n"
    running = record.start(sys.executable, "-c", program, stderr=subprocess.PIPE)
    with running:
        # 70,000 bytes fill the pipe that nobody reads yet, and ours in front of it takes the rest.
        assert len(os.read(running.stderr.fileno(), 1000)) == 1000
        assert os.read(running.stderr.fileno(), 1) == b"!"
        assert len(running.stdout.read()) == 70000


def test_a_child_left_behind_keeps_its_stdout_and_the_run_ends_without_it(record):
    read, write = os.pipe()
    script = "(read line; echo late $line) & echo early"
    running = record.start("bash", "-c", f"({script}) <&{read}", pass_fds=[read], text=True)
    with running:
        assert running.stdout.readline() == "early\n"
        assert running.wait() == 0
        assert record.take().manifest.status == "ok"
        os.write(write, b"child\n")
        assert running.stdout.read() == "late child\n"
    os.close(read)
    os.close(write)
    assert record.take().printed() == "early\n"


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_stream_that_was_closed_stays_closed(record, closed):
    program = f"""
import os
import random
import re
try: os.fstat({closed}); told = 'open'
except OSError: told = 'closed'
os.write({2 if closed == 1 else 1}, told.encode())
"""
    line = shlex.join(record.argv(sys.executable, "-c", program))
    ended = record.bare("bash", "-c", f"{line} {closed}{'<' if closed == 0 else '>'}&-")
    assert (ended.stderr if closed == 1 else ended.stdout).startswith("closed")


def test_other_descriptors_are_inherited(record):
    read, write = os.pipe()
    running = record.start("bash", "-c", f"echo through >&{write}", pass_fds=[write])
    with running:
        os.close(write)
        assert running.wait() == 0
    assert os.read(read, 100) == b"through\n"
    assert os.read(read, 100) == b""
    os.close(read)


def test_output_arrives_while_the_command_still_runs(record):
    running = record.start("sh", "-c", "echo first; read line; echo second", stdin=-1, text=True)
    with running:
        assert running.stdout.readline() == "first\n"
        running.stdin.write("go\n")
        running.stdin.flush()
        assert running.stdout.readline() == "second\n"


def test_two_streams_flow_at_once(record):
    program = "import os\nfor _ in range(300): os.write(1, b'o' * 4000); os.write(2, b'e' * 4000)\n"
    running = record.start(sys.executable, "-c", program, stderr=subprocess.PIPE)
    sizes = {}
    with running:
        readers = [
            threading.Thread(target=lambda n=n, s=s: sizes.update({n: len(s.read())}))
            for n, s in (("out", running.stdout), ("err", running.stderr))
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert sizes["out"] == 1_200_000
    assert sizes["err"] >= 1_200_000


def test_a_secret_that_is_written_in_two_parts_is_redacted(record):
    key = "ghp_" + "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=36))
    program = (
        "import os, sys, time\n"
        f"first, second = {key[:20]!r}, {key[20:]!r}\n"
        "for fd in (1, 2):\n"
        "    os.write(fd, b'key: ' + first.encode())\n"
        # Longer than pieces wait for each other.
        "    time.sleep(0.05)\n"
        "    os.write(fd, second.encode() + b' end\\n')\n"
    )
    take = record(sys.executable, "-c", program)
    assert take.ended.stdout == f"key: {key} end\n"
    assert take.ended.stderr.startswith(f"key: {key} end\n")
    for stream in ("stdout", "stderr"):
        assert re.fullmatch(r"key: ghp_redacted0github0\w+ end\n", take.printed(stream))
    assert sum(one.data["bytes"] for one in take.of("output")) == 2 * len(f"key: {key} end\n")


def test_megabytes_of_output_pass_whole(record):
    program = (
        "for n in range(100_000): print('the quick brown fox jumps over the lazy dog', n)\n"
        "import sys\nsys.stdout.flush()\nsys.stdout.buffer.write(bytes(range(256)) * 8192)\n"
    )
    take = record(sys.executable, "-c", program, text=False)
    lines = b"".join(
        b"the quick brown fox jumps over the lazy dog %d\n" % n for n in range(100_000)
    )
    assert take.ended.stdout == lines + bytes(range(256)) * 8192
    assert sum(one.data["bytes"] for one in take.of("output")) == len(take.ended.stdout)
