"""Record and replay connections of Python sockets that no other hook claims: blocking, in asyncio's loop, and in trio.

A recorded connection is not changed; its sends and receives are reported, above TLS. In a replay `connect` puts one end
of a socket pair under the descriptor of the program's socket, so that `select`, timeouts and event loops work on a real
descriptor; the other end is filled from the tape. Knows `socket.socket` and `ssl.SSLSocket`.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from weakref import WeakKeyDictionary

from playhead.hooks.guest import Patches, need
from playhead.hooks.stream.feeding import Feed, feed_for
from playhead.hooks.stream.talk import ConnectAdapter, Talk
from playhead.host import own_listeners
from playhead.recording import ambient, deck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.recording.deck import Deck

# Boundaries whose calls report their own connections, or are served whole.
_CLAIMED = ("http", "llm", "grpc", "sql", "mcp", "process", "stream")
# Libraries whose connections belong to another boundary, also where they connect outside of a call.
_CLAIMANTS = frozenset(
    {
        *("http", "urllib3", "aiohttp", "aiohappyeyeballs", "httpcore", "httpcore2", "httpx"),
        *("httpx2", "websockets", "multiprocessing", "subprocess", "playhead", "uvicorn"),
    }
)
_FUTURE = "urllib3.backend.hface"
_MOST_FRAMES = 60
# Sockets of `multiprocessing` between the processes of the program.
_OF_THE_PROGRAM = ("pymp-", "\0listener-")

_talks: WeakKeyDictionary[Any, Talk] = WeakKeyDictionary()
_feeds: WeakKeyDictionary[Any, Feed] = WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is socket."""
    kind = module.socket
    need(kind, "connect", "connect_ex", "send", "sendall", "sendmsg", "recv", "recv_into")
    need(
        kind,
        "_real_close",
        "setsockopt",
        "getsockopt",
        "getpeername",
        "getsockname",
        "shutdown",
        "listen",
    )
    patches.replace(kind, "connect", _connect)
    patches.replace(kind, "connect_ex", _connect_ex)
    patches.replace(kind, "send", _send)
    patches.replace(kind, "sendall", _sendall)
    patches.replace(kind, "sendmsg", _sendmsg)
    patches.replace(kind, "recv", _recv)
    patches.replace(kind, "recv_into", _recv_into)
    patches.replace(kind, "_real_close", _close)
    patches.replace(kind, "setsockopt", _setsockopt)
    patches.replace(kind, "getsockopt", _getsockopt)
    patches.replace(kind, "getpeername", _getpeername)
    patches.replace(kind, "getsockname", _getsockname)
    patches.replace(kind, "listen", own_listeners.around_listen)
    patches.on_undo(_talks.clear)


