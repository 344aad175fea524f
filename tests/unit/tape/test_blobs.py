"""Payloads by their hash: stored once, never half, never under a wrong name."""

import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import TapeDamaged
from playhead.tape.blobs import blob_path, pull, push


@given(payload=st.binary(max_size=2_000))
def test_what_is_pushed_is_pulled(tmp_path_factory, payload):
    run = tmp_path_factory.mktemp("run")
    digest = push(run, payload)
    assert digest == hashlib.sha256(payload).hexdigest()
    assert pull(run, digest) == payload


def test_equal_payloads_share_one_file(tmp_path):
    assert push(tmp_path, b"same") == push(tmp_path, b"same")
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_a_blob_is_for_its_owner_alone(tmp_path):
    path = blob_path(tmp_path, push(tmp_path, b"x"))
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_is_left_of_a_blob_that_could_not_be_written(tmp_path, monkeypatch):
    def full(fd, payload):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("playhead.tape.blobs.os.write", full)
    with pytest.raises(OSError, match="No space"):
        push(tmp_path, b"x")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_missing_blob_is_said(tmp_path):
    with pytest.raises(TapeDamaged, match="is missing"):
        pull(tmp_path, "0" * 64)


def test_an_altered_blob_is_said(tmp_path):
    digest = push(tmp_path, b"x")
    blob_path(tmp_path, digest).write_bytes(b"y")
    with pytest.raises(TapeDamaged, match="altered"):
        pull(tmp_path, digest)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_no_path_hides_in_the_name_of_a_blob(tmp_path, digest):
    with pytest.raises(TapeDamaged, match="expected 64 hexadecimal digits"):
        pull(tmp_path, digest)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_no_blob(tmp_path, make):
    path = blob_path(tmp_path, "0" * 64)
    path.parent.mkdir(parents=True)
    make(path)
    with pytest.raises(TapeDamaged):
        pull(tmp_path, "0" * 64)
