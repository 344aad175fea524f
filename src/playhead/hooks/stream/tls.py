"""Record the TLS connections of sockets above the encryption, and serve them without encryption.

Knows `ssl.SSLContext.wrap_socket`. `loop_tls` and `trio_tls` handle the TLS of event loops (`ssl.SSLObject`).
"""

from __future__ import annotations

from playhead.hooks.guest import Patches, need
from playhead.hooks.stream import sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is ssl."""
    need(module.SSLContext, "wrap_socket")
    need(module.SSLSocket, "send", "sendall", "read", "write", "recv", "recv_into")
    plain = _plain_kind(module)
    patches.replace(module.SSLContext, "wrap_socket", lambda original: _wrap(original, plain))
    patches.replace(module.SSLSocket, "send", _send)
    patches.replace(module.SSLSocket, "write", _send)
    patches.replace(module.SSLSocket, "read", _read)


def _wrap(original: Callable[..., Any], plain: Any) -> Callable[..., Any]:
    def wrap_socket(self: Any, sock: Any, *args: Any, **options: Any) -> Any:
        if sockets.talk_of(sock) is None:
            return original(self, sock, *args, **options)
        if sockets.is_served(sock):
            made = plain(sock, self, options.get("server_hostname"))
        else:
            made = original(self, sock, *args, **options)
        sockets.hand_over(sock, made)
        return made

    return wrap_socket


def _send(original: Callable[..., int]) -> Callable[..., int]:
    def send(self: Any, data: Any, *flags: int) -> int:
        count = original(self, data, *flags)
        talk = sockets.talk_of(self)
        # Before the handshake `SSLSocket.send` is that of the socket, which reports it.
        if talk is not None and count and getattr(self, "_sslobj", None) is not None:
            talk.sent(bytes(memoryview(data).cast("B")[:count]))
        return count

    return send


def _read(original: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: Any, size: int = 1024, buffer: Any = None) -> Any:
        got = original(self, size, buffer)
        talk = sockets.talk_of(self)
        if talk is not None:
            data = bytes(memoryview(buffer).cast("B")[:got]) if buffer is not None else got
            if data:
                talk.received(data)
            elif size:
                talk.end(by="peer")
        return got

    return read


def _plain_kind(module: Any) -> Any:
    """Return a class of TLS sockets without encryption, because the data on the tape is not encrypted."""
    base = module.socket

    class TapedTlsSocket(module.SSLSocket):  # type: ignore[misc]  # of the module that is hooked
        def __new__(cls, *args: Any) -> Any:
            return base.__new__(cls)

        def __init__(self, sock: Any, context: Any, hostname: Any) -> None:
            timeout = sock.gettimeout()
            family, kind, proto = sock.family, sock.type, sock.proto
            base.__init__(self, family, kind, proto, fileno=sock.detach())
            self.settimeout(timeout)
            self._context, self._sslobj, self._connected = context, None, True
            self.server_side, self.server_hostname, self._session = False, hostname, None
            self.do_handshake_on_connect = self.suppress_ragged_eofs = True

        def do_handshake(self, block: bool = False) -> None:
            """Do nothing: the handshake is not on the tape."""

        def pending(self) -> int:
            return 0

        def version(self) -> str:
            return "TLSv1.3"

        def cipher(self) -> tuple[str, str, int]:
            return ("TLS_AES_256_GCM_SHA384", "TLSv1.3", 256)

        def getpeercert(self, binary_form: bool = False) -> Any:
            return b"" if binary_form else {}

        def selected_alpn_protocol(self) -> None:
            return None

        def unwrap(self) -> Any:
            return self

        def read(self, size: int = 1024, buffer: Any = None) -> Any:
            return self.recv(size) if buffer is None else self.recv_into(buffer, size)

        def write(self, data: Any) -> int:
            return int(self.send(data))

        send, sendall = base.send, base.sendall
        recv, recv_into = base.recv, base.recv_into

    return TapedTlsSocket
