"""Fill the other end of a served connection from the tape: at once for a thread, at its place for an event loop.

A thread that reads waits for its place in the order just before it reads (`before_read`). An event loop must not block.
In asyncio the loop calls us in the turn in which its selector reported the piece in the recorded run; we fill the
connection and run the callback that reads it. The selector would report it one turn later, behind other points. In
trio a task waits for the place, then fills the connection.
"""

from __future__ import annotations

import socket
import sys
from collections import deque

from playhead.host.later import Later
from playhead.recording import order_slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from playhead.hooks.order import event_loops
    from playhead.hooks.stream.talk import Talk, TalkScript
    from playhead.recording.crossing import Crossing
else:
    event_loops = Later(
        "playhead.hooks.order.event_loops"
    )  # only a replay in an event loop needs it

_ROOM = 4 * 1024 * 1024


class Feed:
    """Feeds one served connection of a thread. `end` is the tape's end of the socket pair."""

    # Whether the program waits for its place when it reads.
    _blocks = True

    def __init__(self, talk: Talk, end: socket.socket) -> None:
        self._talk = talk
        self._end = end
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)
        # Delivered pieces that the program has not read: index on the tape, and number of bytes left.
        self._unread: deque[list[int]] = deque()
        self._waiting = bytearray()
        self._is_closed = False
        # Whether the other side has closed its end.
        self._ended = False

    def begin(self) -> None:
        """Deliver the pieces that are due when the connection is made: the other side may send first."""
        self._go_on()

    def took(self, data: bytes) -> int:
        """Take data that the program sends, and deliver the pieces that are due after it."""
        self._talk.sent(data)
        self._go_on()
        return len(data)

    def before_read(self, size: int, timeout: float | None) -> int:
        """Wait for the place of the next piece, and return how many of its bytes may be read at once."""
        self._fill()
        if not self._unread:
            if self._script.is_cut and self._script.is_over:
                self._talk.crossing.cut()  # the recorded run was killed here
            elif self._blocks and timeout != 0 and self._closes_now:
                self._crossing.reach_last()
            return size
        index, left = self._unread[0]
        if self._blocks and timeout != 0:
            self._crossing.reach(index)
        return min(size, left)

    def after_read(self, count: int) -> None:
        while count and self._unread:
            taken = min(count, self._unread[0][1])
            self._unread[0][1] -= taken
            count -= taken
            if not self._unread[0][1]:
                self._unread.popleft()
        self._fill()
        self._go_on()  # a connection that was full could not be closed

    def peer(self, family: int) -> Any:
        name = self._crossing.call.name
        host, _, port = name.rpartition(":")
        if family == socket.AF_INET and port.isdigit():
            return (host, int(port))
        if family == socket.AF_INET6 and port.isdigit():
            return (host.strip("[]"), int(port), 0, 0)
        return name

    def here(self, family: int) -> Any:
        """Return the program's own address if the tape does not have it."""
        return ("127.0.0.1", 0) if family == socket.AF_INET else ("::1", 0, 0, 0)

    def close(self) -> None:
        self._is_closed = True
        self._end.close()

    @property
    def _crossing(self) -> Crossing:
        return self._talk.crossing

    @property
    def _script(self) -> TalkScript:
        script = self._talk.script
        if script is None:
            raise AssertionError("only a taped conversation is played")
        return script

    def _go_on(self) -> None:
        """Deliver the pieces that are due."""
        while (due := self._script.due) is not None:
            self._deliver(*due)
        self._finish()

    def _deliver(self, index: int, data: bytes) -> None:
        self._script.advance()
        if data:
            self._unread.append([index, len(data)])
            self._waiting += data
            self._fill()

    def _fill(self) -> None:
        """Send as much as there is room for. The rest follows when the program has read."""
        while self._waiting and not self._is_closed:
            try:
                count = self._end.send(self._waiting[:65536])
            except BlockingIOError:
                return
            except OSError:
                self._waiting.clear()
                return
            del self._waiting[:count]

    @property
    def _closes_now(self) -> bool:
        """Return whether the other side has sent everything, and closed the connection."""
        return self._script.is_over and self._script.closes and not self._waiting

    def _finish(self) -> None:
        if self._closes_now and not self._ended:
            self._ended = True
            try:
                self._end.shutdown(socket.SHUT_WR)
            except OSError:
                return


