"""Split a stream into messages of the PostgreSQL protocol, version 3, and convert them to JSON and back.

Pure. The tape has answers as JSON and not as bytes, for two reasons: people read tapes, and redaction may change the
length of a value, while the bytes of a message include that length.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from playhead.host.later import Later

if TYPE_CHECKING:
    import base64
    from typing import Any
else:
    base64 = Later("base64")

# A message: its type, one letter, and its content without the length.
Message = tuple[bytes, bytes]

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
_LONGEST_STARTUP = 65536
_WITH_FIELDS = (b"E", b"N")


class Cutter:
    """Splits a stream into messages. For the stream of a client, call `take_startup` first."""

    def __init__(self) -> None:
        self.rest = bytearray()

    def feed(self, data: bytes) -> None:
        self.rest += data

    def take(self) -> Message | None:
        """Remove and return the next complete message; None if there is none yet."""
        rest = self.rest
        if len(rest) < 5:
            return None
        size = int.from_bytes(rest[1:5], "big") + 1
        if len(rest) < size:
            return None
        message = bytes(rest[:1]), bytes(rest[5:size])
        del rest[:size]
        return message

    def take_startup(self) -> tuple[int, bytes] | None:
        """Return the code and content of the client's first message, which has no type; None if it is incomplete.
        Raise ValueError if this is not the PostgreSQL protocol.
        """
        rest = self.rest
        if len(rest) < 8:
            return None
        size = int.from_bytes(rest[:4], "big")
        if not 8 <= size <= _LONGEST_STARTUP:
            raise ValueError("this is not the PostgreSQL protocol")
        if len(rest) < size:
            return None
        code, content = int.from_bytes(rest[4:8], "big"), bytes(rest[8:size])
        del rest[:size]
        return code, content


def without_binding(message: Message) -> Message:
    """Remove the offer to bind the login to the TLS connection from a server's message. The relay owns that
    connection, and a client without TLS takes the offer for an attack.
    """
    kind, content = message
    if kind != b"R" or content[:4] != b"\0\0\0\x0a":
        return message
    names = [one for one in content[4:].split(b"\0") if one and not one.endswith(b"-PLUS")]
    return kind, content[:4] + b"".join(one + b"\0" for one in names) + b"\0"


def packed(message: Message) -> bytes:
    kind, content = message
    return kind + struct.pack("!I", len(content) + 4) + content


def startup(code: int, content: bytes = b"") -> bytes:
    return struct.pack("!II", len(content) + 8, code) + content


def parameters_of(content: bytes) -> dict[str, str]:
    """Return the parameters of a startup message: user, database and settings."""
    words = content.split(b"\0")
    pairs = zip(words[::2], words[1::2], strict=False)
    return {text(name): text(value) for name, value in pairs if name}


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def value_of(raw: bytes | None) -> Any:
    """Return bytes as text if they are valid UTF-8, else as base64."""
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}


def raw_of(value: Any) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(str(value.get("base64", "")))
    return None if value is None else str(value).encode()


def to_line(message: Message) -> bytes:
    """Serialise one message of a server as a line of JSON."""
    kind, content = message
    decoded: Any
    if kind == b"D":
        try:
            decoded = [value_of(one) for one in fields(content)]
        except struct.error:  # not as expected: recording fails open
            decoded = value_of(content)
    elif kind in _WITH_FIELDS:
        decoded = error_fields(content)
    else:
        decoded = value_of(content)
    return (
        json.dumps({text(kind): decoded}, ensure_ascii=False, separators=(",", ":")).encode()
        + b"\n"
    )


def from_line(line: bytes) -> Message:
    """Parse a line of JSON into a message. Raise ValueError if it is not one."""
    decoded = json.loads(line)
    if not isinstance(decoded, dict) or len(decoded) != 1:
        raise ValueError("a message has one type")
    ((name, value),) = decoded.items()
    kind = name.encode()
    if kind == b"D" and isinstance(value, list):
        parts = [struct.pack("!H", len(value))]
        for one in value:
            raw = raw_of(one)
            parts.append(b"\xff\xff\xff\xff" if raw is None else struct.pack("!I", len(raw)) + raw)
        return kind, b"".join(parts)
    if kind in _WITH_FIELDS and isinstance(value, dict):
        return kind, error_content(value)
    return kind, raw_of(value) or b""


def fields(content: bytes, at: int = 0) -> list[bytes | None]:
    """Parse the values of a row, or the parameters of a statement: a count, then a length and bytes for each."""
    (count,) = struct.unpack_from("!H", content, at)
    at += 2
    found: list[bytes | None] = []
    for _ in range(count):
        (size,) = struct.unpack_from("!i", content, at)
        at += 4
        if size < 0:
            found.append(None)
        else:
            found.append(content[at : at + size])
            at += size
    return found


def error_fields(content: bytes) -> dict[str, str]:
    """Return the fields of an error or a notice by their letters: S severity, C SQLSTATE, M message."""
    parts = [one for one in content.split(b"\0") if one]
    return {text(one[:1]): text(one[1:]) for one in parts}


def error_content(members: dict[str, Any]) -> bytes:
    return b"".join(f"{name}{value}".encode() + b"\0" for name, value in members.items()) + b"\0"
