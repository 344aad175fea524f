"""Format 1 of the tape: one event to one line and back, and the chain of checksums.

The spec for readers in other languages is `docs/tape-format.md`.

A line is a JSON object whose last member is `"crc":"xxxxxxxx"`: CRC-32 of the bytes before that
member, started with the CRC of the line before (0 for the first of a segment). So an edited,
missing, doubled or moved line is noticed at its place. CRC and not SHA: the chain is there for
accidents and for edits by hand, costs a tenth, and an unkeyed SHA could be forged as well; a sealed
tape carries a SHA-256 on top.
"""

from __future__ import annotations

import json
from typing import Any, Callable
from zlib import crc32

from playhead.events import Event

# When this changes: a step in `migrate.STEPS`, a golden tape in tests/tapes/, docs/tape-format.md,
# CHANGELOG.md.
FORMAT_VERSION = 1

# Payloads above 64 KiB live in blobs, so no line of ours comes near this; a longer one is damage,
# and is skipped without being held in memory.
LONGEST_LINE = 16 * 1024 * 1024

SEGMENT_PREFIX = "tape-"
SEGMENT_SUFFIX = ".jsonl"

_CRC_MEMBER = b',"crc":"'
_CRC_LENGTH = len(_CRC_MEMBER) + 8 + len(b'"}')

Decode = Callable[[bytes], Event]


class NotAnEvent(ValueError):
    """These bytes are no line of a tape; the message says why."""


def close_line(body: bytes, previous: int) -> tuple[bytes, int]:
    """The whole line for `body` (an object without its closing brace), and its checksum."""
    crc = crc32(body, previous)
    return b'%b,"crc":"%08x"}\n' % (body, crc), crc


def open_line(line: bytes) -> tuple[bytes, int]:
    """The inverse: the body that the checksum covers, and the checksum that the line claims."""
    line = line.rstrip(b"\n")
    at = len(line) - _CRC_LENGTH
    if at < 0 or line[at : at + len(_CRC_MEMBER)] != _CRC_MEMBER or line[-2:] != b'"}':
        raise NotAnEvent("it does not end in a checksum")
    try:
        return line[:at], int(line[at + len(_CRC_MEMBER) : -2], 16)
    except ValueError:
        raise NotAnEvent("its checksum is not a number") from None


def decoder() -> Decode:
    """How to decode a line here: typed by msgspec where that can be had, by hand elsewhere."""
    try:
        import msgspec
    except ImportError:
        return decode_std
    typed = msgspec.json.Decoder(Event)

    def decode(line: bytes) -> Event:
        try:
            return typed.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise NotAnEvent(_reason(error)) from None

    return decode


_FIELDS: dict[str, tuple[type, ...]] = {
    "seq": (int,),
    "kind": (str,),
    "wall": (int,),
    "mono": (int,),
    "pid": (int,),
    "thread": (int,),
    "lane": (str,),
    "at": (str, type(None)),
    "who": (str, type(None)),
    "parent": (int, str, type(None)),
    "cause": (int, str, type(None)),
    "why": (str, type(None)),
    "user": (bool,),
    "seg": (str, type(None)),
}
_REQUIRED = ("seq", "kind", "wall", "mono", "pid")


def decode_std(line: bytes) -> Event:
    """The standard library's way: same events, half the speed."""
    try:
        members = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NotAnEvent(_reason(error)) from None
    return from_members(members)


def from_members(members: Any) -> Event:
    if not isinstance(members, dict):
        raise NotAnEvent("it is no JSON object")
    known: dict[str, Any] = {}
    for name, kinds in _FIELDS.items():
        if name in members:
            # type(), not isinstance(): True is an int to Python and a mistake here.
            if type(members[name]) not in kinds:
                raise NotAnEvent(f"its {name} is {type(members[name]).__name__}")
            known[name] = members[name]
        elif name in _REQUIRED:
            raise NotAnEvent(f"it has no {name}")
    return Event(data=members.get("data"), **known)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return f"it is no event: {error}"[:200]


def segment_name(path_name: str) -> str | None:
    """`tape-1234.jsonl` → `1234`; None: not a segment."""
    if path_name.startswith(SEGMENT_PREFIX) and path_name.endswith(SEGMENT_SUFFIX):
        return path_name[len(SEGMENT_PREFIX) : -len(SEGMENT_SUFFIX)]
    return None


