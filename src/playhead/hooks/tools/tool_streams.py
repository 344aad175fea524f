"""Record the items that a generator tool yields, and yield them again in a replay.

An item is a line of JSON in the stream `yielded`. Knows generators, sync and async, with `send`, `throw` and `close`;
does not know the decorator.
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
from playhead.hooks.tools.tool_calls import is_claimed
from playhead.recording import deck, tool_facts
from playhead.recording.adapter import Adapter
from playhead.recording.crossing import END
from playhead.recording.deck import Call, Crossing, Piece

_STREAM = "yielded"


class DeclaredTool(Protocol):
    """The part of a declared tool that a stream needs."""

    name: str

    def types(self) -> Named: ...

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call: ...


class _GeneratorCall(Adapter):
    """One call of a generator tool. Nothing of it runs before its first item is requested."""

    __slots__ = ("_declared", "_make")
    streams = True

    def __init__(self, declared: DeclaredTool, make: Callable[[], Any]) -> None:
        self._declared = declared
        self._make = make

    def live(self, crossing: Crossing) -> Any:
        return self._make()

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return _observed(crossing, result)

    def serve(self, crossing: Crossing) -> Any:
        return _served(crossing, self._declared.types())


class _AsyncGeneratorCall(_GeneratorCall):
    __slots__ = ()

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return _ObservedItems(crossing, result)

    def serve(self, crossing: Crossing) -> Any:
        return _served_async(crossing, self._declared.types())


def wrap_generator(declared: DeclaredTool, function: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        make = partial(function, *args, **kwargs)
        open_deck = deck.declared()
        if open_deck is None or is_claimed(declared.name, declared):
            return (yield from make())
        adapter = _GeneratorCall(declared, make)
        return (yield from open_deck.perform(declared.call(args, kwargs), adapter))

    return recorded


def wrap_async_generator(
    declared: DeclaredTool, function: Callable[..., Any]
) -> Callable[..., Any]:
    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        make = partial(function, *args, **kwargs)
        open_deck = deck.declared()
        if open_deck is None or is_claimed(declared.name, declared):
            items = make()
        else:
            # Not `perform_async`: making an async generator awaits nothing, only its items do.
            adapter = _AsyncGeneratorCall(declared, make)
            items = open_deck.perform(declared.call(args, kwargs), adapter)
        # `yield from` for an async generator, which the language does not have.
        pending: Awaitable[Any] = items.asend(None)
        while True:
            try:
                item = await pending
            except StopAsyncIteration:
                return
            try:
                pending = items.asend((yield item))
            except GeneratorExit:
                await items.aclose()
                raise
            except BaseException as error:  # noqa: BLE001  thrown in: the tool's to handle
                pending = items.athrow(error)

    return recorded


def _observed(crossing: Crossing, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Do `yield from inner`, and report each item to the crossing.

    The crossing is entered only while the tool runs, and not while its consumer works between two items: the consumer
    shares our context.
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


class _ObservedItems:
    """An async generator that reports its items to the crossing."""

    __slots__ = ("_crossing", "_inner")

    def __init__(self, crossing: Crossing, inner: AsyncGenerator[Any, Any]) -> None:
        self._crossing = crossing
        self._inner = inner

    def asend(self, value: Any) -> Awaitable[Any]:
        return self._step(self._inner.asend(value))

    def athrow(self, error: BaseException) -> Awaitable[Any]:
        return self._step(self._inner.athrow(error))

    async def aclose(self) -> None:
        try:
            with self._crossing:
                await self._inner.aclose()
        finally:
            self._crossing.left()

    async def _step(self, pending: Awaitable[Any]) -> Any:
        crossing = self._crossing
        try:
            with crossing:
                item = await pending
        except StopAsyncIteration:
            crossing.returned()
            raise
        except BaseException as error:
            crossing.failed(error)
            raise
        crossing.chunk(_line(item), _STREAM)
        return item


def _line(item: Any) -> bytes:
    return encode_std(freeze(item)) + b"\n"


def _served(crossing: Crossing, named: Named) -> Generator[Any, Any, Any]:
    for point, piece in _taped_pieces(crossing):
        crossing.reach(point)
        if piece.stream != _STREAM:
            tool_facts.write(crossing, piece)
            continue
        item = _item(crossing, piece, named)
        try:
            yield item
        except GeneratorExit:
            crossing.left()
            raise
    crossing.reach(END)
    return _taped_end(crossing, named)


async def _served_async(crossing: Crossing, named: Named) -> AsyncGenerator[Any, Any]:
    for point, piece in _taped_pieces(crossing):
        await crossing.reach_async(point)
        if piece.stream != _STREAM:
            tool_facts.write(crossing, piece)
            continue
        item = _item(crossing, piece, named)
        try:
            yield item
        except GeneratorExit:
            crossing.left()
            raise
    await crossing.reach_async(END)
    _taped_end(crossing, named)


def _taped_pieces(crossing: Crossing) -> Iterator[tuple[int, Piece]]:
    taped = crossing.taped
    for point, piece in enumerate(taped.pieces if taped is not None else ()):
        if piece.stream == _STREAM or piece.stream in tool_facts.STREAMS:
            yield point, piece


def _item(crossing: Crossing, piece: Piece, named: Named) -> Any:
    item = answers.value_of(decode_std(piece.data), named, what=crossing.call.name)
    crossing.chunk(piece.data, _STREAM)
    return item


def _taped_end(crossing: Crossing, named: Named) -> Any:
    if crossing.taped is not None and crossing.taped.how == "left":
        name = crossing.call.name
        raise Divergence(
            f"On the tape the agent stopped reading from {name} here; now it requests more items "
            f"than the tape has. Let it run for real: `--live {name}`."
        )
    return answers.serve(crossing, named)
