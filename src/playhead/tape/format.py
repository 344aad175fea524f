"""Format 2 of the tape: one event to one line and back, and the chain of checksums. Older formats are migrated.

The spec for readers in other languages is `docs/tape-format.md`.

A line is a JSON object whose last member is `"crc":"xxxxxxxx"`: CRC-32 of the bytes before that member, started
with the CRC of the previous line (0 for the first line of a segment). So an edited, missing, doubled or moved
line is detected at its place. CRC and not SHA, because the chain detects accidents and edits by hand, costs a
tenth, and an unkeyed SHA could be forged as well; a sealed tape carries a SHA-256 in addition.

A migration step takes the members of a line as version N wrote them and returns them as version N + 1 would have.
Checksums belong to the bytes on disk, which stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

from playhead import events
from playhead.errors import TapeDamaged, TapeError
from playhead.events import SEGMENT_START
from playhead.tape.layout import FORMAT_VERSION as FORMAT_VERSION  # noqa: PLC0414  handed on
from playhead.tape.layout import INDEX_FILE as INDEX_FILE  # noqa: PLC0414  handed on
from playhead.tape.layout import SEALED_FILE as SEALED_FILE  # noqa: PLC0414  handed on
from playhead.tape.layout import SEGMENT_PREFIX as SEGMENT_PREFIX  # noqa: PLC0414  handed on
from playhead.tape.layout import SEGMENT_SUFFIX as SEGMENT_SUFFIX  # noqa: PLC0414  handed on

if TYPE_CHECKING:
    from playhead.event import Event


# Payloads above 64 KiB are in blobs, so the lines that Playhead writes are far shorter. A longer line is damage, and is
# skipped without being held in memory.
LONGEST_LINE = 16 * 1024 * 1024

_SEGMENT = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")

_CRC_MEMBER = b',"crc":"'
_CRC_LENGTH = len(_CRC_MEMBER) + 8 + len(b'"}')

Decode = Callable[[bytes], "Event"]


class NotAnEvent(ValueError):
    """The bytes are not a line of a tape; the message has the reason."""


def close_line(body: bytes, previous: int) -> tuple[bytes, int]:
    """Return the whole line for `body` (an object without its closing brace), and its checksum."""
    crc = crc32(body, previous)
    return b'%b,"crc":"%08x"}\n' % (body, crc), crc


def open_line(line: bytes) -> tuple[bytes, int]:
    """Return the body that the checksum covers, and the checksum in the line: the inverse of `close_line`."""
    line = line.rstrip(b"\n")
    at = len(line) - _CRC_LENGTH
    if at < 0 or line[at : at + len(_CRC_MEMBER)] != _CRC_MEMBER or line[-2:] != b'"}':
        raise NotAnEvent("it does not end in a checksum")
    try:
        return line[:at], int(line[at + len(_CRC_MEMBER) : -2], 16)
    except ValueError:
        raise NotAnEvent("its checksum is not a number") from None


def decoder(*, few: bool = False) -> Decode:
    """Return a function that decodes a line: with msgspec if it is installed, otherwise with `json`.

    `few`: for a few lines, which `json` decodes faster than msgspec can be imported (10 ms and more).
    """
    if few and "msgspec" not in sys.modules:
        return decode_std
    try:
        import msgspec
    except ImportError:
        return decode_std
    typed = msgspec.json.Decoder(events.Event)

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
    """Decode with the standard library: the same events at half the speed."""
    return from_members(members_of(line))


def members_of(line: bytes) -> Any:
    """Return the members of a line, before it becomes an event. As strict as msgspec: otherwise the same tape would be
    whole or damaged depending on the installed libraries.
    """
    try:
        text = line.decode()
        members = _scan(text)
        if "\\" in text and _SURROGATE.search(text):
            # Half a surrogate pair is legal to `json` and cannot be written again as UTF-8.
            json.dumps(members, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise NotAnEvent(_reason(error)) from None
    return members


def _finite(number: str) -> float:
    value = float(number)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{number[:20]} is out of range")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_SURROGATE = re.compile(r"\\u[dD]")
_scan = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant).decode


def from_members(members: Any) -> Event:
    if not isinstance(members, dict):
        raise NotAnEvent("it is not a JSON object")
    known: dict[str, Any] = {}
    for name, value in members.items():
        kinds = _FIELDS.get(name)
        if kinds is not None:
            # type(), not isinstance(): True is an int to Python and a mistake here.
            if type(value) not in kinds:
                raise NotAnEvent(f"its member `{name}` has the type {type(value).__name__}")
            known[name] = value
    for name in _REQUIRED:
        if name not in known:
            raise NotAnEvent(f"its member `{name}` is missing")
    return events.Event(data=members.get("data"), **known)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return f"it is not an event: {error}"[:200]


def newer_format(line: bytes) -> int | None:
    """Return the format in a segment's first line, if it is newer than ours.

    Every format keeps this much: the first line is an object with `kind`, `data.format` and, at its end, a CRC-32 of
    the bytes before it. If the checksum is wrong, the line is damaged and the number means nothing.
    """
    try:
        members = members_of(line)
    except NotAnEvent:
        return None
    if not isinstance(members, dict) or members.get("kind") != SEGMENT_START:
        return None
    data = members.get("data")
    version = data.get("format") if isinstance(data, dict) else None
    if type(version) is not int or version <= FORMAT_VERSION or members.get("user") is True:
        return None
    try:
        body, claimed = open_line(line)
    except NotAnEvent:
        return version
    return version if crc32(body) == claimed else None


def segment_name(path_name: str) -> str | None:
    """Return the segment of a file name: `tape-1234.jsonl` → `1234`; None: not a segment."""
    if path_name.startswith(SEGMENT_PREFIX) and path_name.endswith(SEGMENT_SUFFIX):
        return path_name[len(SEGMENT_PREFIX) : -len(SEGMENT_SUFFIX)]
    return None


def is_segment(name: str) -> bool:
    """Return whether this is a valid name of a segment."""
    return _SEGMENT.fullmatch(name) is not None


def segment_file(name: str) -> str:
    """Return the file name of a segment: `1234` → `tape-1234.jsonl`. The name may come from an untrusted tape, so its
    form is checked: it must not contain a path.
    """
    if not is_segment(name):
        raise TapeDamaged(f"A segment is named {name[:80]!r}; expected a process id.")
    return f"{SEGMENT_PREFIX}{name}{SEGMENT_SUFFIX}"


Step = Callable[[dict[str, Any]], dict[str, Any]]


def _from_1(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members unchanged: format 2 adds `order` events, and a tape of format 1 simply has none."""
    return members


