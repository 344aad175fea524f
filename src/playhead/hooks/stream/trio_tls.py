"""Record trio's TLS connections above the encryption, and serve them without encryption.

trio encrypts in memory, above its socket (`trio.SSLStream`). So as soon as a socket gets TLS, the stream reports the
conversation, and the socket no longer does. A stream over a served socket does not encrypt, because the data on the
tape is not encrypted. Knows `trio.SSLStream` and the sockets of trio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from playhead.hooks.guest import Patches, need
from playhead.hooks.stream import sockets

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.hooks.stream.talk import Talk

# Recorded streams, and those that a replay serves.
_talks: WeakKeyDictionary[Any, Talk] = WeakKeyDictionary()
_served: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is trio."""
    kind = module.SSLStream
    need(kind, "do_handshake", "receive_some", "send_all", "unwrap", "aclose")
    patches.replace(kind, "__init__", _init)
    patches.replace(kind, "do_handshake", _do_handshake)
    patches.replace(kind, "receive_some", _receive_some)
    patches.replace(kind, "send_all", _send_all)
    patches.replace(kind, "wait_send_all_might_not_block", _wait_to_send)
    patches.replace(kind, "unwrap", _unwrap)
    patches.replace(kind, "aclose", _aclose)
    patches.on_undo(_talks.clear)
    patches.on_undo(_served.clear)


def _init(original: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, transport_stream: Any, *args: Any, **options: Any) -> None:
        original(self, transport_stream, *args, **options)
        # The stream of a socket has trio's socket, and that has the socket of Python.
        sock = getattr(getattr(transport_stream, "socket", None), "_sock", None)
        if sock is None:
            return
        if sockets.is_served(sock):
            _served[self] = True
        elif (talk := sockets.take_from(sock)) is not None:
            _talks[self] = talk

    return init


def _do_handshake(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def do_handshake(self: Any) -> None:
        if self not in _served:
            await original(self)

    return do_handshake


def _receive_some(original: Callable[..., Any]) -> Callable[..., Any]:
    async def receive_some(self: Any, max_bytes: int | None = None) -> Any:
        if self in _served:
            return await self.transport_stream.receive_some(max_bytes)
        data = await original(self, max_bytes)
        if (talk := _talks.get(self)) is not None:
            if data:
                talk.received(bytes(data))
            else:
                talk.end(by="peer")
        return data

    return receive_some


def _send_all(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    async def send_all(self: Any, data: Any) -> None:
        if self in _served:
            await self.transport_stream.send_all(data)
            return
        if (talk := _talks.get(self)) is not None:
            talk.sent(bytes(data))
        await original(self, data)

    return send_all


def _wait_to_send(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def wait_send_all_might_not_block(self: Any) -> None:
        if self in _served:
            await self.transport_stream.wait_send_all_might_not_block()
        else:
            await original(self)

    return wait_send_all_might_not_block


def _unwrap(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def unwrap(self: Any) -> Any:
        return (self.transport_stream, b"") if self in _served else await original(self)

    return unwrap


def _aclose(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def aclose(self: Any) -> None:
        if self in _served:
            await self.transport_stream.aclose()
            return
        talk = _talks.pop(self, None)
        if talk is not None:
            talk.end(by="agent")
        await original(self)

    return aclose
