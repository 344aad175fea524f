"""A damaged tape is put right without deleting anything, and says what it has lost."""

import json

import pytest

from playhead.errors import UsageError
from playhead.tape.blobs import blob_path, push
from playhead.tape.care.repair import repair
from playhead.tape.care.verify import verify
from playhead.tape.format import FORMAT_VERSION
from playhead.tape.manifest import read_manifest
from playhead.tape.reader import Tape
from playhead.tape.sealed.seal import seal

NOW = 1_794_741_627_000_000_000


def kinds(run):
    return [event.kind for event in Tape(run.path).events()]


def gaps(run):
    return [event.data for event in Tape(run.path).events() if event.kind == "gap"]


def files(run):
    return {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}


@pytest.fixture
def root(small):
    return small.segments[0]


def assert_healed(run):
    found = verify(run.path)
    assert found.ok, found.damages
    before = files(run)
    assert not repair(run.path, NOW).changed
    assert files(run) == before


@pytest.mark.parametrize("sealed", [False, True])
def test_a_healthy_tape_is_left_as_it_is(small, sealed):
    if sealed:
        seal(small.path)
    before = files(small)
    done = repair(small.path, NOW)
    assert (done.changed, done.kept, done.lost, done.moved) == (False, 9, 0, [])
    assert files(small) == before


def test_a_torn_tail_is_moved_aside_and_stated(small, root):
    whole = b"".join(root.lines)
    root.path.write_bytes(whole[:-20])
    done = repair(small.path, NOW)
    assert (done.lost, done.kept) == (1, 9)
    kept = root.path.read_bytes()
    assert kept.startswith(b"".join(root.lines[:-1]))  # what came before is not touched
    (gap,) = gaps(small)
    assert (gap["lost"], gap["repaired"]) == (1, "2026-11-15T11:20:27.000000Z")
    assert "torn" in gap["why"]
    assert_healed(small)


def test_the_damaged_originals_are_kept_beside_the_new_ones(small, root):
    root.path.write_bytes(b"".join(root.lines)[:-20])
    before = files(small)
    done = repair(small.path, NOW)
    assert sorted(path.name for path in done.moved) == [
        "manifest.json.damaged.20261115T112027",
        "tape-100.jsonl.damaged.20261115T112027",
    ]
    for path in done.moved:
        assert path.read_bytes() == before[path.name.partition(".damaged")[0]]


def test_a_second_repair_in_the_same_second_overwrites_nothing(small, root):
    for _ in range(2):
        root.path.write_bytes(b"".join(root.lines)[:-20])
        repair(small.path, NOW)
    assert (small.path / "tape-100.jsonl.damaged.20261115T112027.2").exists()


def test_lost_lines_are_stated_where_they_were(small, root):
    root.rewrite([*root.lines[:2], b"%&/()\n", b"\xff\xfe\n", *root.lines[4:]])
    done = repair(small.path, NOW)
    assert done.lost == 2
    events = [event for event in Tape(small.path).events() if event.pid == 100]
    assert [event.seq for event in events] == [0, 1, 2, 4, 5]
    assert events[2].data == {
        "lost": 2,
        "why": "2 events could not be read here",
        "repaired": "2026-11-15T11:20:27.000000Z",
        "until": 3,
    }
    assert_healed(small)


def test_an_edited_event_is_kept_as_found_and_stated(small, root):
    root.rewrite([*root.lines[:2], root.lines[2].replace(b"greet", b"grete"), *root.lines[3:]])
    done = repair(small.path, NOW)
    assert done.lost == 0
    assert Tape(small.path).event(2).data["name"] == "grete"
    assert "100 line 3" in gaps(small)[0]["why"]
    assert_healed(small)


def test_moved_and_doubled_lines_are_put_in_order(small, root):
    lines = root.lines
    root.rewrite([lines[0], lines[2], lines[1], lines[2], *lines[3:]])
    done = repair(small.path, NOW)
    assert done.lost == 0
    assert [event.seq for event in Tape(small.path).events() if event.pid == 100] == list(range(7))
    assert_healed(small)


def test_a_lost_first_line_is_made_anew_from_what_is_known(small, root):
    root.rewrite([b"garbage\n", *root.lines[1:]])
    repair(small.path, NOW)
    start = Tape(small.path).event("100:0")
    assert (start.kind, start.data["run"]) == ("segment.start", small.id)
    assert start.data["format"] == FORMAT_VERSION
    assert "repaired" in start.data
    assert_healed(small)


def test_an_altered_first_line_does_not_make_a_stranger_of_the_segment(small, root):
    root.rewrite([root.lines[0].replace(b"20261115-07", b"20271115-07"), *root.lines[1:]])
    done = repair(small.path, NOW)
    assert done.lost == 1
    assert read_manifest(small.path).run == small.id
    assert_healed(small)


def test_a_lost_beginning_is_stated(small, root):
    root.rewrite(root.lines[3:])
    repair(small.path, NOW)
    assert [(event.seq, event.kind) for event in Tape(small.path).events() if event.pid == 100][
        :3
    ] == [
        (0, "segment.start"),
        (1, "gap"),
        (3, "outcome"),
    ]
    assert_healed(small)


def test_an_altered_seq_does_not_make_a_hole_of_a_million_events(small, root):
    root.rewrite(
        [*root.lines[:2], root.lines[2].replace(b'"seq":2', b'"seq":2000000'), *root.lines[3:]]
    )
    done = repair(small.path, NOW)
    assert done.lost == 1
    assert_healed(small)


