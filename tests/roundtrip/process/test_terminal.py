"""A replay does not depend on the terminal and the redirections of its caller."""

import os
import pty
import subprocess
import sys
import termios

import pytest

PLAYHEAD = [sys.executable, "-m", "playhead"]
PROGRAM = """
import os, subprocess, sys
print("first", flush=True)
subprocess.run("echo hi; echo oops >&2", shell=True)
os.system("echo system")
print("last", file=sys.stderr)
"""


@pytest.fixture
def recorded(tmp_path):
    """Recorded with stdout and stderr apart, off a terminal."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    asked = [*PLAYHEAD, "record", "--store", tmp_path / "store", "--", sys.executable, "program.py"]
    subprocess.run(asked, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=True)
    return folder, [*PLAYHEAD, "replay", "--store", str(tmp_path / "store"), "last"]


def read_all(fd):
    pieces = []
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            return b"".join(pieces)  # the end of a terminal
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def test_a_replay_on_a_terminal_is_identical_and_leaves_the_terminal_as_it_was(recorded):
    folder, asked = recorded
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    replay = subprocess.Popen(
        asked, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    kept = os.dup(theirs)
    os.close(theirs)
    replay.wait()
    assert termios.tcgetattr(kept) == before
    os.close(kept)
    shown = read_all(ours)
    assert replay.returncode == 0, shown.decode()
    assert b"identical" in shown
    assert b"hi" in shown


@pytest.mark.parametrize("redirection", ["2>&1", "2>&1 | tee copy", "| cat", ">/dev/null"])
def test_a_replay_is_identical_whatever_its_output_is_redirected_to(recorded, redirection):
    folder, asked = recorded
    report = folder.parent / "report.json"
    words = " ".join([*asked, "--report", str(report)])
    subprocess.run(
        f"{words} {redirection}", shell=True, cwd=folder, capture_output=True, check=False
    )
    assert '"identical"' in report.read_text()


TALKATIVE = """
import os, sys
for number in range(4000):
    print("\\x1b[1m" if sys.stdout.isatty() else "", "line", number, "x" * 40)
print(os.get_terminal_size(1), sys.stderr.isatty())
"""


def test_a_recording_on_a_terminal_replays_into_a_file_with_all_of_its_output(tmp_path):
    folder, store = tmp_path / "workspace", tmp_path / "store"
    folder.mkdir()
    (folder / "program.py").write_text(TALKATIVE)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (33, 99))
    asked = [*PLAYHEAD, "record", "--store", store, "--", sys.executable, "program.py"]
    recording = subprocess.Popen(
        asked, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown = read_all(ours).decode()
    assert recording.wait() == 0
    with (tmp_path / "out.txt").open("w") as file:
        replay = subprocess.run(
            [*PLAYHEAD, "replay", "--store", store, "last"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert replay.returncode == 0, replay.stderr
    printed = (tmp_path / "out.txt").read_text().splitlines()
    assert len(printed) == 4001
    assert printed[-1] == "os.terminal_size(columns=99, lines=33) True"
    assert printed == shown.splitlines()[:4001]
