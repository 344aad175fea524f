"""Tools that yield: each item on the tape as it is yielded, and yielded again in a replay.

Knows generators, sync and async, with `send`, `throw` and `close`; not who decorates them. An item
is a line of JSON in the stream `yielded`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from functools import partial
from typing import Any, Protocol

from playhead.encoding.jsonbytes import decode_std, encode_std
from playhead.encoding.values import freeze
from playhead.errors import Divergence
from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.hooks.tools.tool_calls import ended_by, is_claimed
from playhead.recording import deck
from playhead.recording.deck import Crossing, Deck

_STREAM = "yielded"


class Opens(Protocol):
    """What a declared tool is to a stream."""

    name: str

    def types(self) -> Named: ...

    def open(self, open_deck: Deck, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Crossing: ...


def wrap_generator(declared: Opens, function: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        open_deck = deck.active()
        if open_deck is None or is_claimed(declared.name, declared):
            return (yield from function(*args, **kwargs))
        crossing = declared.open(open_deck, args, kwargs)
        if crossing.taped is None:
            return (yield from _teed(crossing, function(*args, **kwargs)))
        for item in _taped_items(crossing, declared.types()):
            try:
                yield item
            except GeneratorExit:
                crossing.left()
                raise
        return _taped_end(crossing, declared.types())

    return recorded


def wrap_async_generator(declared: Opens, function: Callable[..., Any]) -> Callable[..., Any]:
    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        open_deck = deck.active()
        crossing = None
        if open_deck is not None and not is_claimed(declared.name, declared):
            crossing = declared.open(open_deck, args, kwargs)
        if crossing is not None and crossing.taped is not None:
            for item in _taped_items(crossing, declared.types()):
                try:
                    yield item
                except GeneratorExit:
                    crossing.left()
                    raise
            _taped_end(crossing, declared.types())
            return
        inner = function(*args, **kwargs)
        pending: Awaitable[Any] = inner.__anext__()
        while True:
            try:
                item = await _step_async(crossing, pending)
            except StopAsyncIteration:
                return
            try:
                pending = inner.asend((yield item))
            except GeneratorExit:
                await _close_async(crossing, inner)
                raise
            except BaseException as error:  # noqa: BLE001  thrown in: the tool's to handle
                pending = inner.athrow(error)

    return recorded


def _teed(crossing: Crossing, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """`yield from inner`, telling the crossing what passes.

    It encloses what happens while the tool runs, and not what its consumer does between two items,
    who shares our context.
    """
    step: Callable[[], Any] = partial(next, inner)
    while True:
        try:
            with crossing:
                item = step()
        except StopIteration as stop:
            crossing.returned(stop.value)
            return stop.value
        except BaseException as error:
            crossing.raised(error)
            raise
        crossing.chunk(_line(item), _STREAM)
        try:
            step = partial(inner.send, (yield item))
        except GeneratorExit:
            try:
                with crossing:
                    inner.close()
            finally:
                crossing.left()
            raise
        except BaseException as error:  # noqa: BLE001  thrown in: the tool's to handle
            step = partial(inner.throw, error)


async def _step_async(crossing: Crossing | None, pending: Awaitable[Any]) -> Any:
    if crossing is None:
        return await pending
    try:
        with crossing:
            item = await pending
    except StopAsyncIteration:
        crossing.returned()
        raise
    except BaseException as error:
        ended_by(crossing, error)
        raise
    crossing.chunk(_line(item), _STREAM)
    return item


async def _close_async(crossing: Crossing | None, inner: AsyncGenerator[Any, Any]) -> None:
    if crossing is None:
        await inner.aclose()
        return
    try:
        with crossing:
            await inner.aclose()
    finally:
        crossing.left()


def _line(item: Any) -> bytes:
    return encode_std(freeze(item)) + b"\n"


def _taped_items(crossing: Crossing, named: Named) -> Iterator[Any]:
    taped = crossing.taped
    for piece in taped.pieces if taped is not None else ():
        if piece.stream == _STREAM:
            item = answers.value_of(decode_std(piece.data), named, what=crossing.call.name)
            crossing.chunk(piece.data, _STREAM)
            yield item


def _taped_end(crossing: Crossing, named: Named) -> Any:
    if crossing.taped is not None and crossing.taped.how == "left":
        name = crossing.call.name
        raise Divergence(
            f"On the tape the agent stopped listening to {name} here; now it asks for more, and "
            f"there is no more. Let it run for real: `--live {name}`."
        )
    return answers.serve(crossing, named)