# From version N to N + 1.
STEPS: dict[int, Step] = {1: _from_1}


def can_migrate(version: int, steps: Mapping[int, Step] = STEPS, to: int = FORMAT_VERSION) -> bool:
    return all(one in steps for one in range(version, to)) if version <= to else False


def migrate(
    members: dict[str, Any],
    version: int,
    steps: Mapping[int, Step] = STEPS,
    to: int = FORMAT_VERSION,
) -> dict[str, Any]:
    """Return the `members` of a line of that version in the current format."""
    for one in range(version, to):
        step = steps.get(one)
        if step is None:
            raise TapeError(
                f"This tape has format {version}, and Playhead cannot migrate format {one} to {one + 1}. "
                f"Formats 1 to {FORMAT_VERSION} can be read."
            )
        members = step(members)
    return members


def decoder_for(version: int, *, few: bool = False) -> Decode:
    """Return a function that decodes a line of that version; `few` as for `decoder`."""
    if version == FORMAT_VERSION:
        return decoder(few=few)

    def decode_older(line: bytes) -> Any:
        members = members_of(line)
        if not isinstance(members, dict):
            raise NotAnEvent("it is not a JSON object")
        try:
            return from_members(migrate(members, version))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, NotAnEvent):
                raise
            raise NotAnEvent(f"it is not an event of format {version}: {error}"[:200]) from None

    return decode_older


def segment_in(line: bytes) -> str:
    """Return the segment that a line belongs to, whatever its version: `pid` and `seg` never change their meaning."""
    members = members_of(line)
    if not isinstance(members, dict):
        raise NotAnEvent("it is not a JSON object")
    return str(members.get("seg") or members.get("pid"))
