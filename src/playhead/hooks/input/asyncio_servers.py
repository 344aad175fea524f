"""Record the connections that clients open to a server in an event loop: uvicorn, aiohttp.web, hypercorn,
`asyncio.start_server`.

Each connection is one call of the boundary `input`, with the pieces that the client sent (`received`) and the pieces
that the program answered (`sent`). In a replay the program starts its server as usual. The replay opens real
connections to it, sends each taped piece at its place, and compares the answers. So the program's own code accepts,
parses and logs.

Connections that this process opens to itself are not input. Knows event loops and their protocols; knows HTTP only to
name a call.
"""

from __future__ import annotations

import _socket
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.input import input_slot, shared_listeners
from playhead.hooks.input.inbound import (
    ArrivedConnection,
    InboundConnection,
    TapedConnection,
    call_for,
    in_lane,
    is_of_the_run,
    is_own_client,
    loopback,
)
from playhead.recording import deck, lanes, order_slot
from playhead.recording.crossing import END, HEAD
from playhead.recording.lanes import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from playhead.recording.calls import Piece
    from playhead.recording.deck import Deck

_ROOM = 1024 * 1024
# The method of asyncio's transport that reads the end of what a client sends (CPython 3.10 to 3.14).
_ON_EOF = "_read_ready__on_eof"
# Clients of a replay that are open: asyncio keeps weak references to tasks.
_driving: set[Any] = set()
# By the id of a protocol: its server until it has a connection, and its connection until that is lost.
_servers: dict[int, _Followed] = {}
_connections: dict[int, InboundConnection] = {}
# Observing subclasses of protocols.
_classes: dict[type, type] = {}


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.base_events."""
    need(module.BaseEventLoop, "create_server")
    patches.replace(module.BaseEventLoop, "create_server", _create_server)


def hook_unix(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.unix_events."""
    need(module._UnixSelectorEventLoop, "create_unix_server")
    patches.replace(module._UnixSelectorEventLoop, "create_unix_server", _create_unix_server)


def hook_uvloop(module: ModuleType, patches: Patches) -> None:
    """A replay gives the program asyncio's loop: see `ambient.waiting_selectors`."""
    patches.replace(module.Loop, "create_server", _create_server)


def _create_server(original: Callable[..., Any]) -> Callable[..., Any]:
    async def create_server(
        self: Any, protocol_factory: Callable[[], Any], *args: Any, **options: Any
    ) -> Any:
        open_deck = input_slot.deck_for_read()
        if open_deck is None:
            return await original(self, protocol_factory, *args, **options)
        followed, sock = _Followed(open_deck), options.get("sock")
        target = None
        if open_deck.brings_input and options.get("ssl") is not None:
            # The tape has the conversation above TLS, and the replayed client has no certificate.
            followed.ssl = options["ssl"]
            options = {name: one for name, one in options.items() if not name.startswith("ssl")}
        if sock is not None and isinstance(sock.getsockname(), tuple):
            followed.address = sock.getsockname()
            followed.is_shared = shared_listeners.is_shared(sock)
            if open_deck.brings_input and followed.is_shared:
                target = shared_listeners.separate(sock)
        server = await original(
            self, lambda: followed.observed(protocol_factory()), *args, **options
        )
        if open_deck.brings_input:
            followed.drive(self, server, target)
        return server

    return create_server


