"""What is on a tape is read, in order, and what is wrong with it is said."""

import json
import os
from pathlib import Path

import pytest

from playhead.errors import StoreError, TapeDamaged, TapeTooNew, UsageError
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.tape import format as tape_format
from playhead.tape.blobs import blob_path, push
from playhead.tape.format import FORMAT_VERSION
from playhead.tape.reader import Tape
from playhead.tape.reading import segments
from playhead.tape.sealed.seal import seal


def whys(tape):
    return [f"{one.segment}:{one.line} {one.why}" for one in tape.damage]


def kinds(tape):
    return [event.kind for event in tape.events()]


def test_what_the_recorder_wrote_is_read_back(tmp_path):
    recorder = Recorder(run=tmp_path, run_id="r", who="agent")
    recorder.append(
        NewEvent("note", {"text": "grüß dich", "n": [1, 2.5, None, True]}, '"a.py:1 f"', why="so")
    )
    recorder.close()
    tape = Tape(tmp_path)
    start, note, end = tape.events()
    assert (start.kind, note.kind, end.kind) == ("segment.start", "note", "segment.end")
    assert note.data == {"text": "grüß dich", "n": [1, 2.5, None, True]}
    assert (note.at, note.who, note.why, note.parent) == ("a.py:1 f", "agent", "so", 0)
    assert note.ref == f"{os.getpid()}:1"
    assert tape.damage == []


def test_segments_are_merged_by_generation_clock_pid_and_seq(run):
    resumed = run.segment("90", generation=1)  # after a reboot its clock begins anew
    late = run.segment("101", start=False)
    root = run.segment("100")
    for segment, mono in [(resumed, 5), (root, 2_000_000), (late, 2_000_000), (root, 2_000_000)]:
        segment.add("x", mono=mono)
    refs = [event.ref for event in Tape(run.path).events()]
    assert refs == ["100:0", "100:1", "100:2", "101:0", "90:0", "90:1"]


def test_events_of_one_segment_never_overtake_each_other(run):
    root, other = run.segment("100"), run.segment("101")
    for mono in (9_000_000, 8_000_000, 7_000_000):
        root.add("x", mono=mono)
    other.add("y", mono=8_500_000)
    seqs = [event.seq for event in Tape(run.path).events() if event.pid == 100]
    assert seqs == [0, 1, 2, 3]


def test_hundreds_of_processes_one_after_the_other_need_few_open_files(run):
    for pid in range(200, 500):
        segment = run.segment(str(pid))
        segment.add("x", pid)
        segment.end()
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    most = max(len(list(descriptors.iterdir())) for _ in Tape(run.path).events())
    assert most <= before + 3


def test_unknown_kinds_and_members_survive_as_raw_lines(run):
    root = run.segment()
    line = root.add("brand.new", {"a": 1}, colour="blue", nested={"z": [1, {}]})
    tape = Tape(run.path)
    *_, last = tape.lines()
    assert (last.segment, last.number, last.raw + b"\n") == ("100", 2, line)
    assert kinds(tape) == ["segment.start", "brand.new"]


def test_lines_of_all_segments_are_the_very_bytes_of_the_files(small):
    lines = list(Tape(small.path).lines())
    for segment in small.segments:
        own = [line.raw + b"\n" for line in lines if line.segment == segment.name]
        assert own == segment.lines
        numbers = [line.number for line in lines if line.segment == segment.name]
        assert numbers == list(range(1, len(own) + 1))


def test_torn_tail_yields_every_whole_event(run):
    root = run.segment()
    for number in range(3):
        root.add("x", number)
    whole = b"".join(root.lines)
    edge = len(whole) - len(root.lines[-1])
    for cut in range(edge + 1, len(whole) - 1):
        root.path.write_bytes(whole[:cut])
        tape = Tape(run.path)
        assert kinds(tape) == ["segment.start", "x", "x"]
        torn = f"100:4 torn: the last {cut - edge} bytes are the beginning of an event"
        assert whys(tape) == [torn]


