"""Serve a taped answer to aiohttp's client: its own protocol and parser, on a transport without a network.

If the tape has the places of the head, of all pieces and of the end, each of them is fed when the replay reaches its
place, even if the agent does not wait for it: this is how it arrived in the recorded run. The agent gets its connection
at once, because in the recorded run it had sent its request and waited in its reader when the head arrived. Other
answers are fed one piece each time the agent waits, so that the agent receives the same pieces as in the recorded run.

Knows how aiohttp reads; does not know what is recorded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead.errors import Divergence
from playhead.hooks.http import http1, served
from playhead.hooks.http.exchange import Exchange
from playhead.hooks.order.event_loops import call_if_due
from playhead.hooks.websocket.conversation import TapedPeer, upgraded
from playhead.host.later import Later
from playhead.recording import order_slot
from playhead.recording.crossing import END, HEAD

if TYPE_CHECKING:
    from playhead.hooks import answers
    from playhead.recording.calls import Taped
else:
    answers = Later("playhead.hooks.answers")  # a recorded program never needs it


class Server:
    """Makes connections to the tape."""

    def __init__(self, module: ModuleType) -> None:
        self._connection = module.connector.Connection
        self._connector_error = module.ClientConnectorError
        self._handler: type = type("Served", (_Served, module.client_proto.ResponseHandler), {})

    async def connect(self, connector: Any, req: Any, exchange: Exchange) -> Any:
        taped = served.taped_of(exchange)
        failure: BaseException | None = None
        if taped.head is None:
            if taped.how == "left":
                await served.abandon(exchange)
            failure = self._failure(taped, req)
            failure = failure or served.ending(taped, exchange.name, ConnectionError)
            # Other errors are raised later, while the client waits for the answer: there it may retry the request.
            if taped.facts.get("stage") == "connect" or isinstance(failure, Divergence):
                raise failure
        loop = asyncio.get_running_loop()
        handler = self._handler(loop)
        feed = AnswerFeed(handler, loop, exchange, req)
        if not feed.awaits_head:
            await exchange.crossing.reach_async(HEAD)
        handler.play(feed, failure)
        return self._connection(connector, req.connection_key, handler, loop)

    def _failure(self, taped: Taped, req: Any) -> BaseException | None:
        """Rebuild a taped connection error, with the connection key of this request: the tape has none."""
        kept = taped.error if taped.frozen_error is None else taped.frozen_error
        frozen = kept if isinstance(kept, dict) else {}
        kind = answers.LOADED.get(str(frozen.get("$exception", "")))
        if kind is None or not issubclass(kind, self._connector_error):
            return None
        cause = frozen.get("cause")
        inner = answers.revived(cause, "") if isinstance(cause, dict) else None
        if not isinstance(inner, OSError):
            inner = OSError(frozen.get("errno"), str(frozen.get("message", "")))
        error: BaseException = kind(req.connection_key, inner)
        error.__cause__ = inner
        return error


class _Served:
    """Mixed into aiohttp's ResponseHandler."""

    playhead_player: AnswerFeed
    _failure: BaseException | None

    def play(self, player: AnswerFeed, failure: BaseException | None) -> None:
        self.playhead_player = player
        self._failure = failure
        self.connection_made(Nowhere(self, player))  # type: ignore[attr-defined]  # the handler's

    @property
    def should_close(self) -> bool:
        return True  # never pooled: the next request has its own taped answer

    def set_response_params(self, **params: Any) -> None:
        params["timer"] = _Asking(params.get("timer"), self.playhead_player.ask)
        super().set_response_params(**params)  # type: ignore[misc]  # the handler's
        if self._failure is not None:
            self.set_exception(self._failure)  # type: ignore[attr-defined]  # the handler's
        else:
            self.playhead_player.begin()


