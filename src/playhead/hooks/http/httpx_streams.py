"""Observe the bodies of httpx's requests and responses piece by piece, or serve them from the tape.

`httpx_client` combines these classes with the stream classes of httpx or httpx2. Knows streams; does not know
transports.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from playhead.hooks.http.exchange import Exchange
from playhead.recording.crossing import Crossing


class _Stream:
    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange


class ServedBody:
    """The body of a taped answer."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces


class AsyncServedBody:
    """The same, asynchronous."""

    def __init__(self, pieces: AsyncIterator[bytes], crossing: Crossing) -> None:
        self._pieces = pieces
        self._crossing = crossing

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        # `AsyncObservedBody` closes the crossing itself, but a silent answer is not wrapped in one.
        taped = self._crossing.taped
        if taped is not None and taped.quiet and taped.dies is None:
            await self._crossing.close_async()


class ObservedBody(_Stream):
    """The body of an answer, reported to the exchange piece by piece as the client takes it."""

    def __iter__(self) -> Iterator[bytes]:
        exchange = self._exchange
        try:
            for piece in self._stream:
                # Reported before the agent gets it: what the agent does with a piece comes after the piece on
                # the tape.
                exchange.chunk(piece)
                yield piece
        except BaseException as error:
            exchange.failed(error)
            raise
        exchange.returned()

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            # Closed before the end: the agent stopped reading, which is a separate outcome (`left`).
            if not self._exchange.ended:
                self._exchange.left()


class AsyncObservedBody(_Stream):
    """The same, asynchronous."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        try:
            async for piece in self._stream:
                exchange.chunk(piece)
                yield piece
        except BaseException as error:
            exchange.failed(error)
            raise
        exchange.returned()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._exchange.left()
            await self._exchange.crossing.close_async()


class UploadBody(_Stream):
    """A body that is made while it is sent, reported to the exchange as it goes out."""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._exchange.chunk(piece, "sent")
            yield piece

    def close(self) -> None:
        self._stream.close()


class AsyncUploadBody(_Stream):
    """The same, asynchronous."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._exchange.chunk(piece, "sent")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
