"""Give each HTTP request of an inbound connection a turn, and its code a lane of its own.

A replay of one request (`replay --request`) opens other connections than the recorded run did, so lanes that count
tasks and threads would have other names. The lane of a request is named after its connection and its place in it, both
of which are on the tape. Knows one connection; does not know sockets or event loops.
"""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING, Any

from playhead import clock, events
from playhead.hooks.input.message_frames import MessageFrames
from playhead.recording import ambient, lanes
from playhead.recording.encoder import NewEvent
from playhead.recording.lanes import Lane

if TYPE_CHECKING:
    from playhead.events import Ref
    from playhead.recording.crossing import Crossing

# The member of a turn that is a request of a client, with its connection and its place there.
INBOUND = "inbound"
# Requests without an answer that are kept: a client that never reads its answers must not fill the memory.
_MOST_OPEN = 100


class RequestTurns:
    """The requests of one connection. `number` is that of the connection in its process, from 1; `before` is the number
    of requests that are left out.
    """

    def __init__(self, crossing: Crossing, inbound: Lane, number: int, before: int = 0) -> None:
        self._crossing = crossing
        self._lane = Lane(f"{inbound.name}/{number}", inbound.scope)
        self._connection = self._lane.name
        self._count = before
        self._requests = MessageFrames(is_answer=False)
        self._answers = MessageFrames(is_answer=True)
        # Requests without a complete answer: the reference of the turn, its name, its start, and the status.
        self._open: list[list[Any]] = []
        # When the first byte of the last request came, counted from the beginning of the connection.
        self._since_ns = 0
        # The last turn that began.
        self._turn: Ref | None = None
        # For each thread that reads from the connection: its lane, the event around its code, and the lane for which it
        # takes locks, all of them as before.
        self._before: dict[int, tuple[Lane, Ref | None, Lane | None]] = {}

    def enter(self, data: bytes = b"", *, in_thread: bool = False) -> None:
        """Put the code that runs from here on into the lane of the connection, or of its last request. `data` is what
        the program is about to read. `in_thread`: a thread of the program reads it, and not an event loop.
        """
        before = (lanes.current.get(), lanes.enclosing.get())
        if data and self._requests.is_between:
            self._since_ns = clock.mono_ns() - self._crossing.started_ns
        for kind, name in self._requests.feed(data):
            if kind == "begins":
                self._begin(name)
        lanes.current.set(self._lane)
        if self._turn is not None:
            lanes.enclosing.set(self._turn)
        if in_thread:
            owned = lanes.own_thread(self._lane)
            self._before.setdefault(_thread.get_ident(), (*before, owned))

    def leave(self) -> None:
        """Put this thread back into the lane that it had before it read from the connection."""
        found = self._before.pop(_thread.get_ident(), None)
        if found is not None:
            lane, enclosing, owned = found
            lanes.current.set(lane)
            lanes.enclosing.set(enclosing)
            lanes.own_thread(owned)

    def _begin(self, name: str) -> None:
        # Readings of the request before it must not share an event with readings of this one.
        ambient.flush()
        self._count += 1
        self._lane = Lane(f"{self._connection}/r{self._count}", self._lane.scope)
        lanes.current.set(self._lane)
        self._answers.expect(name.partition(" ")[0])
        place = {"connection": self._crossing.ref, "since_ns": self._since_ns}
        data = {"name": name, "purpose": None, "input": None, INBOUND: place}
        recorder = self._crossing.deck.recorder
        turn = recorder.append(NewEvent(events.TURN_START, data, '""', parent=self._crossing.ref))
        self._turn = turn
        self._open.append([turn, name, clock.mono_ns(), None])
        del self._open[:-_MOST_OPEN]

    def sent(self, data: bytes) -> None:
        """Note the answer that the program sends."""
        for kind, status in self._answers.feed(data):
            if self._open and kind == "begins":
                self._open[0][3] = int(status)
            elif self._open:
                self._end("returned")

    def end(self) -> None:
        """Note that the connection has ended."""
        while self._open:
            # An answer without a length ends with the connection.
            self._end("returned" if self._open[0][3] is not None else "left")

    def _end(self, how: str) -> None:
        # The client has the whole answer next, and may stop the server because of it: `kill` must not take the answer
        # from the tape.
        self._crossing.flush()
        turn, name, began, status = self._open.pop(0)
        if turn is None:
            return  # the beginning was lost, and that is counted
        value = None if status is None else {"status": status}
        data = {"turn": turn, "name": name, "how": how, "took_ns": clock.mono_ns() - began}
        data |= {"last_seam": None, "seams": [], "value": value}
        recorder = self._crossing.deck.recorder
        recorder.append(NewEvent(events.TURN_END, data, '""', parent=turn))
