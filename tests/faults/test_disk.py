"""Whatever happens to the tape, the program's result is the same, one line says so, and what is
missing is counted on the tape and shown.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from playhead.tape.reader import Tape

pytestmark = pytest.mark.faults

PROGRAM = Path(__file__).parent / "programs" / "host.py"
NOBODY = 65534
SENT = 3 * 4 * 300


@contextlib.contextmanager
def small_disk(folder):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def can_mount(folder):
    try:
        with small_disk(folder):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def host(store, fault):
    argv = [sys.executable, str(PROGRAM), str(store), fault]
    env = {**os.environ, "HOME": str(store), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    result, unsaid = done.stdout.splitlines()
    return result, int(unsaid), done.stderr


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    result, unsaid, err = host(tmp_path_factory.mktemp("store"), "none")
    assert (unsaid, err) == (0, "")
    return result


def playhead(store, *words):
    argv = [sys.executable, "-m", "playhead", *words, "--store", str(store)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def assert_told(store, *, lost):
    """The tape is whole but for the gap; `show` and `list` say how much is missing."""
    tape = Tape(store / "runs" / "r")
    events = list(tape.events())
    assert list(tape.damage) == []
    gaps = [event for event in events if event.kind == "gap"]
    assert gaps
    assert sum(event.data["lost"] for event in gaps) == lost
    kept = [event.data for event in events if event.kind == "x"]
    for worker in range(4):
        numbers = [data["i"] for data in kept if data["worker"] == worker]
        # The first and the last third are there, in order.
        assert numbers[:300] == numbers[-300:] == list(range(300))
    assert events[-1].kind == "segment.end"
    shown = json.loads(playhead(store, "show", "r", "--json"))
    assert shown["status"] == "ok"
    assert shown["totals"]["lost"] == lost
    (row,) = json.loads(playhead(store, "list", "--json"))
    assert row["lost"] == lost
    if lost:
        assert str(lost) in playhead(store, "show", "r")
        assert "lost" in playhead(store, "show", "r") or "missing" in playhead(store, "show", "r")
    return len(kept)


def assert_one_line(err, *words):
    assert err.count("\n") == 1, err
    assert err.startswith("playhead: ")
    assert all(word in err for word in words), err


@pytest.fixture
def open_store():
    """A store that nobody can reach: pytest's own folders are their owner's alone, and another session
    that starts meanwhile makes them so again.
    """
    with tempfile.TemporaryDirectory(prefix="playhead-test-") as folder:
        Path(folder).chmod(0o755)
        store = Path(folder) / "store"
        store.mkdir()
        yield store
        store.chmod(0o755)


def test_a_full_disk(tmp_path, expected):
    fault = "full-disk" if can_mount(tmp_path) else "file-limit"
    with small_disk(tmp_path) if fault == "full-disk" else contextlib.nullcontext():
        result, unsaid, err = host(tmp_path, fault)
        assert result == expected
        assert unsaid > 500
        assert_one_line(err, "could not be recorded")
        assert assert_told(tmp_path, lost=unsaid) == SENT - unsaid


def test_a_disk_that_stays_full_to_the_end(tmp_path, expected):
    fault = "full-disk-for-good" if can_mount(tmp_path) else "file-limit-for-good"
    with small_disk(tmp_path) if can_mount(tmp_path) else contextlib.nullcontext():
        result, unsaid, err = host(tmp_path, fault)
        assert result == expected
        assert unsaid > 1_500
        assert_one_line(err, "could not be recorded")
        tape = Tape(tmp_path / "runs" / "r")
        kept = [event for event in tape.events() if event.kind == "x"]
        assert (len(kept), list(tape.damage)) == (SENT - unsaid, [])
        assert json.loads(playhead(tmp_path, "show", "r", "--json"))["status"] == "interrupted"


def test_a_limit_on_the_size_of_files(tmp_path, expected):
    result, unsaid, err = host(tmp_path, "file-limit")
    assert result == expected
    assert unsaid > 500
    assert_one_line(err, "could not be recorded")
    assert assert_told(tmp_path, lost=unsaid) == SENT - unsaid


def test_a_folder_that_becomes_read_only(open_store, expected):
    if os.geteuid() == 0:
        os.chown(open_store, NOBODY, NOBODY)
    result, unsaid, err = host(open_store, "read-only")
    assert result == expected
    assert unsaid == 0
    assert_one_line(err, "could not be recorded", "Permission denied")
    assert assert_told(open_store, lost=3) == SENT


def test_a_folder_that_is_read_only_from_the_start(open_store, expected):
    open_store.chmod(0o555)
    result, unsaid, err = host(open_store, "read-only-from-the-start")
    assert result == expected
    assert unsaid == SENT
    assert_one_line(err, "nothing is recorded", "Permission denied")
    assert list(open_store.iterdir()) == []


def test_a_folder_that_is_deleted(tmp_path, expected):
    result, unsaid, err = host(tmp_path, "deleted")
    assert (result, unsaid) == (expected, 0)
    assert_one_line(err, "deleted or closed")
    assert assert_told(tmp_path, lost=0) == SENT


def test_a_descriptor_that_is_closed(tmp_path, expected):
    result, unsaid, err = host(tmp_path, "closed")
    assert (result, unsaid) == (expected, 0)
    assert_one_line(err, "deleted or closed")
    assert assert_told(tmp_path, lost=0) == SENT


def test_a_descriptor_that_is_closed_and_its_number_taken(tmp_path, expected):
    result, unsaid, err = host(tmp_path, "reused")
    assert (result, unsaid) == (expected, 0)
    assert_one_line(err, "deleted or closed")
    assert assert_told(tmp_path, lost=0) == SENT


def test_an_event_that_there_is_no_stack_left_for(tmp_path, expected):
    result, unsaid, err = host(tmp_path, "stack")
    assert (result, unsaid) == (expected, 0)
    assert_one_line(err, "could not be recorded")
    assert assert_told(tmp_path, lost=1) == SENT
