"""Connect a relay to a real server: forward messages in both directions, and report them.

Runs in the thread of the relay. Knows which statement an answer belongs to; `relay` has the client's side.
"""

from __future__ import annotations

import _socket
import _thread
import select
import sys
from typing import TYPE_CHECKING

from playhead.hooks.sql import pgwire, upstream
from playhead.hooks.sql.cycles import Cycle, Passing
from playhead.hooks.sql.outlet import NOT_NOW, Outlet
from playhead.hooks.sql.relay_state import RelayState
from playhead.recording import deck

if TYPE_CHECKING:
    from typing import Any


READ = 262144


class LiveSide(RelayState):
    """Forwards messages between the client and the server."""

    def _relay(self) -> None:
        """Forward messages in both directions. This is the thread of a live relay."""
        try:
            self._meet(accepted(self._listener))
            self._client.setblocking(False)
            while not self.is_closed:
                for descriptor in self._poll():
                    if descriptor == self._listener.fileno():
                        self._pass_cancel()
                        continue
                    is_client = descriptor == self._client.fileno()
                    with self._lock:
                        if not (self._pass_requests() if is_client else self._pass_answers()):
                            return
        except OSError as error:
            if self._flight:
                self._flight[0].crossing.cut(error)
        finally:
            # A login that failed ends in the client's thread, which knows why: see `give_up`.
            for cycle in list(self._flight) if self._is_logged_in else ():
                cycle.crossing.cut()  # ignored where it has ended
            self._settle_late()
            self.close()

    def _poll(self) -> list[int]:
        """Wait, and return the descriptors that are ready. Also waits for a side that could not take all data yet: a
        client that sends a long pipeline reads only after it has sent all of it.
        """
        poll = select.poll()
        poll.register(self._listener.fileno(), select.POLLIN)
        for one, out in ((self._client, self._to_client), (self._server, self._to_server)):
            if one is not None:
                poll.register(one.fileno(), select.POLLIN | (select.POLLOUT if out.is_full else 0))
        return [descriptor for descriptor, _ in poll.poll()]

    def catch_up(self) -> None:
        """Forward the messages that the client has sent so far. Called in the client's thread."""
        if self._server is not None and not self.is_closed:
            with self._lock:
                try:
                    self._pass_requests()
                except OSError:
                    return  # the thread of the relay reports it

    def _pass_requests(self) -> bool:
        """Forward messages of the client. Return whether it is still connected."""
        self._to_client.flush()
        try:
            data = self._client.recv(READ)
        except BlockingIOError:
            return True
        if data:
            self._take(data)
        return bool(data)

    def _pass_answers(self) -> bool:
        """Forward messages of the server. Return whether it is still connected."""
        self._to_server.flush()
        try:
            data = self._server.recv(READ)
            while data and getattr(self._server, "pending", int)():
                data += self._server.recv(READ)
        except NOT_NOW:
            return True
        if not data:
            return False
        self._from_server.feed(data)
        lines: list[bytes] = []
        out: list[bytes] = []
        ended: list[Cycle] = []
        while (message := self._from_server.take()) is not None:
            out.append(pgwire.packed(pgwire.without_binding(message)))
            if message[0] == b"R":
                continue  # the login is not taped
            if not self._flight:
                self._notice()
            if message[0] == b"Z":
                self._status, self._is_logged_in = message[1], True
            if not self._flight:
                continue
            cycle = self._flight[0]
            cycle.note(message)
            lines.append(pgwire.to_line(message))
            if cycle.waits_for <= 0:
                self._write(cycle, lines)
                lines = []
                ended.append(self._flight.popleft())
        if self._flight:
            self._write(self._flight[0], lines)
        # Before the client gets the answers: when it has read them, it ends the calls that are finished.
        self._finished.extend(one for one in ended if not one.is_left)
        self._to_client.send(b"".join(out))
        return True

    def _write(self, cycle: Cycle, lines: list[bytes]) -> None:
        if lines and not cycle.is_left:
            self._context.copy().run(cycle.crossing.chunk, b"".join(lines), "received")

    def _notice(self) -> None:
        """Begin a call for a message that the server sends without a request of the client."""
        open_deck = self._context.copy().run(deck.active)
        if open_deck is not None:
            perform = self._context.copy().run
            crossing = perform(open_deck.perform, self._notification(), Passing())
            self._flight.append(Cycle(crossing, 0))

    def _settle_late(self) -> None:
        """End finished calls that the client has not ended itself."""
        while self._finished:
            try:
                cycle = self._finished.popleft()
            except IndexError:
                return
            self._context.copy().run(cycle.end)

    def _pass_cancel(self) -> None:
        other = accepted(self._listener)
        try:
            server, _ = upstream.connect(self.target)
            server.sendall(other.recv(READ))
            server.recv(1)
            server.close()
        except OSError:
            pass  # as with libpq: a cancellation that does not arrive is not reported
        other.close()

    def _log_in_live(self, code: int, content: bytes) -> None:
        try:
            self._server, _ = upstream.connect(self.target)
        except OSError as error:
            facts = {
                "S": "FATAL",
                "V": "FATAL",
                "C": "08001",
                "M": upstream.refusal(error, self.target),
            }
            message = b"E", pgwire.error_content(facts)
            while self._flight:
                cycle = self._flight.popleft()
                cycle.note(message)
                self._write(cycle, [pgwire.to_line(message)])
                self._finished.append(cycle)
            self._send(message)
            self.close()
            return
        self._server.setblocking(False)
        self._to_server = Outlet(self._server)
        self._to_server.send(pgwire.startup(code, content))


def accepted(listener: Any) -> Any:
    descriptor, _ = listener._accept()
    return _socket.socket(fileno=descriptor)


def start_thread(function: Any) -> None:
    # Not with `threading`: this thread has no lane, and the program's threads keep their numbers.
    monkey: Any = sys.modules.get("gevent.monkey")
    start = (
        _thread.start_new_thread
        if monkey is None
        else monkey.get_original("_thread", "start_new_thread")
    )
    start(function, ())