class _LoopFeed(Feed):
    """Feeds a connection of an event loop: delivers each piece, and the end, when the loop comes to its place."""

    _blocks = False

    def __init__(self, talk: Talk, end: socket.socket) -> None:
        super().__init__(talk, end)
        # The moment of the piece, or of the end, that waits for its place.
        self._awaited: int | None = None

    def before_read(self, size: int, timeout: float | None) -> int:
        """Deliver the piece that the program got here without waiting. asyncio's `sock_recv` and trio try to read
        before they wait.
        """
        if not self._unread and self._awaited is not None and order_slot.take_read(self._awaited):
            self._show()
        return super().before_read(size, timeout)

    def _go_on(self) -> None:
        """Have the next piece, or the end, delivered at its place."""
        due = self._script.due
        if self._awaited is not None or self._is_closed or (due is None and not self._closes_now):
            return
        taped = self._crossing.taped
        if taped is None:
            raise AssertionError("only a taped conversation is played")
        moment = self._awaited = taped.took_ns if due is None else taped.pieces[due[0]].at_ns

        def is_dead() -> bool:
            return self._is_closed or self._awaited is not moment

        def show() -> None:
            # The program may have read it meanwhile, without waiting.
            if self._awaited is moment:
                self._show()

        def run() -> None:
            self._run(show)

        def attempt(take: Callable[[], bool]) -> None:
            self._try(take, show)

        if not order_slot.pend_read(moment, run, is_dead, attempt):
            # The tape does not know the place, or the replay has passed it.
            self._later(0.0 if due is None else self._crossing.reach_later(due[0]), show)

    def _show(self) -> None:
        self._awaited = None
        if self._is_closed:
            return
        due = self._script.due
        if due is None:
            self._finish()
        else:
            self._crossing.reach_later(due[0])  # does not wait: the next piece is counted from here
            self._deliver(*due)
            self._go_on()

    def _run(self, show: Callable[[], None]) -> None:
        """Deliver in the turn that begins."""
        raise NotImplementedError

    def _try(self, take: Callable[[], bool], show: Callable[[], None]) -> None:
        """Deliver later in this turn, if `take` then returns True."""
        raise NotImplementedError

    def _later(self, seconds: float, show: Callable[[], None]) -> None:
        raise NotImplementedError


class _AsyncioFeed(_LoopFeed):
    """Feeds a connection of asyncio. `fd` is the descriptor of the program's end."""

    def __init__(self, talk: Talk, end: socket.socket, fd: int, loop: Any) -> None:
        super().__init__(talk, end)
        self._fd = fd
        self._loop = loop

    def _run(self, show: Callable[[], None]) -> None:
        self._loop.call_soon(self._show_and_read, show)

    def _try(self, take: Callable[[], bool], show: Callable[[], None]) -> None:
        event_loops.call_if_due(self._loop, take, lambda: self._show_and_read(show))

    def _later(self, seconds: float, show: Callable[[], None]) -> None:
        self._loop.call_later(seconds, self._show_and_read, show)

    def _show_and_read(self, show: Callable[[], None]) -> None:
        """Run the callback that reads this connection, as the loop does when its selector reports data.

        Without a callback (the transport has paused reading) the data stays in the connection.
        """
        show()
        if not self._unread and not self._ended:
            return
        try:
            reader = self._loop._selector.get_key(self._fd).data[0]
        except (AttributeError, KeyError, ValueError):
            return  # the program does not read it now, or the loop is not asyncio's own
        if reader is not None and not reader._cancelled:
            reader._run()


class _TrioFeed(_LoopFeed):
    """Feeds a connection of trio, which polls right after this: its reader is ready in the same turn."""

    def __init__(self, talk: Talk, end: socket.socket, trio: Any) -> None:
        super().__init__(talk, end)
        self._trio = trio

    def _run(self, show: Callable[[], None]) -> None:
        show()

    def _try(self, take: Callable[[], bool], show: Callable[[], None]) -> None:
        # Other tasks of this turn come to their points before the one that reads. It must be ready all the same.
        if not take() and self._awaited is not None:
            order_slot.pass_by(self._awaited)
        show()

    def _later(self, seconds: float, show: Callable[[], None]) -> None:
        async def wait() -> None:
            await self._trio.sleep(seconds)
            show()

        self._trio.lowlevel.spawn_system_task(wait)


def feed_for(talk: Talk, end: socket.socket, fd: int) -> Feed:
    """Return the feed for a connection that is made here: in asyncio, in trio, or in a thread without a loop. `fd` is
    the descriptor of the program's end.
    """
    asyncio: Any = sys.modules.get("asyncio")
    loop = None if asyncio is None else asyncio.events._get_running_loop()
    if loop is not None:
        return _AsyncioFeed(talk, end, fd, loop)
    trio: Any = sys.modules.get("trio")
    if trio is None or not trio.lowlevel.in_trio_run():
        return Feed(talk, end)
    return _TrioFeed(talk, end, trio)
