"""Relay PostgreSQL's protocol between libpq and the server; each statement is a call of the boundary `sql`.

libpq is a C library that opens its own socket, so Python's socket hooks do not see it. But it takes its connection
string from Python. A hook replaces the address in that string by the address of a relay in the same process, an
abstract Unix socket. The relay forwards a recorded statement to the real server, and answers a served one from the
tape. So any version of the client runs unchanged: types, errors with SQLSTATE, notices, COPY, cursors and pipelines
are its own.

The login is not on the tape: a replay needs no password.

Threads: a live relay has its own thread, because the client may wait in C. A served relay is driven by the client's
waiting functions if these are in Python (`pump`), else by a thread. In both cases calls are made in a copy of the
client's context, which has its lane. They end in the client's own thread (`settle`), where they have their place in
the order.
"""

from __future__ import annotations

import _socket
import _thread
import contextvars
import os
import struct
import sys
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playhead.errors import Divergence
from playhead.hooks.sql import pgwire
from playhead.hooks.sql.cycles import Cycle, Passing
from playhead.hooks.sql.live_side import LiveSide, start_thread
from playhead.hooks.sql.outlet import Outlet
from playhead.hooks.sql.served_side import ServedSide
from playhead.hooks.sql.statements import ANSWERED, ENDS, Statements, line_of, name_of, request_of
from playhead.recording import deck, lanes, where
from playhead.recording.crossing import END

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from playhead.hooks.sql.pgwire import Message
    from playhead.hooks.sql.upstream import PostgresTarget
    from playhead.recording.crossing import Crossing
    from playhead.recording.deck import Deck

# Data, end and failure of a COPY.
_OF_COPY = (b"d", b"c", b"f")
# Added to `waits_for` of a statement that the client has not finished: the server cannot answer it completely yet.
_OPEN = 1 << 30
# Secrets, and settings for reaching the server. They may differ in a replay.
_NOT_COMPARED = (
    "host",
    "hostaddr",
    "port",
    "password",
    "passfile",
    "sslpassword",
    "connect_timeout",
)
_numbers = iter(range(1, sys.maxsize))


