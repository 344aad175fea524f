"""Report the messages of a connection of the websockets library to its `Talk`.

Knows `send`, `recv` and `close` of both implementations, which share their names; does not know how a
connection is made (see `websockets_client`).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.http.exchange import Exchange
from playhead.hooks.websocket.conversation import Talk

_KEY = "_playhead"


def hook_messages(connection: type, patches: Patches, *, threads: bool) -> None:
    arounds = _SYNC if threads else _ASYNC
    need(connection, *arounds)
    for name, around in arounds.items():
        patches.replace(connection, name, around)


def follow(connection: Any, exchange: Exchange) -> None:
    """From here on, the messages of this connection belong to the exchange."""
    connection.__dict__[_KEY] = Talk(exchange)


def _around_recv(original: Callable[..., Any]) -> Callable[..., Any]:
    def recv(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            message = original(self, *args, **kwargs)
        except Exception:
            _look_whether_closed(self)
            raise
        return _hear(self, message)

    return recv


def _around_recv_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def recv(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            message = await original(self, *args, **kwargs)
        except Exception:
            _look_whether_closed(self)
            raise
        return _hear(self, message)

    return recv


def _around_recv_streaming(original: Callable[..., Iterator[Any]]) -> Callable[..., Any]:
    def recv_streaming(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        fragments: list[Any] = []
        for fragment in original(self, *args, **kwargs):
            fragments.append(fragment)
            yield fragment
        _hear(self, _joined(fragments))

    return recv_streaming


def _around_recv_streaming_async(original: Callable[..., AsyncIterator[Any]]) -> Callable[..., Any]:
    async def recv_streaming(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        fragments: list[Any] = []
        async for fragment in original(self, *args, **kwargs):
            fragments.append(fragment)
            yield fragment
        _hear(self, _joined(fragments))

    return recv_streaming


def _around_send(original: Callable[..., Any]) -> Callable[..., Any]:
    def send(self: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        talk: Talk | None = self.__dict__.get(_KEY)
        if talk is None:
            return original(self, message, *args, **kwargs)
        if isinstance(message, (str, bytes, bytearray, memoryview)):
            talk.sent(_as_sent(message, *args, **kwargs))
            return original(self, message, *args, **kwargs)
        fragments: list[Any] = []
        done = original(self, _kept(message, fragments), *args, **kwargs)
        if fragments:
            talk.sent(_as_sent(_joined(fragments), *args, **kwargs))
        return done

    return send


def _around_send_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def send(self: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        talk: Talk | None = self.__dict__.get(_KEY)
        if talk is None:
            return await original(self, message, *args, **kwargs)
        if isinstance(message, (str, bytes, bytearray, memoryview)):
            talk.sent(_as_sent(message, *args, **kwargs))
            return await original(self, message, *args, **kwargs)
        fragments: list[Any] = []
        done = await original(self, _kept(message, fragments), *args, **kwargs)
        if fragments:
            talk.sent(_as_sent(_joined(fragments), *args, **kwargs))
        return done

    return send


def _around_close(original: Callable[..., Any]) -> Callable[..., Any]:
    def close(self: Any, *args: Any, **kwargs: Any) -> Any:
        done = original(self, *args, **kwargs)
        _look_whether_closed(self)
        return done

    return close


def _around_close_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def close(self: Any, *args: Any, **kwargs: Any) -> None:
        await original(self, *args, **kwargs)
        _look_whether_closed(self)

    return close


_SYNC = {
    "recv": _around_recv,
    "recv_streaming": _around_recv_streaming,
    "send": _around_send,
    "close": _around_close,
}
_ASYNC = {
    "recv": _around_recv_async,
    "recv_streaming": _around_recv_streaming_async,
    "send": _around_send_async,
    "close": _around_close_async,
}


def _hear(connection: Any, message: Any) -> Any:
    talk: Talk | None = connection.__dict__.get(_KEY)
    if talk is not None and message is not None:
        talk.received(message)
    return message


def _look_whether_closed(connection: Any) -> None:
    """A call failed, or the agent closed: if the conversation is over, say who ended it."""
    talk: Talk | None = connection.__dict__.get(_KEY)
    protocol = connection.protocol
    if talk is None or protocol.state.name != "CLOSED":
        return
    told = protocol.close_rcvd
    if told is None:
        talk.exchange.cut(why="the connection was lost without a closing handshake")
        return
    by = "peer" if protocol.close_rcvd_then_sent else "agent"
    said = told if by == "peer" else protocol.close_sent or told
    talk.closed(int(said.code), str(said.reason), by)


def _as_sent(message: Any, *_: Any, text: bool | None = None) -> str | bytes:
    """The message with the kind that its frame has."""
    if isinstance(message, str):
        return message.encode() if text is False else message
    return bytes(message).decode() if text is True else bytes(message)


def _joined(fragments: list[Any]) -> Any:
    if not fragments:
        return None
    return "".join(fragments) if isinstance(fragments[0], str) else b"".join(map(bytes, fragments))


def _kept(message: Any, fragments: list[Any]) -> Any:
    """A message that is given in fragments, each kept as it is taken."""
    if isinstance(message, Mapping):
        return message  # refused by the library, with its own words
    if isinstance(message, AsyncIterable):
        return _kept_async(message, fragments)
    return _kept_sync(message, fragments) if isinstance(message, Iterable) else message


def _kept_sync(message: Iterable[Any], fragments: list[Any]) -> Iterator[Any]:
    for fragment in message:
        fragments.append(fragment)
        yield fragment


async def _kept_async(message: AsyncIterable[Any], fragments: list[Any]) -> AsyncIterator[Any]:
    async for fragment in message:
        fragments.append(fragment)
        yield fragment
