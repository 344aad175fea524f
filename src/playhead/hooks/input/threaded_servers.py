"""Record the connections that clients open to a blocking server: `socketserver`, and with it `http.server`, wsgiref and
the development server of werkzeug (Flask); and those that a program accepts with `socket.accept`, as gunicorn does.

Works like `asyncio_servers`, but in a replay a thread of ours opens the taped connections, and the hooks of sockets
(`hooks.stream.sockets`) report the data that the program receives and sends. Knows `socketserver.TCPServer` and
`socket.accept`.
"""

from __future__ import annotations

import _socket
import _thread
import contextlib
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from playhead import clock
from playhead.hooks.guest import Patches, need
from playhead.hooks.input import input_slot, shared_listeners
from playhead.hooks.input.inbound import (
    ArrivedConnection,
    InboundConnection,
    TapedConnectionOfThread,
    call_for,
    in_lane,
    is_own_client,
    loopback,
)
from playhead.hooks.stream import sockets
from playhead.recording import lanes
from playhead.recording.crossing import END, HEAD
from playhead.recording.lanes import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from playhead.recording.calls import Taped
    from playhead.recording.deck import Deck

# Servers of `socketserver`, by the id of the server object.
_followed: dict[int, _FollowedServer] = {}
# Listeners from which the program accepts without a server of the standard library.
_listeners: WeakKeyDictionary[Any, _FollowedServer] = WeakKeyDictionary()
# Modules whose connections have other hooks, or cannot be followed.
_OTHER_SERVERS = frozenset(
    {"asyncio", "multiprocessing", "playhead", "socketserver", "ssl", "trio"}
)


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is socketserver."""
    need(module.TCPServer, "get_request", "server_activate", "server_close")
    patches.replace(module.TCPServer, "server_activate", _server_activate)
    patches.replace(module.TCPServer, "get_request", _get_request)
    patches.replace(module.TCPServer, "server_close", _server_close)
    patches.on_undo(_followed.clear)


def hook_accept(module: ModuleType, patches: Patches) -> None:
    """`module` is socket."""
    need(module.socket, "accept")
    patches.replace(module.socket, "accept", _accept)
    patches.on_undo(_listeners.clear)


def _accept(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def accept(self: Any) -> Any:
        followed = follow_listener(self, sys._getframe(1))
        sock, address = original(self)
        if followed is not None:
            followed.accept(sock, address)
        return sock, address

    return accept


def follow_listener(listener: Any, frame: Any) -> _FollowedServer | None:
    """Follow a listener from which the code of this frame is about to accept. The first time in a process begins it."""
    followed = _listeners.get(listener)
    if followed is not None:
        return followed
    if listener.family not in (_socket.AF_INET, _socket.AF_INET6):
        return None
    if (
        frame is None
        or str(frame.f_globals.get("__name__", "")).partition(".")[0] in _OTHER_SERVERS
    ):
        return None
    open_deck = input_slot.deck_for_read()
    if open_deck is None:
        return None
    followed = _listeners[listener] = _FollowedServer(open_deck, listener)
    if open_deck.brings_input:
        if shared_listeners.is_shared(listener):
            followed.target = shared_listeners.separate(listener)
        if followed.has_connections:
            followed.start()
    return followed


def _server_activate(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def server_activate(self: Any) -> None:
        original(self)
        open_deck = input_slot.deck_for_read()
        if open_deck is None or self.socket.family not in (_socket.AF_INET, _socket.AF_INET6):
            return
        followed = _followed[id(self)] = _FollowedServer(open_deck, self.socket)
        if open_deck.brings_input:
            followed.start()

    return server_activate


def _get_request(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def get_request(self: Any) -> Any:
        sock, address = original(self)
        followed = _followed.get(id(self))
        if followed is not None and type(sock).__name__ == "SSLSocket":
            if not is_own_client(address[1]):
                why = "a replay would have to be a TLS client"
                followed.unserved("a server with TLS in a thread", why)
        elif followed is not None:
            followed.accept(sock, address)
        return sock, address

    return get_request


def _server_close(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def server_close(self: Any) -> None:
        _followed.pop(id(self), None)
        original(self)

    return server_close


class _BlockingConnection(InboundConnection):
    """A connection whose socket reports to it: see `stream.sockets.follow`."""

    _has_ended = False

    def finish(self, *, by: str) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self.is_closed_by_program = by == "agent"
        input_slot.forget(self.crossing)
        self.compare()
        self.end()
        if self.turns is not None:
            self.turns.leave()


class _FollowedServer:
    """Records the connections of one server; in a replay, opens them."""

    def __init__(self, open_deck: Deck, listener: Any) -> None:
        self._deck = open_deck
        self._listener = listener.fileno()
        self._family = listener.family
        self._address = listener.getsockname()
        self._lane = Lane(f"{lanes.current.get().name}/inbound", lanes.current.get().scope)
        self._expected: dict[int, InboundConnection] = {}
        is_shared = shared_listeners.is_shared(listener)
        self._call = call_for(self._address, self._lane.name if is_shared else None)
        # The address that a replay connects to.
        self.target = loopback(self._address)
        self._is_driven = False

    def unserved(self, what: str, why: str) -> None:
        self._deck.unserved(what, why)

    @property
    def has_connections(self) -> bool:
        """Return whether the tape has connections to this listener in this process."""
        with in_lane(self._lane):
            return self._deck.has_answer(self._call)

    def start(self) -> None:
        """Let a thread of ours open the taped connections."""
        # Not with `threading`, because it is not a thread of the program.
        _thread.start_new_thread(self.drive, ())
        # Wait until it runs: from then on the replay sees the thread and waits for it (see `outside_activity`).
        while not self._is_driven:
            clock.sleep(0.000_5)

    def accept(self, sock: Any, address: Any) -> None:
        port = address[1]
        if self._deck.brings_input:
            made = self._expected.pop(port, None)
        elif is_own_client(port):
            made = None
        else:
            with in_lane(self._lane):
                made = self._deck.perform(self._call, ArrivedConnection(port))
        if made is not None:
            connection = _BlockingConnection(made.crossing, made.port, made.turns)
            connection.deliveries = made.deliveries
            if made.deliveries is not None:
                made.replaced_by(connection)
                made.deliveries.accepted(sock.fileno())
            sockets.follow(sock, _Reported(connection))

    def drive(self) -> None:
        """Open the taped connections and send what their clients sent, each at its place.

        One thread opens all of them. With several threads, one that is just starting would not wait for its place yet,
        and the replay would pass that place.
        """
        self._is_driven = True
        lanes.current.set(self._lane)
        call = self._call
        opened: list[_TapedClient] = []
        while self._deck.has_answer(call):
            connection = self._deck.perform(call, TapedConnectionOfThread())
            opened.append(_TapedClient(connection, self._family, self.target))
        steps = [(*step, client) for client in opened for step in client.steps()]
        for _, point, client in sorted(steps, key=lambda step: step[0]):
            client.connection.crossing.reach(point)
            if point == HEAD:
                self._expected[client.connection.port] = client.connection
            client.act(point, self._listener)


class _TapedClient:
    """The other side of a taped connection."""

    def __init__(self, connection: InboundConnection, family: int, target: Any) -> None:
        self.connection = connection
        self._target = target
        # The C type, whose methods are not hooked: this connection is not a call of the program.
        self._socket = _socket.socket(family, _socket.SOCK_STREAM)

    @property
    def _taped(self) -> Taped:
        taped = self.connection.crossing.taped
        if taped is None:
            raise AssertionError("only a taped connection is played")
        return taped

    def steps(self) -> Iterator[tuple[int, int]]:
        """Yield the time and the point of each action of the client."""
        taped = self._taped
        began = taped.began_ns
        yield began + int(taped.head_ns or 0), HEAD
        for index, piece in enumerate(taped.pieces):
            if piece.stream == "received":
                yield began + int(piece.at_ns), index
        if taped.facts.get("closed_by") == "client":
            yield began + int(taped.took_ns), END

    def act(self, point: int, listener: int) -> None:
        deliveries = self.connection.deliveries
        if deliveries is None:
            raise AssertionError("only a taped connection is played")
        with contextlib.suppress(OSError):
            if point == HEAD:
                self._open()
                deliveries.connected(listener)
            elif point == END:
                self._socket.shutdown(_socket.SHUT_WR)
                deliveries.closed()
            else:
                data = self._taped.pieces[point].data
                self._socket.sendall(data)
                deliveries.sent(len(data))

    def _open(self) -> None:
        self._socket.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            self._socket.bind((self._target[0], self.connection.port))
        self._socket.connect(self._target)
        _thread.start_new_thread(self._drain, ())

    def _drain(self) -> None:
        """Read and drop the program's answers. They are compared where the program writes them."""
        with contextlib.suppress(OSError):
            while self._socket.recv(1024 * 1024):
                continue
        self._socket.close()


class _Reported:
    """Gets the reports of the socket hooks, with the interface of `stream.talk.Talk`."""

    def __init__(self, connection: _BlockingConnection) -> None:
        self._connection = connection
        self.crossing = connection.crossing
        self.script = None

    def sent(self, data: bytes) -> None:
        self._connection.sent(data)

    def received(self, data: bytes) -> None:
        self._connection.received(data, in_thread=True)

    def end(self, *, by: str, error: BaseException | None = None) -> None:
        self._connection.finish(by=by)