class Relay(LiveSide, ServedSide):
    """One connection of a client. If `inline`, the client calls `pump`; otherwise a served relay has a thread."""

    def __init__(
        self, open_deck: Deck, target: PostgresTarget, library: str, *, inline: bool
    ) -> None:
        self.target = target
        self._facts = {"library": library}
        self._name = target.name
        self.host = f"@playhead-pg-{os.getpid()}-{next(_numbers)}"
        self._listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        path = f"{self.host[1:]}/.s.PGSQL.{target.servers[0].port}"
        self._listener.bind("\0" + path)
        self._listener.listen(8)
        # Held by the thread of a live relay while it works, and by the client's while it catches up.
        self._lock = _thread.allocate_lock()
        self._client: Any = None
        self._cancelling: Any = None
        self._is_cancelled = False
        self._server: Any = None
        self._to_client = self._to_server = Outlet(None)
        self._from_client, self._from_server = pgwire.Cutter(), pgwire.Cutter()
        self._is_logged_in = False
        self._batch: list[Message] = []
        self._statements = Statements()
        # Statements that the server has not answered yet, in their order; and whether the client will send more
        # messages of the last one, because it has flushed but not finished it.
        self._flight: deque[Cycle] = deque()
        self._is_open = False
        self._finished: deque[Cycle] = deque()
        self._status = b"I"
        self._count = 0
        self.is_closed = False
        # The error that stopped a replay. It is kept for later, because the client waits in C and cannot raise it.
        self.problem: BaseException | None = None
        self.enter(3)
        kept = {name: value for name, value in target.settings.items() if name not in _NOT_COMPARED}
        request = {"to": self._name, **{k: v for k, v in kept.items() if not k.startswith("ssl")}}
        call = self._call = deck.Call(
            boundary="sql", name="connect", request=request, facts=self._facts, at=self._at
        )
        login = Cycle(open_deck.perform(call, Passing()), 1)
        self._flight.append(login)
        self.is_served = login.crossing.taped is not None
        if self.is_served and inline:
            self._listener.setblocking(False)
        else:
            start_thread(self._serve if self.is_served else self._relay)

    def _meet(self, client: Any) -> None:
        self._client = client
        self._to_client = Outlet(client)

    def enter(self, depth: int = 2) -> None:
        """Use the context of this thread for calls from here on, because the client is about to send.

        A pipeline does not wait for its answers, so another thread may have sent something just before. That is
        taken first, in the context of the other thread.
        """
        self.catch_up()
        self._context = contextvars.copy_context()
        self._at = where.asked(depth)

    def settle(self) -> None:
        """End the calls whose answers the client has received, each at its place in the order."""
        self.catch_up()
        while (cycle := self._next_finished()) is not None:
            if cycle.script is not None:
                for point in cycle.points():
                    cycle.crossing.reach(point)
                cycle.crossing.reach(END)
            cycle.end()
        for cycle in list(self._flight) if self.is_served else ():
            for point in cycle.points():
                cycle.crossing.reach(point)
        self._raise()

    async def settle_async(self) -> None:
        self.catch_up()
        while (cycle := self._next_finished()) is not None:
            if cycle.script is not None:
                for point in cycle.points():
                    await cycle.crossing.reach_async(point)
                await cycle.crossing.reach_end_async()
            cycle.end()
        for cycle in list(self._flight) if self.is_served else ():
            for point in cycle.points():
                await cycle.crossing.reach_async(point)
        self._raise()

    @contextmanager
    def carrying(self) -> Iterator[None]:
        """Mark the time in which the client waits for its server. Timers that it sets meanwhile are not the
        program's, and a replay does not set them.
        """
        token = lanes.inside.set((*lanes.inside.get(), self._call))
        try:
            yield
        finally:
            lanes.inside.reset(token)

    def leave(self) -> None:
        """Report the open calls as left: the client was cancelled while it waited."""
        for cycle in list(self._flight):
            if not cycle.is_left:
                cycle.is_left = True
                cycle.crossing.left()

    def give_up(self, words: str) -> None:
        """Record that the client itself could not log in, for example because it has no password. A replay raises the
        same error.
        """
        if self.is_served or self._is_logged_in or not self._flight:
            return
        cycle = self._flight.popleft()
        message = b"E", pgwire.error_content({"S": "FATAL", "V": "FATAL", "C": "08001", "M": words})
        cycle.note(message)
        cycle.crossing.chunk(pgwire.to_line(message), "received")
        cycle.end()

    @property
    def left(self) -> Crossing | None:
        """The call that the client waits for if the client left that call on the tape."""
        for cycle in self._flight:
            taped = cycle.crossing.taped
            if taped is not None and taped.how == "left" and not cycle.is_left:
                return cycle.crossing
        return None

    def close(self) -> None:
        self.is_closed = True
        for one in (self._client, self._server, self._listener):
            if one is not None:
                one.close()

    def _next_finished(self) -> Cycle | None:
        try:
            return self._finished.popleft()  # two threads may call this
        except IndexError:
            return None

    def _raise(self) -> None:
        if self.problem is not None:
            raise self.problem

    def _notification(self) -> Any:
        request = {"to": self._name, "after": self._count}
        return deck.Call(
            boundary="sql", name="notification", request=request, facts=self._facts, at=self._at
        )

    def _take(self, data: bytes) -> None:
        """Take bytes of the client."""
        self._from_client.feed(data)
        if self._server is None and not self._is_logged_in:
            self._log_in()
            return
        if not self._is_logged_in:
            # The login has passwords: forward it without recording it.
            self._to_server.send(bytes(self._from_client.rest))
            self._from_client.rest.clear()
            return
        while (message := self._from_client.take()) is not None:
            if message[0] == b"H" and not self._batch and not self._is_open:
                continue  # a pipeline begins with a flush of nothing
            self._batch.append(message)
            if message[0] in ENDS:
                batch, self._batch = self._batch, []
                self._hand_on(batch)

    def _log_in(self) -> None:
        found = self._from_client.take_startup()
        if found is None:
            return
        code, content = found
        cycle = self._flight[0] if self._flight else None
        if code in (pgwire.SSL_REQUEST, pgwire.GSS_REQUEST):
            self._to_client.send(b"N")
        elif cycle is not None and cycle.script is not None:
            self._play(cycle)
            if cycle.error is not None:
                self.close()
        else:
            self._log_in_live(code, content)

    def _hand_on(self, batch: list[Message]) -> None:
        """Record a batch of messages that the server answers, and forward or serve it."""
        if batch[-1][0] == b"X":
            if self._server is not None:
                self._to_server.send(b"".join(map(pgwire.packed, batch)))
            return
        steps = self._described(batch)
        answers = sum(kind in ANSWERED for kind, _ in batch)
        cycle = self._flight[-1] if self._flight else None
        # More messages of the same statement, in a COPY or after a flush, belong to the same call. Whether the server
        # has already answered is a matter of timing, and must not decide where a call ends.
        if cycle is not None and not cycle.is_left and (self._is_open or batch[0][0] in _OF_COPY):
            if answers and cycle.waits_for >= _OPEN:
                cycle.waits_for -= _OPEN
            cycle.waits_for += answers
            self._is_open = batch[-1][0] == b"H"
            if cycle.script is not None:
                self._context.copy().run(self._expect, cycle, line_of(steps))
                return
            cycle.crossing.chunk(line_of(steps), "sent")
        else:
            self._is_open = batch[-1][0] == b"H"
            # A flushed statement ends later, with the next "ready".
            self._begin(steps, answers or _OPEN, is_extended=batch[0][0] != b"Q")
        if self._server is not None:
            self._to_server.send(b"".join(map(pgwire.packed, batch)))

    def _described(self, batch: list[Message]) -> list[dict[str, Any]]:
        """Return the steps of these messages. Recording fails open: messages of an unknown form are forwarded, too."""
        try:
            return self._statements.steps(batch)
        except (struct.error, ValueError, IndexError):
            return [{"messages": pgwire.text(b"".join(kind for kind, _ in batch))}]

    def _begin(self, steps: list[dict[str, Any]], answers: int, *, is_extended: bool) -> None:
        """Begin a statement, which is a call."""
        open_deck = self._context.copy().run(deck.active)
        if open_deck is None:
            return
        if self._server is not None:
            self._settle_late()
        elif self._context.copy().run(self.notified):
            self._flight.clear()
        self._count += 1
        request = request_of(self._name, steps)
        call = deck.Call(
            boundary="sql", name=name_of(steps), request=request, facts=self._facts, at=self._at
        )
        crossing = self._context.copy().run(open_deck.perform, call, Passing())
        cycle = Cycle(crossing, answers, is_extended=is_extended)
        self._flight.append(cycle)
        if cycle.script is not None and self._server is None:
            self._context.copy().run(self._play, cycle)
        elif self._server is None or cycle.script is not None:
            raise Divergence(
                f"{call.name}: a connection is served from the tape or live as a whole. "
                "Let all of it be live: `--live sql`."
            )

    def _send(self, message: Message) -> None:
        self._to_client.send(pgwire.packed(message))

    def _end(self, cycle: Cycle) -> None:
        self._finished.append(cycle)
        if cycle in self._flight:
            self._flight.remove(cycle)