def _create_unix_server(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report connections from outside of the run: they are not recorded."""

    async def create_unix_server(
        self: Any, protocol_factory: Callable[[], Any], *args: Any, **options: Any
    ) -> Any:
        open_deck = input_slot.deck_for_read()
        if open_deck is None or open_deck.brings_input:
            return await original(self, protocol_factory, *args, **options)
        followed = _Followed(open_deck)
        return await original(self, lambda: followed.observed(protocol_factory()), *args, **options)

    return create_unix_server


class _Followed:
    """Records the connections of one server; in a replay, opens them."""

    def __init__(self, open_deck: Deck) -> None:
        self._deck = open_deck
        # The lane of all connections, because their clients are outside of the run.
        self._lane = Lane(f"{lanes.current.get().name}/inbound", lanes.current.get().scope)
        # In a replay: the taped connections that were opened, by the port of the client.
        self._expected: dict[int, InboundConnection] = {}
        # The address of the listener if the program made the socket, and whether other processes accept from it, too.
        self.address: Any = None
        self.is_shared = False
        # In a replay: the TLS context that the program gave its server, which is left out.
        self.ssl: Any = None

    def observed(self, protocol: Any) -> Any:
        """Return the protocol, changed so that it also reports the data that it receives."""
        kind = _observing(type(protocol))
        try:
            protocol.__class__ = kind
        except TypeError:
            self._deck.unfollowed("input", "a server", "its protocol cannot be observed")
            return protocol
        _servers[id(protocol)] = self
        return protocol

    def connection(self, transport: Any) -> InboundConnection | None:
        peer = transport.get_extra_info("peername")
        if not isinstance(peer, tuple):
            if not is_of_the_run(transport.get_extra_info("socket")):
                self._deck.unserved("a Unix socket", "a replay opens connections by TCP only")
            return None
        if self._deck.brings_input:
            return self._expected.pop(peer[1], None)
        if is_own_client(peer[1]):
            return None
        with in_lane(self._lane):
            connection: InboundConnection = self._deck.perform(
                self._call_for(self.address or transport.get_extra_info("sockname")),
                ArrivedConnection(peer[1]),
            )
        return connection

    def _call_for(self, address: Any) -> deck.Call:
        return call_for(address, self._lane.name if self.is_shared else None)

    def drive(self, loop: Any, server: Any, target: Any = None) -> None:
        """Open the taped connections, each at its place, to `target` or where the server listens."""
        inet = [one for one in server.sockets if isinstance(one.getsockname(), tuple)]
        if not inet:
            return
        # A server may listen by IPv4 and IPv6 at the same port; one is enough.
        sock = min(inet, key=lambda one: one.family != _socket.AF_INET)
        # Not `create_task`, which would count it as a task of the program.
        tasks = sys.modules["asyncio"]
        address = self.address or sock.getsockname()
        opening = self._open_all(loop, sock, address, target or loopback(address))
        task = tasks.Task(opening, loop=loop)
        _driving.add(task)
        task.add_done_callback(_driving.discard)

    async def _open_all(self, loop: Any, listener: Any, address: Any, target: Any) -> None:
        lanes.current.set(self._lane)
        call = self._call_for(address)
        tasks = sys.modules["asyncio"]
        while self._deck.has_answer(call):
            connection: InboundConnection = await self._deck.perform_async(call, TapedConnection())
            await connection.crossing.reach_async(HEAD)
            client = _Client(loop, listener.family, connection)
            self._expected[client.open(target)] = connection
            if connection.deliveries is not None:
                connection.deliveries.connected(listener.fileno())
            task = tasks.Task(client.play(), loop=loop)
            _driving.add(task)
            task.add_done_callback(_driving.discard)


class _Client:
    """The other side of a taped connection."""

    def __init__(self, loop: Any, family: int, connection: InboundConnection) -> None:
        self._loop = loop
        self._connection = connection
        # The C type, whose methods are not hooked: this connection is not a call of the program.
        self._socket = _socket.socket(family, _socket.SOCK_STREAM)
        self._is_open = True

    def open(self, target: Any) -> int:
        """Connect from the port that the recorded client had, if it is free. Return the port."""
        host = target[0]
        self._socket.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            self._socket.bind((host, self._connection.port))
        self._socket.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, _ROOM)
        self._socket.connect(target)
        self._socket.setblocking(False)
        self._loop._add_reader(self._socket.fileno(), self._drain)
        return int(self._socket.getsockname()[1])

    async def play(self) -> None:
        crossing = self._connection.crossing
        taped = crossing.taped
        if taped is None:
            raise AssertionError("only a taped connection is played")
        for index, piece in enumerate(taped.pieces):
            if piece.stream != "received":
                continue
            await self._await_answer(index)
            await crossing.reach_async(index)
            self._send(piece.data)
        await self._end_at(taped.facts.get("eof_ns"), taped.pieces)
        if taped.facts.get("closed_by") == "client":
            await self._await_answer(END)
            await crossing.reach_last_async()
            self._close()
            if self._connection.deliveries is not None:
                self._connection.deliveries.closed()

    async def _await_answer(self, point: int) -> None:
        future = self._loop.create_future()

        def go_on() -> None:
            if not future.done():
                future.set_result(None)

        if self._connection.when_answered(point, go_on):
            # If the program has changed, the answer may never come.
            state = order_slot.loop_here()
            if state is not None:
                state.pend_late(self._loop.time(), go_on, future.done)
            await future

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        with contextlib.suppress(OSError):
            while view:
                view = view[self._socket.send(view) :]
        if self._connection.deliveries is not None:
            self._connection.deliveries.sent(len(data) - len(view))

    async def _end_at(self, ends: Any, pieces: Sequence[Piece]) -> None:
        """Send nothing more from the moment at which the program learnt that. It may still answer."""
        at = ends.get("received") if isinstance(ends, dict) else None
        if not isinstance(at, int):
            return
        later = (index for index, piece in enumerate(pieces) if piece.at_ns > at)
        await self._await_answer(next(later, END))
        await self._connection.crossing.reach_moment_async(at)
        with contextlib.suppress(OSError):
            self._socket.shutdown(_socket.SHUT_WR)
        if self._connection.deliveries is not None:
            self._connection.deliveries.closed()

    def _drain(self) -> None:
        """Read and drop the program's answers. They are compared where the program writes them."""
        try:
            if self._socket.recv(_ROOM):
                return
        except BlockingIOError:
            return
        except OSError:
            pass  # the program has reset the connection, which ends it like a close
        self._close()

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop._remove_reader(self._socket.fileno())
            self._socket.close()


def _observing(kind: type) -> type:
    """A subclass of a protocol's class that reports to the connection. Not attributes of the instance: protocols of
    aiohttp have slots, and uvloop looks methods up before the connection is made.
    """
    found = _classes.get(kind)
    if found is not None:
        return found
    base: Any = kind

    def connection_made(self: Any, transport: Any) -> None:
        server = _servers.pop(id(self), None)
        connection = None if server is None else server.connection(transport)
        if server is not None and connection is not None:
            if connection.deliveries is not None:
                connection.deliveries.accepted(transport.get_extra_info("socket").fileno())
            _connections[id(self)] = connection
            transport = _ObservedTransport(transport, connection, server.ssl)
            connection.enter()
        base.connection_made(self, transport)

    def data_received(self: Any, data: bytes) -> None:
        connection = _connections.get(id(self))
        if connection is not None:
            connection.received(data)
        base.data_received(self, data)

    def eof_received(self: Any) -> Any:
        connection = _connections.get(id(self))
        # aiohttp.web calls the method itself, at the end of each request.
        is_of_client = sys._getframe(1).f_code.co_name == _ON_EOF
        if connection is not None and is_of_client:
            connection.client_ended()
            connection.enter()
        return base.eof_received(self)

    def connection_lost(self: Any, error: BaseException | None) -> None:
        connection = _connections.pop(id(self), None)
        if connection is not None:
            input_slot.forget(connection.crossing)
            connection.enter()
            connection.compare()
            connection.end()
        base.connection_lost(self, error)

    methods = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "connection_made": connection_made,
        "data_received": data_received,
        "eof_received": eof_received,
        "connection_lost": connection_lost,
    }
    made = _classes[kind] = type(kind)(kind.__name__, (kind,), methods)
    return made


