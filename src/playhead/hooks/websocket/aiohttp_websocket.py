"""Report the messages that the agent sends and receives over aiohttp's WebSockets.

The handshake is an exchange like any other (see `aiohttp_client`); the messages after it are reported here.
Knows `ClientWebSocketResponse`; does not know connections.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.websocket.conversation import Conversation

_KEY = "_playhead"
_MESSAGES, _ENDS = ("TEXT", "BINARY"), ("CLOSE", "CLOSED", "ERROR")


def hook(module: ModuleType, patches: Patches) -> None:
    websocket = module.ClientWebSocketResponse
    # `send_json` and `receive_json` end in the methods that are replaced here, so they need no hook.
    need(websocket, "send_bytes", "close")
    patches.replace(websocket, "__init__", _around_init)
    patches.replace(websocket, "send_str", _around_send)
    patches.replace(websocket, "send_bytes", _around_send)
    patches.replace(websocket, "receive", _around_receive)
    patches.replace(websocket, "close", _around_close)


def _around_init(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(  # noqa: N807 - stands where the class's own stood
        self: Any, reader: Any, writer: Any, protocol: Any, response: Any, *args: Any, **kwargs: Any
    ) -> None:
        original(self, reader, writer, protocol, response, *args, **kwargs)
        # The handshake's response still owns the connection here; after `__init__` it is detached, and the
        # exchange could no longer be found.
        connection = response.connection
        observed = getattr(connection and connection.protocol, _KEY, None)
        if observed is not None:
            # From here on the connection carries messages: releasing it no longer ends the exchange.
            connection.protocol.__dict__.pop(_KEY, None)
            self.__dict__[_KEY] = Conversation(observed.exchange)

    return __init__


def _around_send(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def send(self: Any, data: Any, *args: Any, **kwargs: Any) -> None:
        talk: Conversation | None = self.__dict__.get(_KEY)
        if talk is not None and isinstance(data, (str, bytes, bytearray, memoryview)):
            # Before the call: `send` awaits, and the peer may answer meanwhile.
            talk.sent(data if isinstance(data, str) else bytes(data))
        await original(self, data, *args, **kwargs)

    return send


def _around_receive(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def receive(self: Any, *args: Any, **kwargs: Any) -> Any:
        message = await original(self, *args, **kwargs)
        talk: Conversation | None = self.__dict__.get(_KEY)
        if talk is not None:
            if message.type.name in _MESSAGES:
                await talk.reach_next_async()
            elif message.type.name in _ENDS:
                await talk.reach_end_async()
            _tell(talk, self, message)
        return message

    return receive


def _tell(talk: Conversation, websocket: Any, message: Any) -> None:
    kind = message.type.name
    if kind in _MESSAGES:
        talk.received(message.data)
    # The peer's close frame. aiohttp answers it itself, so the agent's own close is only reported in `_end`.
    elif kind == "CLOSE":
        talk.closed(message.data, str(message.extra or ""), "peer")
    elif kind in {"CLOSED", "ERROR"}:
        _end(talk, websocket)


def _around_close(original: Callable[..., Awaitable[bool]]) -> Callable[..., Awaitable[bool]]:
    async def close(self: Any, *args: Any, **kwargs: Any) -> bool:
        closed = await original(self, *args, **kwargs)
        talk: Conversation | None = self.__dict__.get(_KEY)
        if talk is not None:
            await talk.reach_end_async()
            _end(talk, self)
        return closed

    return close


def _end(talk: Conversation, websocket: Any) -> None:
    """Report the end of a conversation that the other side did not close."""
    # Errors of the connection, also a missed heartbeat, are stored here. `receive` returns a message of type
    # ERROR or CLOSED instead of raising.
    error = websocket.exception()
    if error is not None:
        talk.exchange.failed(error)
    # 1006 is never sent: aiohttp sets it when the connection is lost without a close frame.
    elif websocket.close_code in {None, 1006}:
        talk.exchange.cut()
    else:
        talk.closed(websocket.close_code, "", "agent")
