"""One write an event, onto a chain that a reader can follow."""

import json
import os
import resource
import shutil
from pathlib import Path

import pytest

from playhead.host import native_core
from playhead.launch import native_build
from playhead.tape import writer as writer_module
from playhead.tape.reader import Tape
from playhead.tape.writer import SegmentWriter

REST = f'"pid":{os.getpid()},'


def add(writer, kind="x", data=b"null"):
    return writer.append(f'"{kind}"', REST, data)


def events(run):
    tape = Tape(run)
    found = list(tape.events())
    return found, [one.why for one in tape.damage if "its start is missing" not in one.why]


@pytest.fixture(params=["python", "native"])
def writer(tmp_path, request, monkeypatch):
    native_build.core_of(os.environ)
    core = native_core.extension()
    if request.param == "native" and core is None:
        pytest.skip(native_core.reason)
    monkeypatch.setattr(native_core, "core", core if request.param == "native" else None)
    run = tmp_path / "run"
    run.mkdir()
    made = SegmentWriter(run)
    yield made
    made.close()


def test_events_recorded_during_a_write_follow_it_in_order_however_many_they_are(
    writer, monkeypatch
):
    # The clock is read in the middle of a write: there a signal handler of the host would run.
    promised, real = [], writer_module.wall_ns

    def interrupted():
        monkeypatch.setattr(writer_module, "wall_ns", real)
        promised.extend(add(writer, data=b"%d" % n) for n in range(1, 3_001))
        return real()

    monkeypatch.setattr(writer_module, "wall_ns", interrupted)
    assert add(writer, data=b"0") == 0
    assert promised == list(range(1, 3_001))
    found, damage = events(writer.run)
    assert [event.data for event in found] == list(range(3_001))
    assert damage == []
    assert writer.unwritten == []


def test_events_are_numbered_and_chained(writer):
    assert [add(writer, data=b'{"n":%d}' % n) for n in range(5)] == list(range(5))
    found, damage = events(writer.run)
    assert [event.data["n"] for event in found] == list(range(5))
    assert damage == []
    assert writer.size == Path(writer.path).stat().st_size


def test_counting_goes_on_where_a_resumed_run_left_off(tmp_path):
    writer = SegmentWriter(tmp_path, first_seq=17)
    assert add(writer) == 17
    writer.close()


def test_every_event_is_on_the_disk_when_append_returns(writer):
    add(writer)
    assert Path(writer.path).read_bytes().endswith(b'"}\n')


def test_a_segment_is_for_its_owner_alone(writer):
    assert Path(writer.path).stat().st_mode & 0o777 == 0o600


def test_a_pid_that_came_round_again_gets_a_name_of_its_own(tmp_path):
    first, second = SegmentWriter(tmp_path), SegmentWriter(tmp_path)
    assert (first.name, second.name) == (str(os.getpid()), f"{os.getpid()}-2")
    first.close()
    second.close()


def test_a_name_that_is_sealed_already_is_taken(tmp_path):
    pid = os.getpid()
    sealed = {"segments": [{"name": f"{pid}", "last": 7}, {"name": f"{pid}-2", "last": 9}]}
    (tmp_path / "tape.index.json").write_text(json.dumps(sealed))
    writer = SegmentWriter(tmp_path)
    assert writer.name == f"{pid}-3"
    writer.close()


def test_an_event_recorded_inside_our_own_write_follows_it(writer, monkeypatch):
    calls = []
    write = os.write

    def interrupted(fd, line):
        if not calls:
            calls.append(add(writer, "from a signal handler"))
        return write(fd, line)

    # The native core runs no signal handler before its write has been counted.
    monkeypatch.setattr(native_core, "core", None)
    monkeypatch.setattr("playhead.tape.writer.write", interrupted)
    assert add(writer, "first") == 0
    assert calls == [1]
    found, damage = events(writer.run)
    assert [event.kind for event in found] == ["first", "from a signal handler"]
    assert damage == []


def test_a_line_of_which_the_disk_took_a_part_is_cut_off_again(writer):
    add(writer)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (writer.size + 9, hard))
    try:
        with pytest.raises(OSError, match="only part"):
            add(writer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert add(writer) == 1
    found, damage = events(writer.run)
    assert (len(found), damage) == (2, [])


def test_a_deleted_folder_is_written_anew_with_everything_so_far(writer):
    for _ in range(3):
        add(writer)
    shutil.rmtree(writer.run)
    assert not writer.is_on_disk()
    writer.reopen()
    assert writer.is_on_disk()
    add(writer)
    found, damage = events(writer.run)
    assert ([event.seq for event in found], damage) == ([0, 1, 2, 3], [])


def test_two_threads_that_miss_the_file_make_it_once(writer):
    add(writer)
    shutil.rmtree(writer.run)
    assert [writer.reopen(), writer.reopen()] == [0, 0]
    add(writer)
    found, damage = events(writer.run)
    assert ([event.seq for event in found], damage) == ([0, 1], [])


def test_a_descriptor_closed_under_us_is_noticed(writer):
    add(writer)
    os.close(writer._fd)
    assert not writer.is_on_disk()
    assert writer.reopen() == 0
    assert add(writer) == 1
    found, damage = events(writer.run)
    assert (len(found), damage) == (2, [])


def test_the_descriptor_is_out_of_the_way_of_programs_that_close_the_low_ones(writer):
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert writer._fd >= min(700, soft - 50)


def test_a_closed_writer_can_be_closed_again(writer):
    writer.close()
    writer.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        add(writer)
