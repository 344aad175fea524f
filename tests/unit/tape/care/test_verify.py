"""Every change to a tape is noticed, and named where it was made."""

import dataclasses
import json
import os

import pytest

from playhead.errors import TapeDamaged, TapeTooNew
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.tape.blobs import blob_path, push
from playhead.tape.care.verify import verify
from playhead.tape.format import close_line, open_line
from playhead.tape.sealed.seal import seal


def told(found):
    return [f"{one.segment}:{one.line} {one.why}" for one in found.damages]


def change_manifest(folder, members):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


@pytest.fixture
def root(small):
    return small.segments[0]


@pytest.fixture(params=["plain", "sealed"])
def either(request, small):
    if request.param == "sealed":
        seal(small.path)
    return small


def test_a_whole_tape_is_ok(either):
    found = verify(either.path)
    assert (found.ok, found.damages, found.run) == (True, [], either.id)
    assert [(one.name, one.events, one.ended) for one in found.segments] == [
        ("100", 6, True),
        ("101", 3, True),
    ]
    assert (found.events, found.cut) == (9, 0)


def test_what_the_recorder_writes_is_whole(tmp_path):
    recorder = Recorder(run=tmp_path, run_id="r", who="agent")
    for number in range(300):
        recorder.append(NewEvent("x", {"n": number, "text": "ä" * number}))
    recorder.append(NewEvent("big", {"text": "x" * 100_000}))
    recorder.close()
    found = verify(tmp_path)
    assert [one.why for one in found.damages] == [f"{tmp_path} has no manifest.json."]
    assert (found.events, found.blobs) == (303, 1)


def test_every_flipped_byte_is_reported(small, root):
    whole = root.path.read_bytes()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        root.path.write_bytes(changed)
        assert not verify(small.path).ok, at


def test_an_edited_line_is_named(small, root):
    edited = root.lines[2].replace(b"greet", b"grete")
    root.rewrite([*root.lines[:2], edited, *root.lines[3:]])
    (damage,) = verify(small.path).damages
    assert (damage.segment, damage.line, damage.offset) == ("100", 3, sum(map(len, root.lines[:2])))
    assert damage.why.startswith("this line, or the one before, was edited")


def test_an_edit_with_a_fresh_checksum_is_noticed_by_the_line_after_it(small, root):
    _, before = open_line(root.lines[1])
    forged, _ = close_line(open_line(root.lines[2])[0].replace(b"greet", b"grete"), before)
    root.rewrite([*root.lines[:2], forged, *root.lines[3:]])
    (damage,) = verify(small.path).damages
    assert damage.line == 4
    assert "was edited" in damage.why


def test_a_checksum_in_capitals_is_a_change(small, root):
    at = next(i for i, line in enumerate(root.lines) if line[-11:-3] != line[-11:-3].upper())
    line = root.lines[at]
    root.rewrite(
        [*root.lines[:at], line[:-11] + line[-11:-3].upper() + line[-3:], *root.lines[at + 1 :]]
    )
    assert [one.line for one in verify(small.path).damages] == [at + 1]


def test_a_removed_line_is_named(small, root):
    root.rewrite([*root.lines[:2], *root.lines[3:]])
    assert told(verify(small.path)) == ["100:3 an event is missing before seq 3: removed or moved"]


def test_a_removed_first_line_is_named(small, root):
    root.rewrite(root.lines[1:])
    assert told(verify(small.path))[0] == (
        "100:1 the segment begins with 'run.start': its start is missing"
    )


def test_swapped_lines_are_named(small, root):
    lines = root.lines
    root.rewrite([*lines[:2], lines[3], lines[2], *lines[4:]])
    assert told(verify(small.path)) == [
        "100:3 an event is missing before seq 3: removed or moved",
        "100:4 seq 2 comes after 3: moved or doubled",
        "100:5 an event is missing before seq 4: removed or moved",
    ]


def test_a_doubled_line_is_named(small, root):
    root.rewrite([*root.lines[:3], root.lines[2], *root.lines[3:]])
    assert told(verify(small.path)) == ["100:4 seq 2 comes after 2: moved or doubled"]


def test_an_inserted_line_of_garbage_is_named(small, root):
    root.rewrite([*root.lines[:3], b"hello\n", *root.lines[3:]])
    (damage,) = verify(small.path).damages
    assert (damage.line, damage.why[:19]) == (4, "it is not an event:")


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_a_tail_cut_off_is_noticed_because_the_manifest_knew_of_it(small, root, lines):
    root.rewrite(root.lines[:-lines])
    found = verify(small.path)
    assert (found.cut, found.segments[0].cut) == (lines, lines)
    assert "the end is cut off: the manifest counts 6 events" in told(found)[0]


def test_a_torn_tail_is_named(small, root):
    root.path.write_bytes(b"".join(root.lines)[:-20])
    found = verify(small.path)
    assert told(found)[0].startswith("100:6 torn:")
    assert found.cut == 1


def test_a_killed_run_that_lost_nothing_is_ok(run):
    run.segment().add("x")
    run.manifest(status="running", segments=[], events=0)
    found = verify(run.path)
    assert found.ok
    assert not found.segments[0].ended


def test_an_emptied_segment_is_named(small, root):
    root.path.write_bytes(b"")
    assert "the end is cut off" in told(verify(small.path))[0]


def test_a_deleted_segment_is_named(small):
    small.segments[1].path.unlink()
    assert told(verify(small.path)) == ["101:0 the segment is missing, but the manifest names it"]


