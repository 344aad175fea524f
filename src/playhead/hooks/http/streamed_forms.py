"""Describe the content of forms and files that an HTTP client sends in pieces.

A replay compares a request before its body is sent. It cannot know the content of a generator by then. But it can read
files, and the form classes of httpx, aiohttp and requests-toolbelt, beforehand without disturbing the client. Knows
those classes by their attributes; does not know how bodies are sent.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from typing import Any

from playhead.encoding import form_fields
from playhead.recording.chunks import as_text

_AT_ONCE = 1024 * 1024

# Marks a body that is sent while it is being made: its pieces are recorded as `sent` chunks.
STREAMED = object()


class StreamedBody:
    """A body that is sent in pieces. `facts` describe its content in the call's request."""

    __slots__ = ("facts",)

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = {"streamed": True, **facts}


def shown_body(body: object) -> dict[str, Any] | None:
    """Return a body in the form that a call's request has: text, base64, or the description of a streamed body."""
    if body is None or body == b"":
        return None
    if type(body) is bytes:
        try:
            return {"text": body.decode()}
        except UnicodeDecodeError:
            return dict(as_text(body))
    if type(body) is StreamedBody:
        return body.facts
    return {"streamed": True} if body is STREAMED else dict(as_text(bytes(body)))  # type: ignore[call-overload]  # bytes by contract


class _UnknownError(Exception):
    """The content can be read only once."""


def described(body: Any) -> StreamedBody | None:
    """Return the description of a streamed body; None if its content is not known before it is sent."""
    try:
        fields = _fields(body)
        if fields is not None:
            return StreamedBody({"form": form_fields.form_of(fields)})
        if isinstance(body, (io.BufferedIOBase, io.RawIOBase)):
            # From the file's position on, because a client sends the rest of the file.
            size, digest = _hashed(body, body.tell())
            return StreamedBody({"size": size, "sha256": form_fields.spelled(digest)})
    except (_UnknownError, AttributeError, TypeError, ValueError, OSError):
        return None
    return None


def _fields(body: Any) -> Iterable[form_fields.Field] | None:
    kind = type(body)
    if kind.__name__ == "MultipartStream":  # httpx and httpx2
        return _of_httpx(body.fields)
    if kind.__name__ == "MultipartWriter":  # aiohttp
        return _of_aiohttp(body)
    if kind.__name__ == "MultipartEncoder":  # requests-toolbelt
        return _of_toolbelt(body)
    return None


def _of_httpx(fields: Iterable[Any]) -> Iterator[form_fields.Field]:
    for one in fields:
        if hasattr(one, "file"):
            kind = {name.lower(): value for name, value in one.headers.items()}.get("content-type")
            yield one.name, _file(one.filename, kind, one.file, 0)
        else:
            yield one.name, form_fields.data_value(one.render_data())


def _of_aiohttp(writer: Any) -> Iterator[form_fields.Field]:
    for part, encoding, transfer_encoding in writer:
        disposition = part.headers.get("Content-Disposition", "")
        name = form_fields.parameter(disposition, "name")
        if encoding or transfer_encoding or name is None:
            raise _UnknownError
        content = part._value
        if part.filename is None and isinstance(content, (bytes, str)):
            yield name, form_fields.data_value(_bytes(content))
        else:
            position = 0 if isinstance(content, (bytes, str)) else content.tell()
            yield name, _file(part.filename, part.headers.get("Content-Type"), content, position)


def _of_toolbelt(encoder: Any) -> Iterator[form_fields.Field]:
    fields = encoder.fields
    for name, value in fields.items() if hasattr(fields, "items") else fields:
        if isinstance(value, (tuple, list)):
            filename, content, *more = value
            kind = more[0] if more else None
            position = 0 if isinstance(content, (bytes, str)) else content.tell()
            yield name, _file(filename, kind, content, position)
        else:
            yield name, form_fields.data_value(_bytes(value))


def _file(filename: str | None, kind: str | None, content: Any, start: int) -> dict[str, Any]:
    if isinstance(content, (bytes, str)):
        return form_fields.file_value(filename, kind, _bytes(content))
    return form_fields.hashed_file(filename, kind, *_hashed(content, start))


def _hashed(file: Any, start: int) -> tuple[int, str]:
    """Return the size and SHA-256 of a file from `start` on. Keeps the file's position."""
    if not file.seekable():
        raise _UnknownError
    at = file.tell()
    digest, size = hashlib.sha256(), 0
    try:
        file.seek(start)
        while piece := file.read(_AT_ONCE):
            piece = _bytes(piece)
            digest.update(piece)
            size += len(piece)
    finally:
        file.seek(at)
    return size, digest.hexdigest()


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else bytes(content)