def test_an_event_that_lacks_only_its_newline_is_whole(run):
    root = run.segment()
    root.add("x")
    root.path.write_bytes(b"".join(root.lines)[:-1])
    tape = Tape(run.path)
    assert kinds(tape) == ["segment.start", "x"]
    assert whys(tape) == ["100:2 the newline at its end is missing"]


DAMAGED_LINES = {
    "garbage": (b"%$&/()\n", "it is not an event"),
    "empty": (b"\n", "it is not an event"),
    "a list": (b"[1,2]\n", "it is not a"),
    "no seq": (b'{"kind":"x","wall":1,"mono":1,"pid":100}\n', "seq"),
    "seq is text": (b'{"seq":"1","kind":"x","wall":1,"mono":1,"pid":100}\n', "seq"),
    "kind is null": (b'{"seq":1,"kind":null,"wall":1,"mono":1,"pid":100}\n', "kind"),
    "pid is true": (b'{"seq":1,"kind":"x","wall":1,"mono":1,"pid":true}\n', "pid"),
    "no UTF-8": (
        b'{"seq":1,"kind":"\xff\xfe","wall":1,"mono":1,"pid":100}\n',
        "it is not an event",
    ),
    "UTF-16": ('{"seq":1,"kind":"x"}'.encode("utf-16") + b"\n", "it is not a"),
    "nested": (b'{"data":' + b"[" * 100_000 + b"\n", "nested too deeply"),
    "NaN": (b'{"seq":1,"kind":"x","wall":1,"mono":1,"pid":100,"data":NaN}\n', "it is not an event"),
    "half a pair": (
        b'{"seq":1,"kind":"x","wall":1,"mono":1,"pid":100,"data":"\\ud800 "}\n',
        "it is not an event",
    ),
}


@pytest.fixture(params=["msgspec", "standard library"])
def either_decoder(request, monkeypatch):
    if request.param != "msgspec":
        monkeypatch.setattr(
            "playhead.tape.reading.segments.decoder", lambda **_: tape_format.decode_std
        )
        monkeypatch.setattr("playhead.tape.format.decoder", lambda **_: tape_format.decode_std)


@pytest.mark.parametrize(("line", "why"), DAMAGED_LINES.values(), ids=DAMAGED_LINES.keys())
def test_reading_goes_on_after_a_damaged_line(run, line, why, either_decoder):
    root = run.segment()
    root.add("lost")
    root.add("after")
    root.rewrite([root.lines[0], line, root.lines[2]])
    tape = Tape(run.path)
    assert kinds(tape) == ["segment.start", "after"]
    (damage,) = tape.damage  # the line that stands for seq 1 explains why seq 1 is missing
    assert (damage.line, damage.offset) == (2, len(root.lines[0]))
    assert why in damage.why


def test_a_line_too_long_to_be_held_is_skipped(run, monkeypatch):
    monkeypatch.setattr("playhead.tape.reading.segment_rows.LONGEST_LINE", 1_000_000)
    root = run.segment()
    root.add("after", seq=2)
    long = b'{"seq":1,"data":"' + b"x" * 3_000_000 + b'"}\n'
    root.rewrite([root.lines[0], long, root.lines[1]])
    tape = Tape(run.path)
    assert kinds(tape) == ["segment.start", "after"]
    assert whys(tape) == ["100:2 it is 3000019 bytes long, more than 0 MiB: skipped"]
    assert tape.event(2).kind == "after"


def test_a_gap_in_the_seqs_is_said_at_its_place(run):
    root = run.segment()
    for _ in range(4):
        root.add("x")
    root.rewrite([root.lines[0], root.lines[3], root.lines[4]])
    tape = Tape(run.path)
    assert len(list(tape.events())) == 3
    assert whys(tape) == ["100:2 2 events are missing before seq 3: removed or moved"]


