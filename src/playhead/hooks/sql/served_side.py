"""Answer the client of a relay from the tape.

Runs in the client's thread (`pump`), or in a separate thread if the client waits in C. `relay` has the rest.
"""

from __future__ import annotations

from playhead.errors import Divergence
from playhead.hooks.sql import pgwire
from playhead.hooks.sql.cycles import Cycle, Passing
from playhead.hooks.sql.live_side import READ, accepted, start_thread
from playhead.hooks.sql.relay_state import RelayState
from playhead.recording import deck

_LOGGED_IN = pgwire.packed((b"R", b"\0\0\0\0"))


class ServedSide(RelayState):
    """Answers the client from the tape."""

    def notified(self) -> bool:
        """Serve a message that the server sent without a request, if the tape has one here. Return whether it has."""
        if self._flight or self.is_closed:
            return False
        call = self._notification()
        open_deck = deck.active()
        if open_deck is None or not open_deck.has_answer(call):
            return False
        cycle = Cycle(open_deck.perform(call, Passing()), 0)
        self._flight.append(cycle)
        self._play(cycle)
        return True

    def pump(self) -> bool:
        """Answer the messages that the client has sent so far. Return whether any data was sent or received."""
        if self._client is None:
            try:
                client = accepted(self._listener)
            except BlockingIOError:
                return False
            client.setblocking(False)
            self._meet(client)
        moved = self._to_client.flush()
        while not self.is_closed:
            try:
                data = self._client.recv(READ)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.close()
                break
            moved = True
            self._take(data)
        self._answer_cancels()
        return moved

    def _answer_cancels(self) -> None:
        """Answer a request to cancel. It arrives on a separate connection, which the server closes."""
        if not self._is_cancelled:
            if self._cancelling is None:
                try:
                    self._cancelling = accepted(self._listener)
                except OSError:
                    return
                self._cancelling.setblocking(False)
            try:
                self._cancelling.recv(READ)  # a connection with unread data would be reset
            except BlockingIOError:
                return
            self._cancelling.close()
        self._is_cancelled, self._cancelling = False, None
        if self._flight and self._flight[0].is_left:
            members = {"S": "ERROR", "V": "ERROR", "C": "57014"}
            members["M"] = "canceling statement due to user request"
            self._send((b"E", pgwire.error_content(members)))
            self._send((b"Z", b"I" if self._status == b"I" else b"E"))
            self._flight.clear()

    def await_cancel(self) -> None:
        """Read a request to cancel in a thread, for clients that wait for that in C: libpq before 17."""
        start_thread(self._await_cancel)

    def _await_cancel(self) -> None:
        try:
            self._listener.setblocking(True)
            other = accepted(self._listener)
            self._listener.setblocking(False)
            other.recv(READ)
            self._is_cancelled = True
            other.close()
        except OSError:
            return

    def _serve(self) -> None:
        """Answer the client. This is the thread of a relay whose client waits in C."""
        try:
            self._meet(accepted(self._listener))
            while not self.is_closed and (data := self._client.recv(READ)):
                self._take(data)
        except OSError:
            return
        except BaseException as error:  # noqa: BLE001  raised in the client's thread, see `settle`
            self.problem = error
        finally:
            self.close()

    def _play(self, cycle: Cycle) -> None:
        """Send the taped answer, up to the next message of the client."""
        script, taped = cycle.script, cycle.crossing.taped
        if script is None or taped is None:
            raise AssertionError("only a taped answer is played")
        out: list[bytes] = []
        while cycle.position < len(script) and script[cycle.position][0] == "received":
            line = script[cycle.position][1]
            cycle.position += 1
            message = pgwire.from_line(line)
            cycle.note(message)
            if message[0] == b"Z":
                self._status = message[1]
            out.append(pgwire.packed(message))
            cycle.crossing.chunk(line, "received")
        if not self._is_logged_in and out:
            self._is_logged_in = True
            if cycle.error is None:
                out.insert(0, _LOGGED_IN)
        if out:
            self._to_client.send(b"".join(out))
        if cycle.position < len(script):
            return
        if taped.how == "cut":
            if taped.dies is not None:
                cycle.crossing.cut()
            self.close()
        if taped.how != "left" or not cycle.waits_for:
            self._end(cycle)

    def _expect(self, cycle: Cycle, line: bytes) -> None:
        """Compare further messages of a statement with the tape, and play the answer. Raise a Divergence if they
        differ.
        """
        crossing, script = cycle.crossing, cycle.script or []
        redactor = crossing.deck.recorder.redactor
        for one in line.splitlines(keepends=True):
            crossing.chunk(one, "sent")
            cleaned = one if redactor is None else redactor.clean_bytes(one)
            if cycle.position < len(script) and script[cycle.position][:2] == ("sent", cleaned):
                cycle.position += 1
                continue
            has = script[cycle.position][1] if cycle.position < len(script) else b"nothing more"
            problem = f"{crossing.call.name}: the program sends {_short(one)}, and its tape has {_short(has)}"
            crossing.deck.part(crossing.call, "sql", problem)
            raise Divergence(problem)
        self._play(cycle)


def _short(line: bytes) -> str:
    decoded = pgwire.text(line.strip())
    return decoded if len(decoded) <= 120 else f"{decoded[:120]}…"
