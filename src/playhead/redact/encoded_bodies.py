"""Redact bodies that were compressed for the wire (`Content-Encoding`). Knows encodings; not HTTP clients.

A secret in a compressed body cannot be seen in its bytes, so the body is decoded and searched. Without a secret the
tape keeps the bytes as they came. With one, it keeps the redacted text, compressed again in the same encoding: a
replay then gives the client a body that it can decode.
"""

from __future__ import annotations

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import gzip
    import importlib
    import zlib
    from collections.abc import Callable
    from typing import Any, Protocol

    from playhead.redact.redactor import Redactor
    from playhead.redact.streams import Piece

    # Decodes a body: `llm.http_headers.undo`, which this layer cannot import.
    Undo = Callable[[str, bytes], "Decoded"]

    class Decoded(Protocol):
        """A decoded body."""

        @property
        def body(self) -> bytes: ...

else:
    gzip = Later("gzip")
    importlib = Later("importlib")
    zlib = Later("zlib")

# A larger body is not held in the agent's memory. Such a body is a download, and is recorded unchanged.
_MOST_HELD = 64 * 1024 * 1024


def encoding_of(head: Any) -> str | None:
    """Return the content encoding in the head of a response; None: the body is plain."""
    headers = head.get("headers") if type(head) is dict else None
    for pair in headers if type(headers) is list else ():
        name, value = pair
        # By length first: this looks at every header of every response.
        if len(name) == 16 and name.lower() == "content-encoding" and value.lower() != "identity":
            return str(value)
    return None


class EncodedBodyCleaner:
    """One compressed body. `feed` has the contract of `StreamCleaner.feed`, but returns nothing before the end:
    whether a part holds a secret is known only when the whole is decoded.
    """

    def __init__(self, redactor: Redactor, encoding: str, undo: Undo) -> None:
        self._redactor = redactor
        self._undo = undo
        self._encoding = encoding
        self._held: list[Piece] | None = []
        self._size = 0

    def feed(self, pieces: list[Piece], *, last: bool = False) -> list[Piece]:
        if self._held is None:
            return pieces
        self._held += pieces
        self._size += sum([len(piece) for piece, _ in pieces])
        if not last and self._size <= _MOST_HELD:
            return []
        held, self._held = self._held, None
        return cleaned_pieces(self._redactor, self._encoding, held, self._undo)


def cleaned_pieces(
    redactor: Redactor, encoding: str, pieces: list[Piece], undo: Undo
) -> list[Piece]:
    """Return the same pieces if they contain no secret; else as many pieces of the redacted body."""
    raw = b"".join([piece for piece, _ in pieces])
    clean = cleaned_body(redactor, encoding, raw, undo)
    if clean is raw:
        return pieces
    # The same number of pieces at the same times: the client in a replay makes as many reads as in the recorded run.
    return list(zip(_cut(clean, len(pieces)), [when for _, when in pieces], strict=False))


def in_encoding(encoding: str, plain: bytes, count: int) -> list[bytes]:
    """Return a plain body in an encoding, in at most `count` pieces."""
    for name in encoding.lower().split(","):
        plain = _encoded(name.strip(), plain)
    return _cut(plain, count)


def _cut(raw: bytes, count: int) -> list[bytes]:
    size = -(-len(raw) // count) or 1
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def cleaned_body(redactor: Redactor, encoding: str, raw: bytes, undo: Undo) -> bytes:
    """Return `raw` itself if it holds no secret, or cannot be decoded here; else the redacted body in the same
    encoding.
    """
    plain = undo(encoding, raw).body
    if not plain or not redactor.suspects(plain):
        return raw
    clean = redactor.clean_bytes(plain)
    if clean == plain:
        return raw
    if plain == raw:
        return clean  # the client had decoded it already
    for name in encoding.lower().split(","):
        clean = _encoded(name.strip(), clean)
    return clean


def _encoded(name: str, plain: bytes) -> bytes:
    """Compress a body, without a date, so that equal bodies stay equal."""
    if name in ("gzip", "x-gzip"):
        return gzip.compress(plain, mtime=0)
    if name == "deflate":
        return zlib.compress(plain)
    # Decoding has worked, so one of these libraries is here.
    for library in ("brotli", "brotlicffi") if name == "br" else _ZSTD if name == "zstd" else ():
        try:
            module: Any = importlib.import_module(library)
        except ImportError:
            continue
        compress = getattr(module, "compress", None) or module.ZstdCompressor().compress
        return bytes(compress(plain))
    return plain


_ZSTD = ("compression.zstd", "backports.zstd", "zstandard")
