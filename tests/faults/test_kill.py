"""kill -9 at two hundred random moments: every event acknowledged before it is on the tape."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.story import Prices, tell
from playhead.tape.reader import Tape

pytestmark = [pytest.mark.faults, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "programs" / "killed.py"
ACK = struct.Struct("<IIII")
KILLS, SIDE_BY_SIDE = 200, 2


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Two hundred runs that were killed: their folders, and what they had acknowledged."""
    store = tmp_path_factory.mktemp("store")
    each = KILLS // SIDE_BY_SIDE
    programs = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(store), str(each), str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(SIDE_BY_SIDE)
    ]
    found = []
    for program in programs:
        out, err = program.communicate(timeout=100)
        assert (program.returncode, err) == (0, ""), err
        for line in out.splitlines():
            run_id, acks = line.split(" ", 1)
            found.append((store / "runs" / run_id, list(ACK.iter_unpack(Path(acks).read_bytes()))))
    assert len(found) == KILLS
    return found


def has_tape(path):
    """A run that was killed on its way up may not have begun to write."""
    return path.exists() and any(path.glob("tape-*"))


def test_the_kills_came_at_all_sorts_of_moments(killed):
    counts = sorted(len(acks) for _, acks in killed)
    assert counts[len(counts) // 2] > 50
    assert len({acks[-1][3] for _, acks in killed if acks}) > 50
    assert max(len({pid for pid, *_ in acks}) for _, acks in killed) == 3


def test_every_acknowledged_event_is_on_the_tape(killed):
    for path, acks in killed:
        events = {}
        if has_tape(path):
            events = {(e.pid, e.seq): e.data for e in Tape(path).events() if e.kind == "x"}
        for pid, seq, worker, n in acks:
            data = events.get((pid, seq))
            assert data is not None, (path.name, pid, seq)
            assert (data["worker"], data["n"]) == (worker, n)


def test_nothing_but_a_torn_last_line_is_wrong_with_the_tape(killed):
    for path, _ in killed:
        if has_tape(path):
            tape = Tape(path)
            list(tape.events())
            torn = [str(one) for one in tape.damage]
            # The kernel may stop between two pages, so any number of bytes may be missing, also the last one alone.
            signs = ("torn", "cut off", "newline at its end is missing")
            assert all(any(sign in one for sign in signs) for one in torn), torn
            assert len(torn) <= 3


def test_each_worker_is_there_in_order_without_a_hole(killed):
    for path, acks in killed:
        if not acks:
            continue
        seen = {}
        for event in Tape(path).events():
            if event.kind == "x":
                seen.setdefault((event.pid, event.data["worker"]), []).append(event.data["n"])
        assert all(numbers == list(range(len(numbers))) for numbers in seen.values())


def test_the_story_says_interrupted_and_names_what_was_in_flight(killed):
    told = 0
    for path, acks in killed:
        if not acks:
            continue
        story = tell(Tape(path), prices=Prices())
        assert story.status == "interrupted"
        assert [story.items[ref].name for ref in story.in_flight] == ["search the world"]
        assert story.last_seam == "ready"
        told += 1
    assert told > KILLS // 2


def test_show_names_what_was_in_flight(killed):
    path = max(killed, key=lambda one: len(one[1]))[0]
    argv = [sys.executable, "-m", "playhead", "show", path.name, "--store", str(path.parents[1])]
    shown = subprocess.run(
        [*argv, "--limit", "40"], capture_output=True, text=True, check=True
    ).stdout
    assert "interrupted" in shown
    assert "search the world" in shown
    assert "ready" in shown
