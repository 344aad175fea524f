"""Report the messages of a connection of the websockets library to its `Conversation`.

Knows `send`, `recv` and `close` of both implementations, which share their names; does not know how a
connection is made (see `websockets_client`).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.http.exchange import Exchange
from playhead.hooks.websocket.conversation import Conversation

_KEY = "_playhead"


def hook_messages(connection: type, patches: Patches, *, threads: bool) -> None:
    arounds = _SYNC if threads else _ASYNC
    need(connection, *arounds)
    for name, around in arounds.items():
        patches.replace(connection, name, around)


def follow(connection: Any, exchange: Exchange) -> None:
    """Report the messages of this connection to the exchange from here on."""
    # On the instance, so that connections without a mark (servers, and clients opened before the recording)
    # cost one dict lookup per message and are never reported.
    connection.__dict__[_KEY] = Conversation(exchange)


def _around_recv(original: Callable[..., Any]) -> Callable[..., Any]:
    def recv(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            message = original(self, *args, **kwargs)
        except Exception:
            # `recv` raises ConnectionClosed when the peer has closed: this is how most conversations end, and
            # no other hook would see it. Timeouts raise here too, and leave the state open.
            _report_if_closed(self)
            raise
        if (talk := self.__dict__.get(_KEY)) is not None:
            talk.reach_next()
        return _report_received(self, message)

    return recv


def _around_recv_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def recv(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            message = await original(self, *args, **kwargs)
        except Exception:
            await _report_if_closed_async(self)
            raise
        if (talk := self.__dict__.get(_KEY)) is not None:
            await talk.reach_next_async()
        return _report_received(self, message)

    return recv


def _around_recv_streaming(original: Callable[..., Iterator[Any]]) -> Callable[..., Any]:
    def recv_streaming(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        fragments: list[Any] = []
        for fragment in original(self, *args, **kwargs):
            if not fragments and (talk := self.__dict__.get(_KEY)) is not None:
                talk.reach_next()
            fragments.append(fragment)
            yield fragment
        _report_received(self, _joined(fragments))

    return recv_streaming


def _around_recv_streaming_async(original: Callable[..., AsyncIterator[Any]]) -> Callable[..., Any]:
    async def recv_streaming(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        fragments: list[Any] = []
        async for fragment in original(self, *args, **kwargs):
            if not fragments and (talk := self.__dict__.get(_KEY)) is not None:
                await talk.reach_next_async()
            fragments.append(fragment)
            yield fragment
        _report_received(self, _joined(fragments))

    return recv_streaming


def _around_send(original: Callable[..., Any]) -> Callable[..., Any]:
    def send(self: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        talk: Conversation | None = self.__dict__.get(_KEY)
        if talk is None:
            return original(self, message, *args, **kwargs)
        if isinstance(message, (str, bytes, bytearray, memoryview)):
            # Reported before the call, because the peer may answer, in another thread or task, before `send`
            # returns.
            talk.sent(_as_sent(message, *args, **kwargs))
            return original(self, message, *args, **kwargs)
        # A message in fragments is one message on the tape: how it was split is not part of what the server
        # sees as its content. Reported after the last fragment has been taken from the program's iterator.
        fragments: list[Any] = []
        done = original(self, _kept(message, fragments), *args, **kwargs)
        if fragments:
            talk.sent(_as_sent(_joined(fragments), *args, **kwargs))
        return done

    return send


def _around_send_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def send(self: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        talk: Conversation | None = self.__dict__.get(_KEY)
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
        # Close first: only the closing handshake decides which code and reason both sides have seen.
        done = original(self, *args, **kwargs)
        _report_if_closed(self)
        return done

    return close


def _around_close_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def close(self: Any, *args: Any, **kwargs: Any) -> None:
        await original(self, *args, **kwargs)
        await _report_if_closed_async(self)

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


def _report_received(connection: Any, message: Any) -> Any:
    talk: Conversation | None = connection.__dict__.get(_KEY)
    if talk is not None and message is not None:
        talk.received(message)
    return message


def _report_if_closed(connection: Any) -> None:
    """After a failed call or a close: if the conversation is over, report which side ended it."""
    talk = _ended(connection)
    if talk is not None:
        talk.reach_end()
        _report_end(talk, connection.protocol)


async def _report_if_closed_async(connection: Any) -> None:
    talk = _ended(connection)
    if talk is not None:
        await talk.reach_end_async()
        _report_end(talk, connection.protocol)


def _ended(connection: Any) -> Conversation | None:
    """Return the conversation of this connection, if it is over.

    `protocol` is the sans-I/O state machine that both implementations share; its public fields hold the close frames of
    both sides.
    """
    return connection.__dict__.get(_KEY) if connection.protocol.state.name == "CLOSED" else None


def _report_end(talk: Conversation, protocol: Any) -> None:
    received = protocol.close_rcvd
    if received is None:
        talk.exchange.cut(why="the connection was lost without a closing handshake")
        return
    by = "peer" if protocol.close_rcvd_then_sent else "agent"
    close = received if by == "peer" else protocol.close_sent or received
    talk.closed(int(close.code), str(close.reason), by)


def _as_sent(message: Any, *_: Any, text: bool | None = None) -> str | bytes:
    """Return the message as text or bytes, according to the kind of its frame."""
    if isinstance(message, str):
        return message.encode() if text is False else message
    return bytes(message).decode() if text is True else bytes(message)


def _joined(fragments: list[Any]) -> Any:
    if not fragments:
        return None
    return "".join(fragments) if isinstance(fragments[0], str) else b"".join(map(bytes, fragments))


def _kept(message: Any, fragments: list[Any]) -> Any:
    """Return a message that is given in fragments, and keep each fragment as it is taken."""
    if isinstance(message, Mapping):
        return message  # the library will refuse it with its own error
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
