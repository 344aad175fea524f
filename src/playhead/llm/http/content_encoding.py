"""Decode content encodings, also of bodies that are cut off. Does not know any API.

brotli and zstd are not in the standard library of every supported Python: they are decoded if the agent's
environment has the libraries, else the result says so.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from playhead.llm.http.sse import looks_like_sse

# LLM answers are far smaller; a decompression bomb of a few kilobytes is far larger.
MOST_BYTES = 256 * 1024 * 1024
# Little at a time: a broken end costs only itself, and a bomb is seen before it goes off.
_PIECE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A decoded body. ``reason`` says why it is incomplete."""

    body: bytes
    reason: str | None = None


class _Undecodable(Exception):
    """The body cannot be decoded here; the text says why."""


def undo(encodings: str | None, body: bytes) -> Plain:
    """The body as it was before ``Content-Encoding`` (``gzip``, ``br, gzip``…) was applied."""
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
            return Plain(body=b"", reason=f"content encoding {name}: {error}")
    return Plain(body=body)


def _is_plain(body: bytes) -> bool:
    """Whether the body is decoded already: many HTTP clients keep the header after decoding."""
    return body[:1] in (b"{", b"[", b"") or looks_like_sse(body)


def _gunzip(body: bytes) -> bytes:
    return _inflate(body, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes) -> bytes:
    try:
        return _inflate(body, zlib.MAX_WBITS)
    except _Undecodable:
        # Half of the world's servers mean the raw stream, without the zlib header.
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
    stream = module.ZstdDecompressor()
    if hasattr(stream, "decompressobj"):
        stream = stream.decompressobj()
    return _by_pieces(stream.decompress, body)


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
    raise _Undecodable(f"cannot be undone here (none of {', '.join(names)} is installed)")


_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