class _ObservedTransport:
    """Wraps a transport, and reports the data that is written to it. uvloop's transports take no attributes."""

    def __init__(self, transport: Any, connection: InboundConnection, ssl: Any = None) -> None:
        self.__dict__.update(_transport=transport, _connection=connection, _ssl=ssl)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._transport, name, value)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        # uvicorn and aiohttp.web tell `https` from `http` by it.
        if name == "sslcontext" and self._ssl is not None:
            return self._ssl
        return self._transport.get_extra_info(name, default)

    def write(self, data: Any) -> None:
        self._connection.sent(data)
        self._transport.write(data)

    def writelines(self, pieces: Any) -> None:
        whole = list(pieces)
        self._connection.sent(b"".join(whole))
        self._transport.writelines(whole)

    def set_protocol(self, protocol: Any) -> None:
        """Observe the protocol that takes over. uvicorn and aiohttp.web do this when a request becomes a WebSocket:
        without it, the messages of the client would not be recorded.
        """
        before = self._transport.get_protocol()
        try:
            protocol.__class__ = _observing(type(protocol))
        except TypeError:
            open_deck = self._connection.crossing.deck
            open_deck.unfollowed("input", "a server", "its protocol cannot be observed")
        else:
            _connections.pop(id(before), None)
            _connections[id(protocol)] = self._connection
        self._transport.set_protocol(protocol)

    def close(self) -> None:
        self._connection.is_closed_by_program = True
        self._transport.close()

    def abort(self) -> None:
        self._connection.is_closed_by_program = True
        self._transport.abort()