def test_a_segment_from_another_run_is_named(small, tmp_path):
    stranger = type(small)(tmp_path / "other", "20260101-000000-aaaa").segment("102")
    (small.path / "tape-102.jsonl").write_bytes(stranger.path.read_bytes())
    assert told(verify(small.path)) == ["102:1 it belongs to run '20260101-000000-aaaa'"]


def test_lines_spliced_in_from_another_segment_are_named(small, root):
    child = small.segments[1]
    root.rewrite([*root.lines[:3], child.lines[1], *root.lines[3:]])
    assert "100:4 it belongs to segment '101'" in told(verify(small.path))


def test_a_segment_that_grew_after_the_run_ended_is_whole(small):
    child = small.segments[1]
    child.add("late", "a daemon goes on")
    assert verify(small.path).ok


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"events": 8}, "it counts 8 events, but its segments have 9"),
        ({"run": "another"}, "it names run 'another', the tape '20261115-071105-k3f9'"),
        ({"status": "failed"}, "its status is 'failed'; run.end says 'ok'"),
        ({"exit_code": 3}, "its exit_code is 3; run.end says '0'"),
    ],
)
def test_an_edited_manifest_is_named(either, members, why):
    change_manifest(either.path, members)
    assert told(verify(either.path)) == [f"manifest.json:0 {why}"]


@pytest.mark.parametrize("member", ["events", "bytes", "crc"])
def test_an_edited_summary_of_a_segment_is_named(either, member):
    path = either.path / "manifest.json"
    members = json.loads(path.read_text())
    members["segments"][0][member] = 7 if member != "crc" else "00000007"
    members["events"] = sum(one["events"] for one in members["segments"])
    path.write_text(json.dumps(members))
    (why,) = told(verify(either.path))
    assert why.startswith("100:7 the manifest names")


def test_a_manifest_that_is_none_is_named(small):
    (small.path / "manifest.json").write_text("[]")
    (why,) = told(verify(small.path))
    assert why.startswith("manifest.json:0")


def test_an_altered_and_a_missing_blob_are_named(run):
    altered, missing = push(run.path, b"a" * 70_000), push(run.path, b"b" * 70_000)
    nested = push(run.path, json.dumps({"deep": {"$blob": missing, "as": "text"}}).encode())
    root = run.segment()
    root.add("x", {"text": {"$blob": altered, "size": 70_000, "as": "text"}})
    root.add("y", {"$blob": nested, "size": 1, "as": "json"})
    root.add("z", {"again": [{"$blob": missing, "as": "text"}], "word": {"$dict": {"$blob": "?"}}})
    root.end()
    run.manifest()
    assert verify(run.path).ok
    assert verify(run.path).blobs == 3
    blob_path(run.path, altered).write_bytes(b"c" * 70_000)
    blob_path(run.path, missing).unlink()
    found = verify(run.path)
    assert told(found) == [
        f"100:0 blob {altered} of seq 1 is altered",
        f"100:0 blob {missing} of seq 2 is missing",
    ]
    assert (found.blobs_altered, found.blobs_missing) == ([altered], [missing])


def test_a_blob_that_is_a_pipe_or_a_path_is_not_opened(run):
    digest = "a" * 64
    path = blob_path(run.path, digest)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    root = run.segment()
    root.add("x", [{"$blob": digest}, {"$blob": "../../../etc/passwd"}])
    root.end()
    run.manifest()
    found = verify(run.path)
    assert (found.blobs_altered, found.blobs_missing) == ([digest], ["../../../etc/passwd"])


def test_every_flipped_byte_of_a_sealed_file_is_reported(small):
    seal(small.path)
    path = small.path / "tape.jsonl.zst"
    whole = path.read_bytes()
    for at in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[at] ^= 0x10
        path.write_bytes(changed)
        found = verify(small.path)
        assert any(one.segment == "tape.jsonl.zst" for one in found.damages), at


def test_a_sealed_file_cut_short_is_named(small):
    seal(small.path)
    path = small.path / "tape.jsonl.zst"
    path.write_bytes(path.read_bytes()[:-9])
    assert any("cut off" in why for why in told(verify(small.path)))


@pytest.mark.parametrize("member", ["events", "bytes", "raw_sha256", "sha256", "frames"])
def test_an_edited_index_is_named(small, member):
    seal(small.path)
    path = small.path / "tape.index.json"
    members = json.loads(path.read_text())
    members[member] = {"frames": [], "sha256": "0" * 64, "raw_sha256": "0" * 64}.get(member, 5)
    path.write_text(json.dumps(members))
    assert told(verify(small.path))


def test_a_missing_index_is_named_and_everything_else_is_checked(small):
    seal(small.path)
    (small.path / "tape.index.json").unlink()
    found = verify(small.path)
    assert told(found) == ["tape.index.json:0 it is missing"]
    assert found.events == 9


def test_nothing_at_all_and_a_tape_from_the_future_are_refused(run, tmp_path):
    with pytest.raises(TapeDamaged, match="holds no tape"):
        verify(tmp_path)
    run.segment(format=99)
    with pytest.raises(TapeTooNew):
        verify(run.path)


def test_an_event_recorded_while_the_segment_was_closed_is_no_damage(run):
    root = run.segment()
    root.end()
    root.add("signal", "from a handler")
    run.manifest()
    assert verify(run.path).ok


def test_the_manifest_of_a_resumed_run_may_count_seqs(small):
    again = small.segment("200", start=False)
    again.seq = 6
    again.add("segment.start", {"format": 1, "run": small.id, "generation": 1})
    again.end()
    last = dataclasses.replace(again.summary, events=8)
    small.manifest(exit_code=0, generation=1, events=8, segments=[last])
    assert verify(small.path).ok
