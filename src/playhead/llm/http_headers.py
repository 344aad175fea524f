"""Read HTTP headers, and decode content encodings, also of bodies that are cut off. Does not know any API.

brotli and zstd are not in the standard library of every supported Python: they are decoded if the agent's
environment has the libraries, else the result names the missing library.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any

from playhead.llm.body_frames import looks_like_sse

Headers = Mapping[str, str] | Iterable[tuple[str, str]] | None

_HTTP_DATE = re.compile(r"(\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


def header(headers: Headers, name: str) -> str | None:
    """Return the first header of that name, in any case."""
    if headers is None:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    for key, value in pairs:
        if _as_text(key).lower() == name:
            return _as_text(value)
    return None


def content_type_of(headers: Headers) -> str:
    """Return the media type alone, in small letters; empty when unknown."""
    return (header(headers, "content-type") or "").partition(";")[0].strip().lower()


def retry_after_of(headers: Headers) -> float | None:
    """Return the seconds to wait before a retry; dates are compared with the server's clock."""
    milliseconds = _number(header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = header(headers, "retry-after")
    seconds = _number(asked)
    if seconds is not None or asked is None:
        return seconds
    until, sent = _date(asked), _date(header(headers, "date"))
    if until is None or sent is None:
        return None
    return max(0.0, (until - sent).total_seconds())


def _date(text: str | None) -> datetime | None:
    # Not email.utils: importing it takes a fifth of the import time of this package.
    found = _HTTP_DATE.search(text or "")
    month = _MONTHS.find(found[2]) // 3 + 1 if found else 0
    if not found or month < 1:
        return None
    day, year, hour, minute, second = (int(found[at]) for at in (1, 3, 4, 5, 6))
    try:
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - always GMT
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _as_text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


# Maximum size of a decoded body. LLM answers are far smaller; a decompression bomb of a few kilobytes is far larger.
MOST_BYTES = 100 * 1024 * 1024
# Decoded in small steps: a broken end loses only itself, and a bomb is detected before it fills the memory.
_PIECE = 64
# How much of a body is looked at to tell whether it is text.
_SAMPLE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A decoded body. ``reason`` says why it is incomplete."""

    body: bytes
    reason: str | None = None


class _Undecodable(Exception):
    """The body cannot be decoded here; the text says why."""


def undo(encodings: str | None, body: bytes) -> Plain:
    """Return the body as it was before ``Content-Encoding`` (``gzip``, ``br, gzip``…) was applied."""
    names = [name.strip().lower() for name in (encodings or "").split(",")]
    for name in reversed(names):
        if name in ("", "identity") or _is_plain(body):
            continue
        undo_one = _DECODERS.get(name)
        if undo_one is None:
            return Plain(body=b"", reason=f"unknown content encoding {name!r}")
        try:
            body = undo_one(body)
        except _Undecodable as error:
            if _begins_plain(body):  # decoded already, and not in UTF-8
                continue
            return Plain(body=b"", reason=f"content encoding {name}: {error}")
    return Plain(body=body)


def _is_plain(body: bytes) -> bool:
    """Return whether the body is decoded already: many HTTP clients keep the header after decoding.

    The first byte alone does not tell: brotli and deflate may begin with a bracket. Compressed data is not UTF-8.
    """
    if not _begins_plain(body):
        return False
    start = body[:_SAMPLE]
    try:
        start.decode()
    except UnicodeDecodeError as error:
        # The sample may end inside a character.
        return len(body) > _SAMPLE and error.start > _SAMPLE - 4
    return True


def _begins_plain(body: bytes) -> bool:
    return body[:1] in (b"{", b"[", b"") or looks_like_sse(body)


def _gunzip(body: bytes) -> bytes:
    return _inflate(body, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes) -> bytes:
    try:
        return _inflate(body, zlib.MAX_WBITS)
    except _Undecodable:
        # Many servers send the raw stream, without the zlib header.
        return _inflate(body, -zlib.MAX_WBITS)


def _inflate(body: bytes, window: int) -> bytes:
    out = bytearray()
    at = 0
    while True:
        stream = zlib.decompressobj(window)
        while at < len(body) and not stream.eof:
            piece = body[at : at + _PIECE]
            try:
                out += stream.decompress(piece)
            except zlib.error as error:
                if out:
                    return bytes(out)
                raise _Undecodable(str(error)) from error
            _check_size(out)
            at += len(piece) - len(stream.unused_data)
        # A gzip body may be several files end to end.
        if body[at : at + 2] != b"\x1f\x8b":
            return bytes(out)


def _brotli(body: bytes) -> bytes:
    module = _first_importable(("brotli", "brotlicffi"))
    stream = module.Decompressor()
    feed = getattr(stream, "process", None) or stream.decompress
    return _by_pieces(feed, body)


def _zstd(body: bytes) -> bytes:
    module = _first_importable(("compression.zstd", "backports.zstd", "zstandard"))
    out = bytearray()
    at = 0
    while at < len(body):  # a server that flushes may send several frames
        stream = module.ZstdDecompressor()
        if hasattr(stream, "decompressobj"):
            stream = stream.decompressobj()
        while at < len(body) and not stream.eof:
            piece = body[at : at + _PIECE]
            try:
                out += stream.decompress(piece)
            except Exception as error:  # each of these libraries raises a class of its own
                if out:
                    return bytes(out)
                raise _Undecodable(str(error)) from error
            _check_size(out)
            at += len(piece) - len(stream.unused_data)
    return bytes(out)


def _by_pieces(feed: Callable[[bytes], bytes], body: bytes) -> bytes:
    out = bytearray()
    for at in range(0, len(body), _PIECE):
        try:
            out += feed(body[at : at + _PIECE])
        except Exception as error:  # each of these libraries raises a class of its own
            if out:
                break
            raise _Undecodable(str(error)) from error
        _check_size(out)
    return bytes(out)


def _check_size(out: bytearray) -> None:
    if len(out) > MOST_BYTES:
        raise _Undecodable(f"more than {MOST_BYTES} bytes")


def _first_importable(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise _Undecodable(f"cannot be decoded here (none of {', '.join(names)} is installed)")


_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
