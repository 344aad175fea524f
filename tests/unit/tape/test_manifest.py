"""There is a whole manifest at every moment, and an odd one costs no run."""

import contextlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import clock
from playhead.errors import PlayheadError, TapeDamaged, TapeTooNew
from playhead.tape.manifest import (
    Manifest,
    SegmentSummary,
    read_manifest,
    status_of,
    write_manifest,
)

WHOLE = Manifest(
    run="r",
    name="grüße",
    status="failed",
    tags={"a": "b"},
    error={"type": "E", "message": "no"},
    segments=[SegmentSummary(name="1", events=2, bytes=3, crc="00000004")],
    extra={"colour": ["blue"]},
)


def test_what_is_written_is_read(tmp_path):
    write_manifest(tmp_path, WHOLE)
    assert read_manifest(tmp_path) == WHOLE
    assert (tmp_path / "manifest.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_members_of_a_later_playhead_are_written_back(tmp_path):
    write_manifest(tmp_path, WHOLE)
    assert json.loads((tmp_path / "manifest.json").read_text())["colour"] == ["blue"]


def test_a_manifest_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    write_manifest(tmp_path, WHOLE)
    with Path("/dev/full").open("wb") as full:  # a real disk that is full: the write itself fails
        monkeypatch.setattr("playhead.host.private_files.os.open", lambda *_: os.dup(full.fileno()))
        monkeypatch.setattr("playhead.host.private_files.os.unlink", lambda _: None)
        with pytest.raises(OSError, match="No space left"):
            write_manifest(tmp_path, Manifest(run="r", name="x" * 100_000))
    monkeypatch.undo()
    assert read_manifest(tmp_path) == WHOLE


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b'{"run":7}', b"\xff", b"[" * 100_000])
def test_what_is_no_manifest_is_damage(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(TapeDamaged, match="playhead repair"):
        read_manifest(tmp_path)


def test_a_missing_one_is_damage_and_a_newer_one_is_refused(tmp_path):
    with pytest.raises(TapeDamaged, match="has no manifest"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"run":"r","format":99}')
    with pytest.raises(TapeTooNew):
        read_manifest(tmp_path)


def test_a_pipe_in_its_place_does_not_hold_us_up(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(TapeDamaged):
        read_manifest(tmp_path)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)
names = st.sampled_from([*Manifest.__dataclass_fields__, "other"])


@given(members=st.dictionaries(names, values))
def test_odd_values_cost_the_value_and_not_the_run(tmp_path_factory, members):
    run = tmp_path_factory.mktemp("run")
    (run / "manifest.json").write_text(json.dumps({**members, "run": "r", "format": 1}))
    manifest = read_manifest(run)
    assert manifest.run == "r"
    assert status_of(manifest) in ("running", "interrupted", members.get("status"))


@given(content=st.binary(max_size=200))
def test_any_bytes_are_a_manifest_or_our_own_error(tmp_path_factory, content):
    run = tmp_path_factory.mktemp("run")
    (run / "manifest.json").write_bytes(content)
    with contextlib.suppress(PlayheadError):
        read_manifest(run)


def test_running_holds_only_while_the_process_lives():
    here = {"run": "r", "host": clock.host(), "pid": clock.pid()}
    birth = clock.process_birth(clock.pid())
    assert status_of(Manifest(**here, birth=birth)) == "running"
    assert status_of(Manifest(**here, birth="another process")) == "interrupted"
    assert status_of(Manifest(**{**here, "pid": 2**22 + 5}, birth=birth)) == "interrupted"
    assert status_of(Manifest(**{**here, "host": "elsewhere"}, birth="x")) == "running"
    assert status_of(Manifest(**here, birth="another process", status="ok")) == "ok"