class AnswerFeed:
    """Feeds a taped answer to a protocol, a piece at a time."""

    def __init__(self, handler: Any, loop: Any, exchange: Exchange, req: Any) -> None:
        self._handler = handler
        self._loop = loop
        self._taped = taped = served.taped_of(exchange)
        self._crossing = exchange.crossing
        self._name = exchange.name
        self._ended = False
        # How many bytes of the upload the server took before it answered. The replay takes as many.
        self._untaken = sum(len(p.data) for p in taped.pieces if p.stream == "sent")
        self._begun = False
        # Whether the next piece will be fed when the replay reaches its place on the tape.
        self._is_awaited = False
        self._points = deque(at for at, p in enumerate(taped.pieces) if p.stream == "body")
        self.peer: TapedPeer | None = None
        self._blocks = deque(self._wire(req))
        self.is_ordered = self._knows_places()

    def begin(self) -> None:
        """Feed the head, now that the agent has sent its request. If the tape has no places, feed the first piece
        together with the head: the two usually arrive together.
        """
        self._begun = True
        if self._untaken > 0 and not self.is_socket:
            return
        if self.awaits_head:
            head = self._feed_head if self.is_ordered else self._feed_handshake
            if not self._feed_at(self._taped.first_ns, head):
                self._loop.call_soon(head)
            return
        if self._points:
            self._points.popleft()
        first = self._blocks.popleft() + (self._blocks.popleft() if self._blocks else b"")
        pieces = sum(piece.stream == "body" for piece in self._taped.pieces)
        if pieces <= 1 and self._taped.how == "returned":
            first += b"".join(self._blocks)
            self._blocks.clear()
        self._loop.call_soon(self._feed, first)

    def took(self, size: int) -> None:
        """Count `size` more bytes of the upload as sent. Begin to answer if the server answered at this point."""
        self._untaken -= size
        if self._begun and self._untaken <= 0 < self._untaken + size:
            self.begin()

    @property
    def is_socket(self) -> bool:
        return self.peer is not None

    def _knows_places(self) -> bool:
        """Return whether the tape has the places of head, pieces and end, and the loop can wait for them."""
        taped = self._taped
        if taped.head is None or self.is_socket or order_slot.loop_here() is None:
            return False
        pieces = (taped.pieces[at].at_ns for at in self._points)
        return all(map(order_slot.knows, (taped.first_ns, *pieces, taped.took_ns)))

    @property
    def awaits_head(self) -> bool:
        """Return whether the head is fed when the replay reaches its place. So is that of a WebSocket; its messages are
        fed at once, and each call that receives one waits for the place of the message.
        """
        if self.is_ordered:
            return True
        has_loop = order_slot.loop_here() is not None
        return self.is_socket and has_loop and order_slot.knows(self._taped.first_ns)

    def _feed_handshake(self) -> None:
        self._crossing.reach_later(HEAD)  # does not wait: the messages are counted from here
        self._feed(self._blocks.popleft())

    def _feed_head(self) -> None:
        self._crossing.reach_later(HEAD)  # does not wait: the end is counted from here
        self._feed(self._blocks.popleft() + self._take_passed())
        self._await_next()

    def _take_passed(self) -> bytes:
        """Return the pieces whose place the replay has passed: they arrived together with the piece before them."""
        data = b""
        while (
            self._points
            and order_slot.place_ahead(self._taped.pieces[self._points[0]].at_ns) is None
        ):
            self._points.popleft()
            data += self._blocks.popleft()
        is_whole = not self._points and self._taped.how == "returned"
        if is_whole and order_slot.place_ahead(self._taped.took_ns) is None:
            data += b"".join(self._blocks)
            self._blocks.clear()
        return data

    def _await_next(self) -> None:
        """Feed the next piece, or the end that the server made, when the replay reaches its place."""
        taped = self._taped
        if self._points:
            self._feed_at(taped.pieces[self._points[0]].at_ns, self._feed_passed)
        elif self._blocks and taped.how == "returned":
            self._feed_at(taped.took_ns, self._feed_passed)
        elif not self._blocks and taped.how == "cut" and taped.error is None:
            self._feed_at(taped.took_ns, self._next)
        # The agent learns of any other end when it waits for more.

    def _feed_passed(self) -> None:
        self._feed(self._take_passed())
        self._await_next()

    def _feed_at(self, moment: int, feed: Callable[[], None]) -> bool:
        """Call `feed` in the loop iteration in which the selector reported these bytes in the recorded run. Return
        False if the replay has passed that place.
        """

        def feed_awaited() -> None:
            self._is_awaited = False
            feed()

        def feed_soon() -> None:
            self._loop.call_soon(feed_awaited)

        def try_soon(take: Callable[[], bool]) -> None:
            call_if_due(self._loop, take, feed_awaited)

        self._is_awaited = order_slot.pend_read(moment, feed_soon, self._is_closed, try_soon)
        return self._is_awaited

    def _is_closed(self) -> bool:
        transport = self._handler.transport
        return transport is None or transport.is_closing()

    def ask(self) -> None:
        """Feed the next piece or the end, because the agent waits for more."""
        if self._is_awaited:
            return
        wait = self._crossing.reach_later(self._points.popleft() if self._points else END)
        if wait:
            self._loop.call_later(wait, self._next)
        else:
            self._loop.call_soon(self._next)

    def wrote(self, data: bytes) -> None:
        """Give bytes that the agent sent to the taped peer. Before a handshake they are only the request."""
        if self.peer is not None and self._handler.upgraded:
            self._answer(self.peer.feed(data))

    def _next(self) -> None:
        if self._blocks:
            self._feed(self._blocks.popleft())
        elif not self._ended:
            self._ended = True
            self._end()

    def _feed(self, data: bytes) -> None:
        if self._handler.transport is not None:
            self._handler.data_received(data)
            if self.peer is not None:
                self._answer(self.peer.begin())

    def _answer(self, data: bytes) -> None:
        if data:
            # At once: the call that receives it waits for its place, and a peer that had closed before did not make the
            # agent wait.
            self._handler.data_received(data)
        if self.peer is not None and self.peer.over:
            self._loop.call_soon(self._handler.connection_lost, None)

    def _end(self) -> None:
        how = self._taped.how
        if how == "returned" or (how == "cut" and self._taped.error is None):
            self._handler.connection_lost(None)
        elif how == "left":
            self._loop.call_later(served.PATIENCE_S, self._fail)
        else:
            self._fail()

    def _fail(self) -> None:
        error = served.ending(self._taped, self._name, ConnectionError)
        if isinstance(error, ConnectionError) and not type(error).__module__.startswith("aiohttp"):
            self._handler.connection_lost(error)
            return
        # The connection did not fail: this is a timeout of the client, or a divergence.
        self._handler.set_exception(error)
        if self._handler._payload is not None:
            self._handler._payload.set_exception(error)

    def _wire(self, req: Any) -> list[bytes]:
        taped = self._taped
        if taped.head is None:
            return []
        head = taped.head
        if head["status"] == 101:
            self.peer = TapedPeer(taped)
            head = upgraded(head, req.headers.get("Sec-WebSocket-Key") or "")
        pieces = [piece.data for piece in taped.pieces if piece.stream == "body"]
        sizes = taped.facts.get("sizes") or ()
        wire = list(http1.blocks(head, pieces, whole=taped.how == "returned", sizes=sizes))
        if getattr(req, "_continue", None) is not None:
            wire[0] = b"HTTP/1.1 100 Continue\r\n\r\n" + wire[0]
        return wire


class _Asking:
    """Wraps a request's timer, which aiohttp enters to read. Calls `ask` when the agent begins to wait."""

    def __init__(self, timer: Any, ask: Callable[[], None]) -> None:
        self._timer = timer
        self._ask = ask

    def __enter__(self) -> Any:
        self._ask()
        return self._timer.__enter__() if self._timer is not None else self

    def __exit__(self, *raised: object) -> Any:
        return self._timer.__exit__(*raised) if self._timer is not None else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timer, name)


class Nowhere(asyncio.Transport):
    """Discards the bytes that the client writes."""

    def __init__(self, handler: Any, player: AnswerFeed) -> None:
        super().__init__()
        self._handler = handler
        self._player = player
        self._closing = False

    def write(self, data: Any) -> None:
        self._player.wrote(bytes(data))

    def writelines(self, pieces: Any) -> None:
        self.write(b"".join(pieces))

    def write_eof(self) -> None:
        """Do nothing: there is no peer to notify."""

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._handler._loop.call_soon(self._handler.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        """Do nothing: a piece is fed at its place on the tape, or when the agent waits for one."""

    def resume_reading(self) -> None:
        """Do nothing, as `pause_reading` does."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: no data is ever buffered."""
