"""Frames are found without decompressing, and none is opened that claims too much."""

import io
import sys

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.sealed.zstd import MOST, FrameDamaged, ZstdFrame, codec, walk


def found(content):
    return list(walk(io.BytesIO(content)))


@given(st.lists(st.binary(max_size=300) | st.integers(1, 400_000).map(bytes), max_size=4))
def test_every_frame_is_found_with_its_sizes(contents):
    frames = [codec().compress(content) for content in contents]
    at = 0
    for frame, compressed, content in zip(found(b"".join(frames)), frames, contents, strict=True):
        assert frame == ZstdFrame(offset=at, size=len(compressed), bytes=len(content))
        assert codec().decompress(compressed, len(content)) == content
        at += len(compressed)


def test_garbage_between_frames_is_told_and_passed_over():
    frame = codec().compress(b"hello\n" * 100)
    one, bad, other = found(frame + b"garbage" + frame)
    assert isinstance(one, ZstdFrame)
    assert bad == (len(frame), "no frame begins here")
    assert other.offset == len(frame) + 7


def test_a_frame_cut_anywhere_is_told():
    frame = codec().compress(b"hello\n" * 1_000)
    for end in range(1, len(frame)):
        (told,) = found(frame[:end])
        assert isinstance(told, tuple), end


def test_a_frame_that_claims_too_much_is_refused_unopened():
    (told,) = found(zstandard.ZstdCompressor().compress(bytes(MOST + 1)))
    assert "says that it holds" in told[1]


def test_a_frame_of_unknown_size_is_refused():
    stream = zstandard.ZstdCompressor().compressobj()
    (told,) = found(stream.compress(b"x" * 500) + stream.flush())
    assert "has no content size" in told[1]


def test_a_changed_byte_is_noticed_when_the_frame_is_opened():
    frame = bytearray(codec().compress(b"hello world\n" * 50))
    for at in range(len(frame)):
        changed = bytearray(frame)
        changed[at] ^= 1
        try:
            assert codec().decompress(bytes(changed), 600) != b"hello world\n" * 50
        except FrameDamaged:
            continue


@pytest.mark.parametrize(
    "missing", [(), ("compression", "backports.zstd")], ids=["own", "zstandard"]
)
def test_every_library_for_zstd_does(monkeypatch, missing):
    frame = codec().compress(b"hello\n" * 100)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    other = codec()
    for one in (frame, other.compress(b"hello\n" * 100)):
        assert other.decompress(one, 600) == b"hello\n" * 100
        assert found(one) == [ZstdFrame(offset=0, size=len(one), bytes=600)]
    with pytest.raises(FrameDamaged):
        other.decompress(frame, 7)
    with pytest.raises(FrameDamaged):
        other.decompress(b"garbage", 7)
    with pytest.raises(FrameDamaged):
        other.decompress(frame[:-2], 600)