def test_a_segment_without_its_beginning_is_said(run):
    root = run.segment()
    root.add("x")
    root.rewrite(root.lines[1:])
    tape = Tape(run.path)
    assert kinds(tape) == ["x"]
    assert whys(tape) == ["100:1 the segment begins with 'x': its start is missing"]


def test_lines_spliced_in_from_another_segment_are_said_once(run):
    root, other = run.segment("100"), run.segment("101")
    for _ in range(3):
        other.add("x")
    root.rewrite([*root.lines, *other.lines[1:]])
    other.path.unlink()
    tape = Tape(run.path)
    assert len(list(tape.events())) == 4
    assert whys(tape) == ["100:2 it belongs to segment '101'"]


def test_reading_twice_tells_a_damage_once(run):
    root = run.segment()
    root.rewrite([*root.lines, b"?\n"])
    tape = Tape(run.path)
    assert kinds(tape) == kinds(tape)
    assert len(tape.damage) == 1


def test_thousands_of_damaged_lines_are_counted_and_not_all_listed(run):
    root = run.segment()
    root.rewrite([*root.lines, b"\n" * 9_000])
    tape = Tape(run.path)
    assert kinds(tape) == ["segment.start"]
    assert (len(tape.damage), tape.damage.more) == (1_000, 8_000)


def test_a_tape_of_a_million_damaged_lines_is_not_read_to_its_end(run):
    root = run.segment()
    root.rewrite([*root.lines, b"\n" * 1_000_000])
    with pytest.raises(TapeDamaged, match="more than 10,000 lines that are not events"):
        kinds(Tape(run.path))


def test_a_tape_from_the_future_is_refused_with_its_version(run):
    run.segment("100")
    run.segment("101", format=99)
    with pytest.raises(TapeTooNew, match="format 99") as refused:
        Tape(run.path).events()
    assert (refused.value.found, refused.value.known) == (99, FORMAT_VERSION)


