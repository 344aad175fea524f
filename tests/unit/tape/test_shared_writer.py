"""Lines written by hand are lines of a tape: one chain, whoever writes them, whatever was torn off."""

import os
import subprocess
import sys

import pytest

from playhead.errors import TapeDamaged
from playhead.recording.encoder import DatedEvent, OpenSegment, append
from playhead.tape.care.verify import verify
from playhead.tape.manifest import Manifest, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.shared_writer import SharedSegmentWriter

FIRST = {"format": 1, "run": "r", "generation": 0, "level": "full", "pid": 1}

WRITES = """
import sys
from pathlib import Path
from playhead.recording.encoder import DatedEvent, OpenSegment, append
from playhead.tape.shared_writer import SharedSegmentWriter
run = Path(sys.argv[1])
segment = OpenSegment(run, who="w")
segment.write_to(SharedSegmentWriter(run, "1"))
for number in range(50):
    append(segment, DatedEvent("x", {"from": sys.argv[2], "n": number}))
"""


def shared(run):
    run.mkdir()
    write_manifest(run, Manifest(run="r", status="ok"))
    segment = OpenSegment(run, who="w")
    segment.write_to(SharedSegmentWriter(run, "1"))
    return segment


@pytest.fixture
def segment(tmp_path):
    made = shared(tmp_path / "r")
    append(made, DatedEvent("segment.start", FIRST))
    return made


@pytest.fixture
def writer(segment):
    return segment.writer


def test_processes_that_write_in_turn_leave_one_chain(writer):
    argv = [sys.executable, "-c", WRITES, str(writer.run)]
    both = [subprocess.Popen([*argv, name]) for name in ("a", "b")]
    assert [one.wait() for one in both] == [0, 0]
    assert verify(writer.run).damages == []
    told = [event.data for event in Tape(writer.run).events() if event.kind == "x"]
    for name in ("a", "b"):
        assert [data["n"] for data in told if data["from"] == name] == list(range(50))
    assert writer.summary()[0] == 101


def test_what_a_killed_process_left_behind_is_cut_off(writer, segment):
    seq = append(segment, DatedEvent("x", 1))
    path = writer.run / "tape-1.jsonl"
    with path.open("ab") as file:
        file.write(b'{"seq":2,"kind":"x","wal')
    assert append(segment, DatedEvent("x", 2)) == seq + 1
    assert verify(writer.run).damages == []


def test_a_last_line_that_is_no_event_is_not_written_after(writer, segment):
    with (writer.run / "tape-1.jsonl").open("ab") as file:
        file.write(b"nonsense\n")
    with pytest.raises(OSError, match="cannot be read"):
        append(segment, DatedEvent("x", 2))


def test_a_whole_segment_has_the_times_that_it_is_given(tmp_path):
    run = tmp_path / "r"
    segment = shared(run)
    with segment.writer as writer:
        append(segment, DatedEvent("segment.start", FIRST, wall=5_000, mono=1))
        entry = DatedEvent("x", {"a": 1}, wall=6_000, mono=1_001, lane="main/1", cause=0)
        append(segment, entry)
    count, size, _ = writer.summary()
    _, event = Tape(run).events()
    assert (count, size) == (2, os.stat(run / "tape-1.jsonl").st_size)
    assert (event.wall, event.mono, event.lane, event.cause, event.segment) == (
        6_000, 1_001, "main/1", 0, "1",
    )  # fmt: skip


def test_a_segment_is_not_named_like_a_path(tmp_path):
    with pytest.raises(TapeDamaged):
        SharedSegmentWriter(tmp_path, "../x")
