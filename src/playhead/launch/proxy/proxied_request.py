"""A request as it arrives at the proxy and as it is forwarded, and whether it is side traffic.

Side traffic (probes, telemetry, update checks, titles) is not the agent's work. It is recorded and marked; a
replay answers it if it can, and never fails because of it. Knows HTTP/1.1 framing; does not know the deck.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from playhead.hooks.http.http1 import NotHttp
from playhead.llm.http_headers import undo
from playhead.recording.calls import SIDE

Pair = tuple[str, str]

LONGEST_HEAD = 256 * 1024
# Larger than any API accepts.
LARGEST_BODY = 512 * 1024 * 1024
_LONGEST_IDLE_S = 3600.0
_LONGEST_HEAD_S = 60.0
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET = re.compile(r"[!-~\x80-\xff]+")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
# Hop-by-hop headers, and headers that would make the answer unreadable on the tape: compressed frames of a WebSocket.
_NOT_PASSED_ON = frozenset(
    {
        *("connection", "expect", "keep-alive", "proxy-authorization", "proxy-connection", "te"),
        *("trailer", "transfer-encoding", "sec-websocket-extensions", "content-length", "host"),
    }
)
# The encodings that every reader of a tape can decode.
_READABLE = ("gzip", "deflate", "identity")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedRequest:
    """One request: its head and its whole body, because the whole body is matched."""

    method: str
    target: str
    version: str
    headers: tuple[Pair, ...]
    body: bytes = b""

    def value(self, name: str) -> str | None:
        """Return all values of a header, joined. None: the header is missing."""
        values = [value for key, value in self.headers if key.lower() == name]
        return ", ".join(values) if values else None

    def plain(self) -> ProxiedRequest:
        """Return the request with its body decompressed, if possible: equal bodies may be compressed to different
        bytes.
        """
        encoding = self.value("content-encoding")
        if encoding is None:
            return self
        undone = undo(encoding, self.body)
        if undone.reason is not None:
            return self
        headers = tuple(pair for pair in self.headers if pair[0].lower() != "content-encoding")
        return replace(self, headers=headers, body=undone.body)

    @property
    def is_upgrade(self) -> bool:
        return (self.value("upgrade") or "").lower() == "websocket"

    @property
    def keeps_alive(self) -> bool:
        words = (self.value("connection") or "").lower()
        return "keep-alive" in words if self.version == "HTTP/1.0" else "close" not in words


async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ProxiedRequest | None:
    """Read the next request. None: the client has left. NotHttp: the bytes are not an HTTP request."""
    try:
        # Clients keep connections open between requests, but no client takes minutes to send one head.
        first = await asyncio.wait_for(reader.readexactly(1), _LONGEST_IDLE_S)
        rest = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _LONGEST_HEAD_S)
        raw = first + rest
    except asyncio.IncompleteReadError:
        return None
    except asyncio.TimeoutError:
        raise NotHttp("the request did not arrive in time") from None
    except asyncio.LimitOverrunError:
        raise NotHttp("the head of a request takes more than 256 KiB") from None
    asked = _head(raw)
    if (asked.value("expect") or "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _body(asked, reader)
    return None if body is None else replace(asked, body=body)


def _head(raw: bytes) -> ProxiedRequest:
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if (
        len(words) != 3
        or words[2] not in ("HTTP/1.0", "HTTP/1.1")
        or not _TOKEN.fullmatch(words[0])
        or not _TARGET.fullmatch(words[1])
    ):
        raise NotHttp(f"not the first line of a request: {first[:40]!r}")
    headers = tuple(_header(line) for line in lines if line)
    return ProxiedRequest(method=words[0], target=words[1], version=words[2], headers=headers)


def _header(line: str) -> Pair:
    """Parse strictly: if two servers read a head differently, a client can hide a second request in the first."""
    name, colon, value = line.partition(":")
    if not colon or not _TOKEN.fullmatch(name) or any(one in value for one in "\r\n\0"):
        raise NotHttp(f"not a header: {line[:40]!r}")
    return name, value.strip()


async def _body(asked: ProxiedRequest, reader: asyncio.StreamReader) -> bytes | None:
    try:
        coding, length = asked.value("transfer-encoding"), asked.value("content-length")
        if coding is not None:
            if coding.strip().lower() != "chunked" or length is not None:
                raise NotHttp("the headers give the length of this body in two ways")
            return await _chunked(reader)
        size = _length(length)
        return await reader.readexactly(size) if size else b""
    except asyncio.IncompleteReadError:
        return None
    except ValueError as error:
        raise NotHttp(str(error)) from None


def _length(said: str | None) -> int:
    if said is None:
        return 0
    lengths = {one.strip() for one in said.split(",")}
    only = lengths.pop()
    if lengths or not (only.isascii() and only.isdigit()):
        raise NotHttp(f"not a length: {said[:40]!r}")
    if len(only) > 12 or int(only) > LARGEST_BODY:
        raise NotHttp(f"the body is larger than {LARGEST_BODY:,} bytes")
    return int(only)


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    """Read line by line and chunk by chunk: the bytes after the end belong to the next request."""
    pieces: list[bytes] = []
    total = 0
    while size := _chunk_size(await reader.readuntil(b"\r\n")):
        total += size
        if total > LARGEST_BODY:
            raise NotHttp(f"the body is larger than {LARGEST_BODY:,} bytes")
        pieces.append(await reader.readexactly(size))
        if await reader.readexactly(2) != b"\r\n":
            raise NotHttp("a chunk does not end where it says")
    while (await reader.readuntil(b"\r\n")).strip():
        continue  # trailers
    return b"".join(pieces)


def _chunk_size(line: bytes) -> int:
    size = line.partition(b";")[0].strip()
    if not _SIZE.fullmatch(size) or line.count(b"\n") != 1:
        raise NotHttp(f"not the size of a chunk: {line[:40]!r}")
    return int(size, 16)


def passed_on(asked: ProxiedRequest, host: str, body: bytes) -> bytes:
    """The request as the server receives it: everything but the hop-by-hop headers."""
    headers = [("Host", host), *_kept(asked)]
    if asked.is_upgrade:
        headers.append(("Connection", "Upgrade"))
    elif body or asked.value("content-length") or asked.method in {"POST", "PUT", "PATCH"}:
        headers.append(("Content-Length", str(len(body))))
    lines = [f"{asked.method} {asked.target} HTTP/1.1", *(f"{name}: {v}" for name, v in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _kept(asked: ProxiedRequest) -> Iterable[Pair]:
    for name, value in asked.headers:
        lower = name.lower()
        if lower == "accept-encoding":
            yield name, _readable(value)
        elif lower in ("upgrade", "http2-settings") and not asked.is_upgrade:
            continue  # upgrade to HTTP/2, which the proxy does not speak
        elif lower not in _NOT_PASSED_ON:
            yield name, value


def _readable(encodings: str) -> str:
    words = [word.strip() for word in encodings.split(",")]
    kept = [word for word in words if word.partition(";")[0].strip().lower() in _READABLE]
    return ", ".join(kept) or "identity"


_PATHS = (
    ("probe", re.compile(r"/api/hello/?$|/healthz?/?$|/ping/?$")),
    (
        "telemetry",
        re.compile(
            r"/api/event_logging|/api/claude_code/(?:metrics|organizations)|/api/claude_cli_feedback"
            r"|/v1/(?:traces|metrics|logs)$|/otlp/|/v1/rgstr|/v1/initialize$|/envelope/$|/analytics"
            r"|/telemetry|/codex/analytics|:recordCodeAssistMetrics|/log\?"
        ),
    ),
    (
        "catalogue",
        re.compile(
            r"/models(?:\?client_version=.*)?$|/api/(?:oauth|claude_code|organizations)/"
            r"|/latest(?:\?|$)|/wham/|/api/codex/|/mcp-registry|/plugins"
        ),
    ),
)
# Requests to small models that name a session, or guess its topic, while the agent works.
_TITLE = re.compile(
    r"\b(?:titles?|naming|topic)\b.{0,300}\b(?:sessions?|conversations?|chats?|threads?|coding)\b"
    r"|\b(?:sessions?|conversations?|chats?|threads?)\b.{0,300}\b(?:titles?|topic)\b",
    re.IGNORECASE | re.DOTALL,
)
_LARGEST_TITLE = 32 * 1024


def side_facts(method: str, url: str, body: bytes) -> dict[str, Any]:
    """The facts that mark a call as side traffic; empty for the agent's own work."""
    kind = kind_of(method, url, body)
    return {} if kind is None else {SIDE: kind}


def kind_of(method: str, url: str, body: bytes) -> str | None:
    """`probe`, `telemetry`, `catalogue` or `title`; None: the agent's work."""
    if method == "HEAD":
        return "probe"
    path = url.partition("://")[2]
    path = path[path.find("/") :] if "/" in path else "/"
    for kind, pattern in _PATHS:
        if pattern.search(path) and (kind != "catalogue" or method == "GET"):
            return kind
    if method == "POST" and 0 < len(body) < _LARGEST_TITLE and _is_title(body):
        return "title"
    return None


def _is_title(body: bytes) -> bool:
    """Return whether this is a request without tools whose instructions are about naming a session."""
    try:
        asked = json.loads(body)
    except ValueError:
        return False
    if not isinstance(asked, dict) or asked.get("tools"):
        return False
    said = [asked.get(name) for name in ("system", "instructions", "systemInstruction")]
    turns = asked.get("messages") or asked.get("input") or []
    for turn in turns if isinstance(turns, list) else []:
        role = turn.get("role") if isinstance(turn, dict) else None
        if role == "assistant":
            return False
        if role in ("system", "developer"):
            said.append(turn)
    return _TITLE.search(json.dumps([one for one in said if one])) is not None
