"""A taped answer as a response of httpx or httpx2, by the short way. Knows the two libraries' requests,
responses and streams; not how the answer is found.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead.hooks.http import short_way
from playhead.recording import pacing

if TYPE_CHECKING:
    from playhead.replay.matching.whole import Whole


class Served:
    """Makes the responses of one library."""

    def __init__(self, module: ModuleType) -> None:
        self._name = module.__name__
        self._response = module.Response
        self._whole = module.ByteStream
        self._pieces = type("Served", (_Pieces, module.SyncByteStream), {})
        self._async_pieces = type("AsyncServed", (_AsyncPieces, module.AsyncByteStream), {})

    def answer(self, request: Any) -> Any:
        """The response to this request; None: go the long way."""
        whole = self._find(request)
        if whole is None:
            return None
        pacing.rest(whole.first_ns)
        return self._made(whole, self._pieces)

    async def answer_async(self, request: Any) -> Any:
        whole = self._find(request)
        if whole is None:
            return None
        await pacing.rest_async(whole.first_ns)
        return self._made(whole, self._async_pieces)

    def _find(self, request: Any) -> Whole | None:
        body = request.__dict__.get("_content")
        # Address as the library keeps it: to spell it takes as long as to answer.
        address = getattr(request.url, "_uri_reference", None)
        if body is None or type(address).__name__ != "ParseResult":
            return None
        headers = tuple(request.headers.raw)

        def spell() -> tuple[str, tuple[tuple[bytes, bytes], ...]]:
            return str(request.url), headers

        return short_way.find(self._name, request.method, (address, headers), spell, body)

    def _made(self, whole: Whole, stream: type) -> Any:
        head = whole.head
        version = head.get("http_version")
        extensions = {"http_version": version.encode("latin-1") if version else b"HTTP/1.1"}
        if reason := head.get("reason"):
            extensions["reason_phrase"] = reason.encode("latin-1")
        pieces = whole.pieces
        # In one piece it is what the library has a class for itself. That class knows no end to wait for,
        # so it is used where the order of the tape is not kept.
        is_plain = len(pieces) == 1 and type(whole.end_ns) is int
        body = self._whole(pieces[0][0]) if is_plain else stream(pieces, whole.end_ns)
        return self._response(
            head["status"],
            headers=[
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in head.get("headers") or ()
            ],
            stream=body,
            extensions=extensions,
        )


class _Pieces:
    """A body, given out as it came."""

    def __init__(self, pieces: list[tuple[bytes, int]], end_ns: int) -> None:
        self._pieces = pieces
        self._end_ns = end_ns

    def __iter__(self) -> Iterator[bytes]:
        before = self._pieces[0][1] if self._pieces else 0
        for piece, at in self._pieces:
            pacing.rest(at - before)
            before = at
            yield piece
        pacing.rest_to_end(self._end_ns)


class _AsyncPieces(_Pieces):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        before = self._pieces[0][1] if self._pieces else 0
        for piece, at in self._pieces:
            await pacing.rest_async(at - before)
            before = at
            yield piece
        await pacing.rest_to_end_async(self._end_ns)

    async def aclose(self) -> None:
        await pacing.close_async()
