"""Record one connection that an outside client opened to the program, and compare the answers in a replay.

Knows bytes in both directions, and HTTP only to name a request; does not know sockets or event loops.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import re
import sys
from itertools import count
from typing import TYPE_CHECKING, Any

from playhead.hooks.input import input_slot
from playhead.hooks.input.request_turns import RequestTurns
from playhead.host.later import Later
from playhead.recording import ambient, deck, lanes
from playhead.recording.adapter import Adapter
from playhead.recording.crossing import END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.hooks.input import deliveries
    from playhead.recording.crossing import Crossing
    from playhead.recording.lanes import Lane
    from playhead.replay import answered_connections
else:
    answered_connections = Later("playhead.replay.answered_connections")
    deliveries = Later("playhead.hooks.input.deliveries")  # a recorded program never needs it

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not bound
_MOST_REQUESTS = 100
_SHOWN = 80
_REQUEST = re.compile(
    rb"(?:^|\n)((?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) [^\s]{1,200}) HTTP/1\.[01]\r\n"
)
_DATE = re.compile(rb"(?i)\r\ndate: [^\r\n]{1,40}(?=\r\n)")

# The numbers of the connections to this process.
_numbers = count(1)


class InboundConnection:
    """One connection to the program."""

    def __init__(self, crossing: Crossing, port: int, turns: RequestTurns | None = None) -> None:
        """`turns`: None for a tape of an earlier version, in which requests have no lanes of their own."""
        self.crossing = crossing
        self.port = port
        self.turns = turns
        self.is_closed_by_program = False
        # In a replay: what the client has sent and the program has not read yet.
        self.deliveries: deliveries.Deliveries | None = None
        self._answer = bytearray()
        self._is_compared = self._is_reported = False
        self._writes = 0
        self._waiting: tuple[int, int, Callable[[], None]] | None = None
        self._requests: list[str] = []
        # When the client had sent everything; None if it closed the connection without that.
        self._ends: dict[str, int] | None = None

    def enter(self) -> None:
        """Put the code that runs from here on into the lane of this connection."""
        if self.turns is not None:
            self.turns.enter()

    def received(self, data: bytes, *, in_thread: bool = False) -> None:
        if self.turns is not None:
            self.turns.enter(bytes(data), in_thread=in_thread)
        if self.deliveries is not None:
            self.deliveries.received(len(data))
            return
        self._requests += requests_in(bytes(data))
        self.crossing.chunk(bytes(data), "received")

    def client_ended(self) -> None:
        """Record that the client sends nothing more."""
        if self.deliveries is None:
            self._ends = {"received": self.crossing.moment()}

    def sent(self, data: Any) -> None:
        if self.crossing.taped is not None:
            self._answer += data
            self._writes += 1
            self._look_at_answer()
            if not self._is_reported and len(self._answer) >= self._sent_before(END)[0]:
                self._report()
        else:
            # Flush the tape before the client gets the answer: the client may stop the server next.
            ambient.flush()
        self.crossing.chunk(bytes(data), "sent")
        if self.turns is not None:
            self.turns.sent(bytes(data))

    def end(self) -> None:
        if self.deliveries is not None:
            self.deliveries.over()
        if self.turns is not None:
            self.turns.end()
        by = "program" if self.is_closed_by_program else "client"
        requests = self._requests[:_MOST_REQUESTS] or None
        self.crossing.returned(closed_by=by, requests=requests, eof_ns=self._ends)

    def when_answered(self, point: int, run: Callable[[], None]) -> bool:
        """Call `run` when the program has sent all that it sent before this point of the tape. Return False if it has
        sent that already.

        The client acted because of that answer. The program may need more turns of its event loop for it than on the
        tape, because a replay connects and sends through the system.

        The number of writes counts as well as the size: an answer may be shorter than on the tape, and a redacted
        answer may have any length.
        """
        if self.crossing.taped is None:
            return False
        size, writes = self._sent_before(point)
        if len(self._answer) >= size or self._writes >= writes:
            return False
        self._waiting = (size, writes, run)
        return True

    def _sent_before(self, point: int) -> tuple[int, int]:
        """Return how many bytes the program had sent before this point of the tape, and how often."""
        pieces = [] if self.crossing.taped is None else self.crossing.taped.pieces
        before = pieces if point == END else pieces[:point]
        sent = [len(one.data) for one in before if one.stream == "sent"]
        return sum(sent), len(sent)

    def _report(self) -> None:
        """Tell clients of the same run, which a replay plays, that this connection has its answer."""
        taped = self.crossing.taped
        self._is_reported = True
        if taped is not None:
            folder = self.crossing.deck.recorder.folder
            answered_connections.report(folder, taped.match.get("of"))

    def _look_at_answer(self, *, is_over: bool = False) -> None:
        if self._waiting is None:
            return
        size, writes, run = self._waiting
        if is_over or len(self._answer) >= size or self._writes >= writes:
            self._waiting = None
            run()

    def replaced_by(self, other: InboundConnection) -> None:
        """Leave the comparison to another object for the same connection."""
        self._is_compared = True
        self.crossing.deck.look_last(other.compare)

    def compare(self) -> None:
        """Report an answer that differs from the taped one."""
        self._look_at_answer(is_over=True)
        taped = self.crossing.taped
        if taped is None or self._is_compared:
            return
        self._is_compared = True
        if not self._is_reported:
            self._report()
        redactor = self.crossing.deck.recorder.redactor
        now = bytes(self._answer) if redactor is None else redactor.clean_bytes(bytes(self._answer))
        then = b"".join([one.data for one in taped.pieces if one.stream == "sent"])
        # Servers set the date once a second: which request is the first of a second is not on the tape.
        now, then = _DATE.sub(b"", now), _DATE.sub(b"", then)
        if taped.how == "cut":
            # The recorded process was killed before the rest of the answer was written to the tape.
            now = now[: len(then)]
        if now == then:
            return
        at = next(
            (at for at, (a, b) in enumerate(zip(then, now, strict=False)) if a != b),
            min(len(then), len(now)),
        )
        low = max(0, at - 20)
        asked = b"".join([one.data for one in taped.pieces if one.stream == "received"])
        name = ", ".join(requests_in(asked)[:3]) or self.crossing.call.name
        self.crossing.deck.part(
            self.crossing.call,
            "answer",
            f"answer to {name}: {then[low : low + _SHOWN]!r} → {now[low : low + _SHOWN]!r}",
        )


class ArrivedConnection(Adapter):
    """A recorded connection."""

    __slots__ = ("_port",)

    streams = True

    def __init__(self, port: int) -> None:
        self._port = port

    def live(self, crossing: Crossing) -> InboundConnection:
        number = next(_numbers)
        crossing.head({"client_port": self._port, "number": number}, clean=True)
        input_slot.watch(crossing)
        turns = RequestTurns(crossing, lanes.current.get(), number)
        return InboundConnection(crossing, self._port, turns)

    def observe(self, crossing: Crossing, result: InboundConnection) -> InboundConnection:
        return result


class TapedConnection(Adapter):
    """A connection that a replay opens."""

    __slots__ = ()

    streams = True

    async def serve(self, crossing: Crossing) -> InboundConnection:
        return taped_connection(crossing)


class TapedConnectionOfThread(Adapter):
    """A connection that a thread of a replay opens."""

    __slots__ = ()

    streams = True

    def serve(self, crossing: Crossing) -> InboundConnection:
        return taped_connection(crossing)


def taped_connection(crossing: Crossing) -> InboundConnection:
    """Return the connection that a replay opens for this call."""
    taped = crossing.taped
    head = taped.head if taped is not None else None
    facts = head if isinstance(head, dict) else {}
    port, number = facts.get("client_port"), facts.get("number")
    turns = None
    if isinstance(number, int):
        # A replay of one request begins with that one.
        before = (taped.request or 1) - 1 if taped is not None else 0
        turns = RequestTurns(crossing, lanes.current.get(), number, before)
    made = InboundConnection(crossing, port if isinstance(port, int) else 0, turns)
    made.deliveries = deliveries.Deliveries()
    # The program may never close the connection: its end is that of the process.
    crossing.deck.look_last(made.compare)
    return made


def requests_in(data: bytes) -> list[str]:
    """Return a name such as `POST /ask` for each HTTP request that begins in these bytes."""
    return [found.decode("ascii", "replace") for found in _REQUEST.findall(data)]


def call_for(address: Any, worker: str | None = None) -> deck.Call:
    """Return the call of a connection to this address of the program. `worker` is its lane if several processes accept
    from one listener: a replay of each process must not open the connections of the others.
    """
    name = f"connection to port {address[1]}"
    if worker is None:
        return deck.Call(boundary="input", name=name)
    return deck.Call(boundary="input", name=name, request={"worker": worker})


def loopback(address: Any) -> Any:
    """Return the address by which this machine reaches a listener."""
    return (_WILDCARDS.get(address[0], address[0]), *address[1:])


@contextlib.contextmanager
def in_lane(lane: Lane) -> Iterator[None]:
    before = lanes.current.set(lane)
    try:
        yield
    finally:
        lanes.current.reset(before)


def is_own_client(port: int) -> bool:
    """Return whether the other end of a connection from this local port is a socket of this process."""
    inodes = set()
    for name in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        with contextlib.suppress(OSError), open(name, encoding="ascii") as table:
            for line in table:
                fields = line.split()
                if len(fields) > 9 and fields[1].endswith(f":{port:04X}"):
                    inodes.add(f"socket:[{fields[9]}]")
    with contextlib.suppress(OSError):
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{fd}") in inodes:
                    return True
    return False


def is_of_the_run(sock: Any) -> bool:
    """Return whether the process at the other end of this Unix socket belongs to the recorded run.

    It inherits our variables. A process of another user, or one that has ended, counts as part of the run: the run is
    `partial` only if that is certain.
    """
    try:
        peer = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        return _run_of("self") in {None, _run_of(str(int.from_bytes(peer[:4], sys.byteorder)))}
    except (OSError, AttributeError):
        return True


def _run_of(pid: str) -> bytes | None:
    """Return the run that the process was started in. Our own process hides the variable from the program."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        variables = file.read().split(b"\0")
    return next((one for one in variables if one.startswith(b"PLAYHEAD_RUN=")), None)