def test_a_tail_cut_off_is_stated_because_the_manifest_knew_of_it(small, root):
    root.rewrite(root.lines[:3])
    done = repair(small.path, NOW)
    assert done.lost == 3
    assert gaps(small)[0]["lost"] == 3
    assert read_manifest(small.path).status == "ok"  # the tape has lost its run.end; it knew
    assert_healed(small)


def test_foreign_lines_and_foreign_segments_are_moved_aside(small, tmp_path):
    root, child = small.segments
    root.rewrite([*root.lines[:3], child.lines[1], *root.lines[3:]])
    stranger = type(small)(tmp_path / "other", "20260101-000000-aaaa").segment("102")
    (small.path / "tape-102.jsonl").write_bytes(stranger.path.read_bytes())
    done = repair(small.path, NOW)
    assert "tape-102.jsonl.damaged.20261115T112027" in [path.name for path in done.moved]
    assert {event.pid for event in Tape(small.path).events()} == {100, 101}
    assert_healed(small)


def test_a_segment_of_garbage_alone_is_moved_aside(small):
    small.segments[1].path.write_bytes(b"\x00" * 5_000)
    done = repair(small.path, NOW)
    assert {event.pid for event in Tape(small.path).events()} == {100}
    assert done.lost >= 1
    assert_healed(small)


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"run": "another", "events": 3}'])
def test_a_damaged_manifest_is_made_anew(small, content):
    path = small.path / "manifest.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    done = repair(small.path, NOW)
    assert done.changed
    made = read_manifest(small.path)
    assert (made.run, made.status, made.events) == (small.id, "ok", 9)
    assert_healed(small)


def test_what_only_the_old_manifest_knew_is_kept(small, root):
    small.manifest(keep=True, tags={"team": "x"}, extra={"colour": "blue"}, exit_code=0)
    root.path.write_bytes(b"".join(root.lines)[:-20])
    repair(small.path, NOW)
    made = read_manifest(small.path)
    assert (made.keep, made.tags, made.extra) == (True, {"team": "x"}, {"colour": "blue"})


def test_a_killed_run_without_a_manifest_was_interrupted(run):
    root = run.segment()
    root.add("run.start", {"name": "x"})
    root.path.write_bytes(root.path.read_bytes()[:-1])
    with pytest.raises(UsageError, match="recorded on nowhere, so Playhead cannot tell"):
        repair(run.path, NOW)
    repair(run.path, NOW, force=True)
    assert read_manifest(run.path).status == "interrupted"
    assert_healed(run)


def test_an_altered_blob_is_moved_aside_and_a_lost_one_stays_lost(run):
    altered, missing = push(run.path, b"a" * 70_000), push(run.path, b"b" * 70_000)
    run.segment().add("x", [{"$blob": altered, "as": "text"}, {"$blob": missing, "as": "text"}])
    run.manifest()
    blob_path(run.path, altered).write_bytes(b"changed")
    blob_path(run.path, missing).unlink()
    done = repair(run.path, NOW)
    assert sorted(done.blobs_lost) == sorted([altered, missing])
    assert not blob_path(run.path, altered).exists()
    assert len(list(Tape(run.path).events())) == 2
    again = repair(run.path, NOW)
    assert not again.changed


def test_a_sealed_tape_with_a_damaged_frame_becomes_plain_segments(run):
    root = run.segment()
    for number in range(400):
        root.add("x", {"n": number, "text": f"{number} " * 2_000})
    root.end()
    run.manifest()
    seal(run.path)
    path = run.path / "tape.jsonl.zst"
    frames = json.loads((run.path / "tape.index.json").read_text())["frames"]
    assert len(frames) > 2
    changed = bytearray(path.read_bytes())
    changed[frames[1]["offset"] + 500] ^= 0xFF
    path.write_bytes(changed)
    done = repair(run.path, NOW)
    assert done.lost == frames[1]["rows"]
    assert not path.exists()
    assert gaps(run)[0]["lost"] == frames[1]["rows"]
    assert_healed(run)


def test_a_sealed_tape_whose_index_is_damaged_gets_a_new_one(small):
    seal(small.path)
    index = (small.path / "tape.index.json").read_bytes()
    (small.path / "tape.index.json").write_text("{")
    repair(small.path, NOW)
    assert (small.path / "tape.index.json").read_bytes() == index
    assert_healed(small)


def test_what_an_interrupted_sealing_left_is_moved_aside(small):
    (small.path / "tape.jsonl.zst").write_bytes(b"half")
    done = repair(small.path, NOW)
    assert "tape.jsonl.zst.damaged.20261115T112027" in [path.name for path in done.moved]
    assert len(kinds(small)) == 9
    assert_healed(small)


def test_a_link_in_place_of_a_segment_is_moved_aside(small):
    (small.path / "tape-7.jsonl").symlink_to("/dev/zero")
    repair(small.path, NOW)
    assert (small.path / "tape-7.jsonl.damaged.20261115T112027").is_symlink()
    assert_healed(small)


def test_a_running_run_is_not_repaired(run, running):
    root = run.segment(str(running["pid"]), **running)
    run.manifest(status="running", **running)
    with pytest.raises(UsageError, match="is still writing"):
        repair(run.path, force=True)
    root.end()
    with pytest.raises(UsageError, match="still in progress"):
        repair(run.path, force=True)


def test_new_files_are_for_their_owner_alone(small, root):
    root.path.write_bytes(b"".join(root.lines)[:-20])
    repair(small.path, NOW)
    assert root.path.stat().st_mode & 0o777 == 0o600
