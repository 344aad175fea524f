"""Encode and parse WebSocket frames (RFC 6455), for answers from a tape. Does not know any library.

Implements only the parts that the peer of a well-behaved client needs: no extensions, no fragments when sending.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import NamedTuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Frame(NamedTuple):
    """A message, or a control frame."""

    opcode: int
    payload: bytes


def accept_key(key: str) -> str:
    """Return a server's answer to a client's `Sec-WebSocket-Key`."""
    digest = hashlib.sha1(key.encode("latin-1") + _GUID, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def encode(opcode: int, payload: bytes) -> bytes:
    """Encode one whole frame, unmasked, as servers send them."""
    length = len(payload)
    if length < 126:
        head = struct.pack("!BB", 0x80 | opcode, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 126, length)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 127, length)
    return head + payload


def encode_close(code: int | None, reason: str = "") -> bytes:
    if code is None or code in {1005, 1006, 1015}:  # these codes mean that no code was sent
        return encode(CLOSE, b"")
    return encode(CLOSE, struct.pack("!H", code) + reason.encode()[:123])


def decode_close(payload: bytes) -> tuple[int, str]:
    """Return the code and the reason of a close frame; 1005 means that it has no code."""
    if len(payload) < 2:
        return 1005, ""
    return int.from_bytes(payload[:2], "big"), payload[2:].decode("utf-8", "replace")


class FrameReader:
    """Parses frames from bytes that may be split anywhere. Fragments are joined into one message."""

    def __init__(self) -> None:
        self._held = b""
        self._message: list[bytes] = []
        self._opcode = TEXT

    def read(self, data: bytes) -> list[Frame]:
        self._held += data
        frames: list[Frame] = []
        while (size := _size(self._held)) is not None and len(self._held) >= size:
            raw, self._held = self._held[:size], self._held[size:]
            frame = self._take(raw)
            if frame is not None:
                frames.append(frame)
        return frames

    def _take(self, raw: bytes) -> Frame | None:
        opcode, payload = raw[0] & 0x0F, _payload(raw)
        if opcode >= CLOSE:
            return Frame(opcode, payload)
        if opcode != CONTINUATION:
            self._opcode, self._message = opcode, []
        self._message.append(payload)
        if not raw[0] & 0x80:
            return None
        return Frame(self._opcode, b"".join(self._message))


def _head(held: bytes) -> tuple[int, int] | None:
    """Return the size of a frame's head and of its payload; None if the head is incomplete."""
    if len(held) < 2:
        return None
    length, at = held[1] & 0x7F, 2
    if length >= 126:
        at = 4 if length == 126 else 10
        if len(held) < at:
            return None
        (length,) = struct.unpack("!H" if at == 4 else "!Q", held[2:at])
    return at + (4 if held[1] & 0x80 else 0), length


def _size(held: bytes) -> int | None:
    head = _head(held)
    return None if head is None else sum(head)


def _payload(raw: bytes) -> bytes:
    start, length = _head(raw) or (0, 0)
    payload = raw[start : start + length]
    if not raw[1] & 0x80:
        return payload
    # As one big number: a prompt is 100 KB, and a loop over its bytes takes 10 ms.
    key = (raw[start - 4 : start] * (length // 4 + 1))[:length]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")
    return masked.to_bytes(length, "big")
