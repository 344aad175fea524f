"""Frames, however the bytes are cut, masked or in fragments."""

import struct

import pytest

from playhead.hooks.websocket import websocket_frames as frames


def masked(opcode, payload, *, final=True, key=b"\x01\x02\x03\x04"):
    """A client's frame."""
    raw = frames.encode(opcode, payload)
    head = raw[: len(raw) - len(payload)]
    head = bytes([head[0] if final else head[0] & 0x7F, head[1] | 0x80]) + head[2:]
    return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))


@pytest.mark.parametrize("length", [0, 1, 125, 126, 65535, 65536])
def test_a_frame_is_read_as_it_was_written(length):
    payload = bytes(at % 251 for at in range(length))
    for raw in (frames.encode(frames.BINARY, payload), masked(frames.BINARY, payload)):
        assert frames.FrameReader().read(raw) == [(frames.BINARY, payload)]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_bytes_may_be_cut_anywhere(size):
    raw = (
        masked(frames.TEXT, b"hello") + masked(frames.PING, b"") + masked(frames.BINARY, b"x" * 300)
    )
    reader = frames.FrameReader()
    found = [frame for at in range(0, len(raw), size) for frame in reader.read(raw[at : at + size])]
    assert found == [(frames.TEXT, b"hello"), (frames.PING, b""), (frames.BINARY, b"x" * 300)]


def test_fragments_are_one_message_and_control_frames_may_come_between():
    raw = (
        masked(frames.TEXT, b"hel", final=False)
        + masked(frames.PING, b"p")
        + masked(frames.CONTINUATION, b"lo")
    )
    assert frames.FrameReader().read(raw) == [(frames.PING, b"p"), (frames.TEXT, b"hello")]


def test_a_close_has_a_code_and_a_reason_or_neither():
    (frame,) = frames.FrameReader().read(frames.encode_close(4001, "enough"))
    assert frames.decode_close(frame.payload) == (4001, "enough")
    assert frames.encode_close(1005) == frames.encode(frames.CLOSE, b"")
    assert frames.decode_close(b"") == (1005, "")
    assert frames.decode_close(struct.pack("!H", 1000)) == (1000, "")


def test_the_key_of_the_standard_is_accepted_as_the_standard_says():
    assert frames.accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
