"""Golden tapes: what was written once is read for ever.

The folders in tests/tapes/ are never written again. A new format adds a folder and rows here.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from playhead.errors import TapeTooNew
from playhead.events import KINDS
from playhead.replay.matching.taped import load
from playhead.tape.care.repair import repair
from playhead.tape.care.verify import verify
from playhead.tape.reader import Tape
from playhead.tape.sealed.seal import unseal

ROOT = Path(__file__).parents[3]
TAPES = ROOT / "tests" / "tapes"

# Each golden tape: how many events it yields, and the lines at which its damage lies.
EXPECTED = {
    "v1/whole": (26, []),
    "v1/sealed": (26, []),
    "v1/torn": (16, ["4711:13"]),
    "v1/corrupt": (24, ["4711:6", "4711:9", "4711:13", "4711:14", "4711:15"]),
    "v1/unknown": (4, []),
    "v1/future": TapeTooNew,
    "v2/whole": (9, []),
    "v2/sealed": (9, []),
}

V1_KINDS = {
    *("segment.start", "segment.end", "run.start", "run.end", "call", "chunk", "outcome"),
    *("turn.start", "turn.end", "seam", "retrieval", "snapshot", "output", "ambient", "hook"),
    *("hole", "gap", "divergence"),
}


@pytest.fixture
def golden(request, tmp_path):
    """A copy: the original is not touched even by a bug."""
    return Path(shutil.copytree(TAPES / request.param, tmp_path / "run"))


def test_no_kind_of_format_1_was_taken_back():
    assert KINDS.keys() >= V1_KINDS


def test_every_golden_tape_is_expected_here():
    found = {f"{path.parent.name}/{path.name}" for path in TAPES.glob("v*/*")}
    assert found == EXPECTED.keys()


@pytest.mark.parametrize(("golden", "expected"), EXPECTED.items(), indirect=["golden"])
def test_a_golden_tape_opens(golden, expected):
    tape = Tape(golden)
    if expected is TapeTooNew:
        for ask in (tape.events, lambda: tape.manifest, lambda: verify(golden)):
            with pytest.raises(TapeTooNew, match="format 99"):
                ask()
        return
    count, damaged = expected
    events = list(tape.events())
    assert len(events) == count
    assert [f"{one.segment}:{one.line}" for one in tape.damage] == damaged
    assert [tape.event(event.ref).ref for event in events] == [event.ref for event in events]
    assert tape.manifest.run in ("20261115-071105-k3f9", "20261115-231105-k3f9")
    assert [event.mono for event in events] == sorted(event.mono for event in events) or damaged


@pytest.mark.parametrize("golden", ["v1/whole", "v1/sealed"], indirect=True)
def test_the_golden_run_has_every_kind_and_is_whole(golden):
    tape = Tape(golden)
    events = list(tape.events())
    assert {event.kind for event in events} == V1_KINDS | {"note"}
    note = next(event for event in events if event.kind == "note")
    assert tape.whole(note).data["text"].startswith("All work and no play")
    user = [event for event in events if event.user]
    assert [(event.kind, event.ours) for event in user] == [("seam", False)]
    assert events[0].absolute(0) == "4711:0"
    found = verify(golden)
    assert (found.ok, found.blobs) == (True, 1)


def test_the_sealed_golden_tape_holds_the_lines_of_the_whole_one(tmp_path):
    copy = Path(shutil.copytree(TAPES / "v1/sealed", tmp_path / "run"))
    unseal(copy)
    for path in (TAPES / "v1/whole").glob("tape-*.jsonl"):
        assert (copy / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("golden", ["v1/unknown"], indirect=True)
def test_unknown_kinds_and_members_are_passed_on(golden):
    raw = [line.raw for line in Tape(golden).lines()]
    assert b"".join(line + b"\n" for line in raw) == (golden / "tape-4711.jsonl").read_bytes()
    assert b'"strength":0.5,"tags":{"a":[1]}' in raw[1]


@pytest.mark.parametrize("golden", ["v1/torn", "v1/corrupt"], indirect=True)
def test_damaged_golden_tapes_are_named_and_repaired(golden):
    assert not verify(golden).ok
    done = repair(golden)
    assert done.changed
    assert verify(golden).ok


GUEST = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from playhead.errors import TapeError
from playhead.tape.reader import Tape
from playhead.tape.care.verify import verify
for name in sys.argv[3:]:
    tape = Tape(Path(sys.argv[2], name))
    try:
        print(name, sum(1 for _ in tape.events()), len(tape.damage), verify(tape.run).ok)
    except TapeError as error:
        print(name, error)
"""


def test_every_python_that_an_agent_may_run_under_reads_them(guest_python):
    # -I and -S: no msgspec and no zstandard, as in an agent that has neither.
    names = ["whole", "torn", "corrupt", "unknown", "future", "sealed"]
    argv = [
        guest_python,
        "-I",
        "-S",
        "-W",
        "error",
        "-c",
        GUEST,
        str(ROOT / "src"),
        str(TAPES / "v1"),
    ]
    ended = subprocess.run([*argv, *names], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    *counts, future, sealed = ended.stdout.splitlines()
    assert counts == [
        "whole 26 0 True",
        "torn 16 1 False",
        "corrupt 24 5 False",
        "unknown 4 0 True",
    ]
    assert "format 99" in future
    assert "playhead unseal RUN" in sealed


@pytest.mark.parametrize("golden", ["v2/whole", "v2/sealed"], indirect=True)
def test_the_golden_tape_of_format_2_has_an_order(golden):
    table = load(Tape(golden)).table
    second, first = table.call("4711", 3, 2_000), table.call("4711", 2, 5_000)
    timer = table.lane("main/3", "timer:wake", 1)
    assert second.rank < timer.rank < first.rank
    assert (second.ns, timer.turn, first.loop) == (1_004_000, 6, 1)
    assert table.cancelled("main/3", "timer:Timeout._on_timeout", 1) == 5.0


@pytest.mark.parametrize("golden", ["v1/whole", "v1/sealed"], indirect=True)
def test_a_tape_of_format_1_has_no_order(golden):
    assert load(Tape(golden)).table is None