def test_the_future_is_recognised_even_where_its_lines_are_no_events_to_us(run):
    line = {"n": 0, "kind": "segment.start", "data": {"format": FORMAT_VERSION + 1, "run": "r"}}
    (run.path / "tape-100.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(TapeTooNew):
        Tape(run.path).events()


def test_a_users_segment_start_says_nothing_about_the_format(run):
    root = run.segment()
    root.add("segment.start", {"format": 99}, user=True)
    assert len(list(Tape(run.path).events())) == 2


def test_a_format_that_never_was_is_a_damage(run):
    run.segment(format=-3)
    tape = Tape(run.path)
    assert kinds(tape) == ["segment.start"]
    assert "format -3, which does not exist" in tape.damage[0].why


@pytest.mark.parametrize("sealed", [False, True])
def test_an_event_is_found_by_its_name(small, sealed):
    if sealed:
        seal(small.path)
    tape = Tape(small.path)
    for event in tape.events():
        assert tape.event(event.ref) == event
    assert tape.event(2).kind == "call"
    assert tape.event("101:1").kind == "output"


def test_a_seq_alone_goes_on_over_a_resume(run):
    root = run.segment("100")
    root.add("first")
    again = run.segment("200", start=False)
    again.seq = 2
    again.add("segment.start", {"format": 1, "run": run.id, "generation": 1})
    again.add("second")
    run.segment("201", generation=1).add("child")
    tape = Tape(run.path)
    assert [tape.event(seq).kind for seq in (1, 3)] == ["first", "second"]


@pytest.mark.parametrize("ref", [99, "100:99", "7:0", "x", "100:", ":", "100:1:2", -1])
def test_an_event_that_is_not_there_is_a_users_mistake(small, ref):
    with pytest.raises(UsageError):
        Tape(small.path).event(ref)


def test_an_event_appended_after_the_first_look_is_found(run):
    root = run.segment()
    tape = Tape(run.path)
    assert tape.event(0).kind == "segment.start"
    root.add("late")
    assert tape.event(1).kind == "late"


def test_damaged_lines_do_not_hide_the_events_behind_them(run):
    root = run.segment()
    root.add("x", seq=1)
    doubled = root.add("doubled", seq=1)
    odd = b'{"kind":"odd","seq":3,"wall":1,"mono":1,"pid":100}\n'
    root.rewrite([*root.lines[:2], doubled, b"garbage\n", odd])
    tape = Tape(run.path)
    assert tape.event(1).kind == "x"
    assert tape.event(3).kind == "odd"


def test_asking_for_a_damaged_event_says_so(run):
    root = run.segment()
    root.rewrite([root.lines[0], b'{"seq":1,"kind":7}\n'])
    with pytest.raises(TapeDamaged, match="Event 100:1 is damaged"):
        Tape(run.path).event(1)


def test_whole_brings_blobs_back(tmp_path):
    recorder = Recorder(run=tmp_path, run_id="r", who="agent")
    data = {"text": "ä" * 70_000, "raw": b"\x00\xff" * 50_000, "many": list(range(30_000))}
    recorder.append(NewEvent("big", data))
    recorder.close()
    tape = Tape(tmp_path)
    event = tape.event(1)
    assert "$blob" in event.data["text"]
    assert tape.whole(event).data["text"] == data["text"]
    assert tape.whole(event).data["many"] == data["many"]
    assert tape.blob(event.data["text"]["$blob"]) == data["text"].encode()


def test_a_missing_blob_is_damage_and_the_event_can_still_be_read(run):
    digest = push(run.path, b"x")
    blob_path(run.path, digest).unlink()
    run.segment().add("big", {"text": {"$blob": digest, "size": 1, "as": "text"}})
    tape = Tape(run.path)
    *_, event = tape.events()
    with pytest.raises(TapeDamaged, match="missing"):
        tape.whole(event)


def test_a_missing_manifest_is_made_from_the_tape(small):
    written = Tape(small.path).manifest
    (small.path / "manifest.json").unlink()
    made = Tape(small.path).manifest
    assert (made.run, made.status, made.exit_code) == (written.run, "ok", 0)
    assert made.segments == written.segments
    assert (made.name, made.command) == ("greeter", ["python", "agent.py"])


def test_a_folder_without_a_tape_is_no_empty_tape(tmp_path):
    with pytest.raises(TapeDamaged, match="holds no tape"):
        Tape(tmp_path).events()
    with pytest.raises(StoreError):
        Tape(tmp_path / "nowhere").events()


def test_a_run_that_died_before_its_first_event_is_empty(run):
    run.manifest(status="running")
    assert list(Tape(run.path).events()) == []


def test_what_is_no_regular_file_is_not_opened(run):
    run.segment("100")
    os.mkfifo(run.path / "tape-101.jsonl")
    (run.path / "tape-102.jsonl").symlink_to("/dev/zero")
    (run.path / "tape-103.jsonl").mkdir()
    tape = Tape(run.path)
    assert len(list(tape.events())) == 1
    assert [damage.segment for damage in tape.damage] == ["101", "102", "103"]


def test_files_beside_the_segments_are_left_alone(small):
    for name in ("tape-100.jsonl.damaged.20261115T071105", "tape-9.jsonl.part", "notes.jsonl"):
        (small.path / name).write_text("?\n")
    tape = Tape(small.path)
    assert len(list(tape.events())) == 9
    assert tape.damage == []


def test_a_run_that_is_sealed_while_we_look_is_read_all_the_same(small, monkeypatch):
    first = segments.open_segment

    def seal_before(path, report):
        monkeypatch.undo()
        seal(small.path)
        return first(path, report)

    monkeypatch.setattr(segments, "open_segment", seal_before)
    tape = Tape(small.path)
    assert len(list(tape.events())) == 9
    assert tape.damage == []
