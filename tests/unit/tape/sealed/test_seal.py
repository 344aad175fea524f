"""A sealed run holds the very lines of its segments; at no moment is anything lost."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.errors import StoreError, TapeDamaged, UsageError
from playhead.tape.care.verify import verify
from playhead.tape.format import close_line
from playhead.tape.reader import Tape
from playhead.tape.sealed import seal as sealing
from playhead.tape.sealed.seal import seal, unseal
from playhead.tape.sealed.seal_index import FILE
from playhead.tape.sealed.zstd import codec

PLAIN = ["tape-100.jsonl", "tape-101.jsonl"]
SEALED = ["tape.index.json", "tape.jsonl.zst"]


def files(run):
    return sorted(path.name for path in run.path.iterdir() if path.name.startswith("tape"))


def lines(run):
    return list(Tape(run.path).lines())


@pytest.fixture
def large(run):
    """Three processes side by side, several frames."""
    segments = [run.segment(name) for name in ("100", "101", "101-2")]
    for number in range(900):
        segments[number % 3].add("x", {"n": number, "text": f"{number} " * 800})
    for segment in segments:
        segment.end()
    run.manifest()
    return run


def test_sealing_keeps_every_line_and_its_order(large):
    before = lines(large)
    done = seal(large.path)
    assert files(large) == SEALED
    assert lines(large) == before
    assert (done.events, done.segments) == (906, 3)
    assert done.bytes == sum(len(line.raw) + 1 for line in before)
    assert done.compressed == (large.path / "tape.jsonl.zst").stat().st_size < done.bytes
    assert verify(large.path).ok


def test_the_index_says_where_everything_is(large):
    seal(large.path)
    index = json.loads((large.path / "tape.index.json").read_text())
    assert len(index["frames"]) > 1
    assert [one["row"] for one in index["frames"]][:1] == [0]
    assert sum(one["rows"] for one in index["frames"]) == index["events"] == 906
    assert sum(one["size"] for one in index["frames"]) == index["compressed"]
    assert {one["name"]: one["events"] for one in index["segments"]} == {
        "100": 302,
        "101": 302,
        "101-2": 302,
    }
    tape = Tape(large.path)
    assert tape.event("101-2:300").data["n"] == 3 * 299 + 2
    assert tape.event(301).kind == "segment.end"


def test_unsealing_brings_the_same_bytes_back(large):
    before = {segment.path: segment.path.read_bytes() for segment in large.segments}
    seal(large.path)
    made = unseal(large.path)
    assert sorted(made) == sorted(before)
    assert {path: path.read_bytes() for path in made} == before
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
    assert not any(name in files(large) for name in SEALED)
    assert verify(large.path).ok


def test_sealing_twice_and_unsealing_a_plain_run_do_nothing(small):
    first = seal(small.path)
    stamp = (small.path / "tape.jsonl.zst").stat().st_mtime_ns
    assert seal(small.path) == first
    assert (small.path / "tape.jsonl.zst").stat().st_mtime_ns == stamp
    unseal(small.path)
    assert unseal(small.path) == []


def test_sealed_files_are_for_their_owner_alone(small):
    seal(small.path)
    modes = {(small.path / name).stat().st_mode & 0o777 for name in SEALED}
    assert modes == {0o600}


def test_a_running_run_is_not_sealed(run, running):
    root = run.segment(str(running["pid"]), **running)
    run.manifest(status="ok")
    with pytest.raises(UsageError, match="is still writing"):
        seal(run.path)
    root.end()
    run.manifest(status="running", **running)
    with pytest.raises(UsageError, match="still in progress"):
        seal(run.path)
    run.manifest(status="ok")
    assert seal(run.path).events == 2


def test_a_damaged_tape_is_not_sealed(small):
    root = small.segments[0]
    root.path.write_bytes(b"".join(root.lines)[:-20])
    with pytest.raises(TapeDamaged, match=r"torn.*playhead repair 20261115-071105-k3f9` first"):
        seal(small.path)
    assert files(small) == PLAIN


def test_a_missing_blob_does_not_keep_a_run_from_being_sealed(run):
    root = run.segment()
    root.add("x", {"$blob": "a" * 64, "as": "text"})
    root.end()
    run.manifest()
    assert seal(run.path).events == 3


def test_a_run_without_events_cannot_be_sealed(run):
    run.manifest()
    with pytest.raises(UsageError, match="nothing to seal"):
        seal(run.path)


class Killed(BaseException):
    """Stands for the process being gone: nothing of ours runs after it."""


def killed(*_, **__):
    raise Killed


STEPS = [
    (sealing, "_prove"),
    (sealing.os, "replace"),
    (sealing, "write_index"),
    (sealing, "_sync_folder"),
    (Path, "unlink"),
]


@pytest.mark.parametrize(("owner", "step"), STEPS)
def test_sealing_interrupted_anywhere_loses_nothing(large, monkeypatch, owner, step):
    before = lines(large)
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, killed)
        with pytest.raises(Killed):
            seal(large.path)
    assert lines(large) == before
    assert seal(large.path).events == 906
    assert files(large) == SEALED
    assert lines(large) == before
    assert verify(large.path).ok


def test_removal_interrupted_half_way_loses_nothing(large):
    before = lines(large)
    kept = {segment.path: segment.path.read_bytes() for segment in large.segments}
    seal(large.path)
    for removed in kept:
        for path, content in kept.items():
            path.unlink(missing_ok=True)
            if path != removed:
                path.write_bytes(content)
        assert lines(large) == before
        tape = Tape(large.path)
        assert tape.event("101:7") == tape.event("101:7")
        assert verify(large.path).ok
    seal(large.path)
    assert files(large) == SEALED
    assert lines(large) == before


def test_unsealing_interrupted_loses_nothing(large, monkeypatch):
    before = lines(large)
    seal(large.path)
    finish = sealing.finish
    finished = []

    def stop_at_the_second(part):
        if finished:
            raise Killed
        finished.append(part)
        return finish(part)

    monkeypatch.setattr(sealing, "finish", stop_at_the_second)
    with pytest.raises(Killed):
        unseal(large.path)
    assert lines(large) == before
    monkeypatch.undo()
    unseal(large.path)
    assert lines(large) == before


def test_a_full_disk_leaves_the_plain_segments(large, monkeypatch):
    before = lines(large)

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sealing.os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        seal(large.path)
    monkeypatch.undo()
    assert not (large.path / "tape.jsonl.zst.part").exists()
    assert lines(large) == before


def test_what_was_compressed_wrongly_is_noticed_before_the_segments_go(large, monkeypatch):
    wrong = sealing.codec()
    compress = wrong.compress

    class Wrong:
        decompress = staticmethod(wrong.decompress)

        @staticmethod
        def compress(raw):
            return compress(raw.replace(b"17 17 17", b"17 18 17"))

    monkeypatch.setattr(sealing, "codec", Wrong)
    before = lines(large)
    with pytest.raises(TapeDamaged, match="differs from its segment"):
        seal(large.path)
    assert lines(large) == before
    assert "tape.jsonl.zst" not in files(large)


def test_a_run_resumed_after_it_was_sealed_is_one_tape_and_can_be_sealed_again(small):
    seal(small.path)
    again = small.segment("200", generation=1)
    again.add("more")
    again.end()
    small.manifest(exit_code=0)
    refs = [event.ref for event in Tape(small.path).events()]
    assert refs[-3:] == ["200:0", "200:1", "200:2"]
    assert len(refs) == 12
    assert verify(small.path).ok
    before = lines(small)
    assert seal(small.path).segments == 3
    assert files(small) == SEALED
    assert lines(small) == before
    assert Tape(small.path).event("101:1").kind == "output"


def test_a_sealed_tape_is_read_without_its_index(large):
    before = lines(large)
    seal(large.path)
    (large.path / "tape.index.json").unlink()
    tape = Tape(large.path)
    assert list(tape.lines()) == before
    assert tape.event("101-2:7").seq == 7
    assert [str(one) for one in tape.damage] == ["tape.index.json: it is missing"]


def test_an_index_that_lies_hides_nothing(large):
    seal(large.path)
    path = large.path / "tape.index.json"
    members = json.loads(path.read_text())
    members["segments"] = members["segments"][:1]
    path.write_text(json.dumps(members))
    assert len(lines(large)) == 906


def test_a_damaged_frame_costs_only_its_own_events(large):
    seal(large.path)
    frames = json.loads((large.path / "tape.index.json").read_text())["frames"]
    path = large.path / "tape.jsonl.zst"
    changed = bytearray(path.read_bytes())
    changed[frames[1]["offset"] + 700] ^= 0xFF
    path.write_bytes(changed)
    tape = Tape(large.path)
    assert len(list(tape.events())) == 906 - frames[1]["rows"]
    assert "frame is damaged" in tape.damage[0].why
    assert tape.event(0).kind == "segment.start"


def test_a_segment_name_from_a_sealed_line_is_no_path(run):
    body = b'{"seq":0,"kind":"segment.start","wall":1,"mono":1,"pid":1,"seg":"../../evil","data":{}'
    (run.path / FILE).write_bytes(codec().compress(close_line(body, 0)[0]))
    run.manifest()
    with pytest.raises(TapeDamaged):
        unseal(run.path)
    assert not (run.path.parent.parent / "evil").exists()


WITHOUT_ZSTD = """
import sys
sys.path.insert(0, {src!r})
sys.modules["zstandard"] = None
sys.modules["backports"] = None
sys.modules["compression"] = None
from pathlib import Path
from playhead.errors import TapeError
from playhead.tape.reader import Tape
tape = Tape(Path({run!r}))
print([segment.name for segment in tape.segments()])
try:
    list(tape.events())
except TapeError as error:
    print(error)
"""


def test_a_python_without_zstd_says_what_to_do(small):
    seal(small.path)
    src = Path(sealing.__file__).parents[3]
    program = WITHOUT_ZSTD.format(src=str(src), run=str(small.path))
    ended = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    said = ended.stdout.splitlines()
    assert said[0] == "['100', '101']"
    assert "`playhead unseal RUN`, or record with --no-seal" in said[1]
