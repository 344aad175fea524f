"""Record asyncio's TLS connections above the encryption, and serve them without encryption.

The loop encrypts in memory, above the socket (`asyncio.sslproto`). So from the handshake on, the transport and the
protocol above TLS report a recorded conversation, and the socket no longer does. A served connection gets a plain
transport, because the data on the tape is not encrypted. Covers `open_connection(ssl=…)` and `loop.start_tls`.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from playhead.hooks.guest import Patches, need
from playhead.hooks.stream import sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.hooks.stream.talk import Talk

# By the loop's protocol that encrypts.
_talks: WeakKeyDictionary[Any, Talk] = WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.selector_events."""
    loop = module.BaseSelectorEventLoop
    need(loop, "_make_ssl_transport", "_make_socket_transport", "start_tls")
    patches.replace(loop, "_make_ssl_transport", _make_ssl_transport)
    patches.replace(loop, "start_tls", _start_tls)
    above = module.sslproto._SSLProtocolTransport
    need(module.sslproto.SSLProtocol, "_set_app_protocol")
    need(above, "write", "get_protocol")
    patches.replace(above, "write", _write)
    patches.replace(above, "writelines", _writelines)
    patches.replace(above, "get_protocol", _get_protocol)
    patches.replace(module.sslproto.SSLProtocol, "_set_app_protocol", _set_app_protocol)
    patches.on_undo(_talks.clear)


def _make_ssl_transport(original: Callable[..., Any]) -> Callable[..., Any]:
    def make(
        self: Any, rawsock: Any, protocol: Any, sslcontext: Any, waiter: Any = None, **options: Any
    ) -> Any:
        if sockets.is_served(rawsock):
            extra = dict(
                options.get("extra") or {}, sslcontext=sslcontext, peername=rawsock.getpeername()
            )
            return self._make_socket_transport(rawsock, protocol, waiter, extra=extra)
        talk = sockets.take_from(rawsock)
        transport = original(self, rawsock, protocol, sslcontext, waiter, **options)
        if talk is not None:
            _follow(transport._ssl_protocol, talk)
        return transport

    return make


def _start_tls(original: Callable[..., Any]) -> Callable[..., Any]:
    async def start_tls(
        self: Any, transport: Any, protocol: Any, *args: Any, **options: Any
    ) -> Any:
        sock = getattr(transport, "_sock", None)
        if sock is not None and sockets.is_served(sock):
            transport.set_protocol(protocol)
            return transport
        talk = None if sock is None else sockets.take_from(sock)
        made = await original(self, transport, protocol, *args, **options)
        if talk is not None:
            _follow(made._ssl_protocol, talk)
        return made

    return start_tls


def _follow(tls: Any, talk: Talk) -> None:
    _talks[tls] = talk
    tls._set_app_protocol(tls._app_protocol)


def _set_app_protocol(original: Callable[..., None]) -> Callable[..., None]:
    def set_app_protocol(self: Any, app_protocol: Any) -> None:
        plain = app_protocol._plain if type(app_protocol) is _Reporting else app_protocol
        original(self, plain)
        talk = _talks.get(self)
        if talk is not None and plain is not None:
            # After the original, which looks at the kind of the protocol.
            self._app_protocol = _Reporting(plain, talk)

    return set_app_protocol


def _get_protocol(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def get_protocol(self: Any) -> Any:
        found = original(self)
        return found._plain if type(found) is _Reporting else found

    return get_protocol


def _write(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def write(self: Any, data: Any) -> None:
        talk = _talks.get(self._ssl_protocol) if _talks else None
        if talk is not None:
            talk.sent(bytes(data))
        original(self, data)

    return write


def _writelines(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def writelines(self: Any, list_of_data: Any) -> None:
        if _talks and self._ssl_protocol in _talks:
            self.write(b"".join(list_of_data))  # once: some versions write each part by `write`
        else:
            original(self, list_of_data)

    return writelines


class _Reporting:
    """Wraps the program's protocol above TLS, and reports the data that it receives."""

    def __init__(self, plain: Any, talk: Talk) -> None:
        self._plain = plain
        self._talk = talk
        self._buffer: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def data_received(self, data: bytes) -> None:
        self._talk.received(bytes(data))
        self._plain.data_received(data)

    def get_buffer(self, size: int) -> Any:
        self._buffer = self._plain.get_buffer(size)
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        self._talk.received(bytes(memoryview(self._buffer)[:count]))
        self._plain.buffer_updated(count)

    def eof_received(self) -> Any:
        self._talk.end(by="peer")
        return self._plain.eof_received()

    def connection_lost(self, error: Any) -> None:
        self._talk.end(by="agent")
        self._plain.connection_lost(error)
