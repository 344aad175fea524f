"""Amazon's binary event stream, in which Bedrock wraps the events of a streamed answer.

Knows the framing (length, headers, payload, checksums) and the base64 inside; not the
events themselves.
"""

from __future__ import annotations

import base64
import binascii
import struct
from dataclasses import dataclass

from playhead.llm.http.jsontext import parse
from playhead.llm.json_fields import mapping, string

_PRELUDE = struct.Struct(">III")
_CHECKSUM = 4
_LENGTH_OF = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_TEXT = 7
_BYTES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One frame: its headers of text type, and the JSON text that it carries."""

    headers: dict[str, str]
    text: str


def parse_eventstream(body: bytes) -> tuple[list[Message], bool]:
    """The whole frames of a body, and whether it ended at the end of one."""
    messages: list[Message] = []
    at = 0
    while at + _PRELUDE.size <= len(body):
        length, headers_length, _ = _PRELUDE.unpack_from(body, at)
        start = at + _PRELUDE.size
        end = at + length - _CHECKSUM
        if end > len(body) - _CHECKSUM or start + headers_length > end:
            break
        headers = _headers(body[start : start + headers_length])
        messages.append(Message(headers=headers, text=_text(body[start + headers_length : end])))
        at += length
    return messages, at == len(body)


def _headers(block: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    while at + 1 < len(block):
        name_end = at + 1 + block[at]
        kind = block[name_end] if name_end < len(block) else -1
        value = name_end + 1
        if kind in (_BYTES, _TEXT):
            size = int.from_bytes(block[value : value + 2], "big")
            value += 2
        elif kind in _LENGTH_OF:
            size = _LENGTH_OF[kind]
        else:
            break
        if kind == _TEXT:
            name = block[at + 1 : name_end].decode("utf-8", "replace")
            headers[name] = block[value : value + size].decode("utf-8", "replace")
        at = value + size
    return headers


def _text(payload: bytes) -> str:
    """Unwrap Bedrock's ``{"bytes": "<base64 of the event>"}``; other payloads are returned unchanged."""
    text = payload.decode("utf-8", "replace")
    wrapped = string(mapping(parse(text).value).get("bytes"))
    if wrapped is None:
        return text
    try:
        return base64.b64decode(wrapped).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return text