def hook_selector_loop(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.selector_events."""
    loop = module.BaseSelectorEventLoop
    need(loop, "sock_connect")
    patches.replace(loop, "sock_connect", _sock_connect)


def _sock_connect(original: Callable[..., Any]) -> Callable[..., Any]:
    async def sock_connect(self: Any, sock: Any, address: Any) -> None:
        await original(self, sock, address)
        talk = _talks.get(sock)
        if talk is not None:
            await talk.connected()

    return sock_connect


def follow(sock: Any, talk: Any) -> None:
    """Report the data of a connection that the program has accepted to `talk`."""
    _talks[sock] = talk


def talk_of(sock: Any) -> Talk | None:
    return _talks.get(sock)


def hand_over(old: Any, new: Any) -> None:
    """Move the conversation to another object that has taken over the descriptor, because TLS was put on top."""
    talk, feed = _talks.pop(old, None), _feeds.pop(old, None)
    if talk is not None:
        _talks[new] = talk
    if feed is not None:
        _feeds[new] = feed


def take_from(sock: Any) -> Talk | None:
    """Return the conversation of this socket, and stop reporting it from the socket."""
    return _talks.pop(sock, None)


def is_served(sock: Any) -> bool:
    """Return whether the other side of this connection is the tape."""
    return sock in _feeds


def _deck_for(sock: Any, address: Any) -> Deck | None:
    """Return the deck that records this connection; None if it is not recorded, or if another boundary records it."""
    open_deck = deck.active()
    if open_deck is None or sock.type != socket.SOCK_STREAM:
        return None
    if sock.family not in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX) or sock in _talks:
        return None
    if open_deck.is_inside(*_CLAIMED) or own_listeners.has(address):
        return None
    if sock.family == socket.AF_UNIX and any(
        one in os.fsdecode(address) for one in _OF_THE_PROGRAM
    ):
        return None
    return None if _is_claimed(sys._getframe(2)) else open_deck


def is_claimed(open_deck: Deck, frame: Any) -> bool:
    """Return whether another boundary records what the code of this frame does."""
    return open_deck.is_inside(*_CLAIMED) or _is_claimed(frame)


def _is_claimed(frame: Any) -> bool:
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return False
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name in _CLAIMANTS and name != "playhead":
            # urllib3-future takes the place of urllib3, and has no hook of its own: see `http.urllib3_pool`.
            return name != "urllib3" or _FUTURE not in sys.modules
        frame = frame.f_back
    return False


def _name_of(address: Any) -> str:
    if isinstance(address, tuple):
        host = f"[{address[0]}]" if ":" in str(address[0]) else address[0]
        return f"{host}:{address[1]}"
    return os.fsdecode(address)


def _connect(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def connect(self: Any, address: Any, /) -> None:
        open_deck = _deck_for(self, address)
        if open_deck is None:
            return original(self, address)
        in_progress: list[OSError] = []

        def live() -> None:
            try:
                original(self, address)
            except (BlockingIOError, InterruptedError) as error:
                in_progress.append(error)

        name = _name_of(address)
        call = deck.Call(boundary="stream", name=name, request={"to": name})
        adapter = ConnectAdapter(live, lambda talk: _serve(self, talk))
        _talks[self] = open_deck.perform(call, adapter)
        if in_progress:
            raise in_progress[0]
        return None

    return connect


def _connect_ex(original: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
    def connect_ex(self: Any, address: Any, /) -> int:
        if _deck_for(self, address) is None:
            return original(self, address)
        try:
            self.connect(address)
        except OSError as error:
            return error.errno or errno.ECONNREFUSED
        return 0

    return connect_ex


def _serve(sock: Any, talk: Talk) -> None:
    """Connect the socket to the tape, under its own descriptor number."""
    theirs, ours = socket.socketpair()
    blocking = os.get_blocking(sock.fileno())
    inheritable = os.get_inheritable(sock.fileno())
    os.dup2(theirs.fileno(), sock.fileno(), inheritable)
    theirs.close()
    os.set_blocking(sock.fileno(), blocking)
    feed = _feeds[sock] = feed_for(talk, ours, sock.fileno())
    feed.begin()


def _send(original: Callable[..., int]) -> Callable[..., int]:
    def send(self: Any, data: Any, *flags: int) -> int:
        talk = _talks.get(self) if _talks else None
        if talk is None:
            return original(self, data, *flags)
        if (feed := _feeds.get(self)) is not None:
            return feed.took(bytes(data))
        count = original(self, data, *flags)
        talk.sent(bytes(memoryview(data).cast("B")[:count]))
        return count

    return send


def _sendall(original: Callable[..., None]) -> Callable[..., None]:
    def sendall(self: Any, data: Any, *flags: int) -> None:
        talk = _talks.get(self) if _talks else None
        if talk is None:
            return original(self, data, *flags)
        if (feed := _feeds.get(self)) is not None:
            feed.took(bytes(data))
            return None
        # Reported first: the answer may be read by another thread before this one continues.
        talk.sent(bytes(data))
        return original(self, data, *flags)

    return sendall


def _sendmsg(original: Callable[..., int]) -> Callable[..., int]:
    def sendmsg(self: Any, buffers: Any, *more: Any) -> int:
        talk = _talks.get(self) if _talks else None
        if talk is None:
            return original(self, buffers, *more)
        buffers = list(buffers)
        data = b"".join(bytes(one) for one in buffers)
        if (feed := _feeds.get(self)) is not None:
            return feed.took(data)
        count = original(self, buffers, *more)
        talk.sent(data[:count])
        return count

    return sendmsg


def _recv(original: Callable[..., bytes]) -> Callable[..., bytes]:
    def recv(self: Any, size: int, *flags: int) -> bytes:
        talk = _talks.get(self) if _talks else None
        if talk is None:
            return original(self, size, *flags)
        feed = _feeds.get(self)
        if feed is not None:
            size = feed.before_read(size, self.gettimeout())
        data = original(self, size, *flags)
        if not flags or not flags[0] & socket.MSG_PEEK:
            _got(talk, feed, data, size)
        return data

    return recv


def _recv_into(original: Callable[..., int]) -> Callable[..., int]:
    def recv_into(self: Any, buffer: Any, nbytes: int = 0, *flags: int) -> int:
        talk = _talks.get(self) if _talks else None
        if talk is None:
            return original(self, buffer, nbytes, *flags)
        feed = _feeds.get(self)
        view = memoryview(buffer).cast("B")
        size = nbytes or len(view)
        if feed is not None:
            size = feed.before_read(size, self.gettimeout())
        count = original(self, buffer, size, *flags)
        if not flags or not flags[0] & socket.MSG_PEEK:
            _got(talk, feed, bytes(view[:count]), size)
        return count

    return recv_into


def _got(talk: Talk, feed: Feed | None, data: bytes, size: int) -> None:
    if feed is not None:
        feed.after_read(len(data))
    if data:
        talk.received(data)
    elif size:
        talk.end(by="peer")


def _close(original: Callable[..., None]) -> Callable[..., None]:
    def _real_close(self: Any, *args: Any) -> None:
        talk = _talks.pop(self, None) if _talks else None
        if talk is not None:
            talk.end(by="agent")
            if (feed := _feeds.pop(self, None)) is not None:
                feed.close()
        original(self, *args)

    return _real_close


def _setsockopt(original: Callable[..., None]) -> Callable[..., None]:
    def setsockopt(self: Any, *options: Any) -> None:
        if not _feeds or self not in _feeds:
            return original(self, *options)
        return None  # options of TCP: the socket pair has none of them

    return setsockopt


def _getsockopt(original: Callable[..., Any]) -> Callable[..., Any]:
    def getsockopt(self: Any, level: int, option: int, *more: int) -> Any:
        if _feeds and self in _feeds and level != socket.SOL_SOCKET:
            return 0 if not more else bytes(more[0])
        value = original(self, level, option, *more)
        if value and (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR):
            # A connection in progress has failed.
            talk = _talks.pop(self, None)
            if talk is not None:
                talk.end(by="peer", error=OSError(value, os.strerror(value)))
        return value

    return getsockopt


def _getpeername(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def getpeername(self: Any) -> Any:
        feed = _feeds.get(self) if _feeds else None
        return original(self) if feed is None else feed.peer(self.family)

    return getpeername


def _getsockname(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def getsockname(self: Any) -> Any:
        if not _talks or self not in _talks:
            return original(self)
        feed = _feeds.get(self)
        if feed is not None and self.family == socket.AF_UNIX:
            return ""
        # The port is the system's choice. The replayed connection is a socket pair, which has none.
        here = original(self) if feed is None else feed.here(self.family)
        if not isinstance(here, tuple):
            return here
        return tuple(ambient.read("local address", lambda: list(here)))

    return getsockname
