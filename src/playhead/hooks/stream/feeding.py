"""Fill the other end of a served connection from the tape: at once for a thread, by a task in an event loop.

A thread that reads waits for its place in the order just before it reads (`before_read`). An event loop must not
block, and learns by readiness: there a task of the loop waits for the place, then fills the connection.
"""

from __future__ import annotations

import socket
import sys
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.hooks.stream.talk import Talk, TalkScript
    from playhead.recording.crossing import Crossing

_ROOM = 4 * 1024 * 1024


class Feed:
    """Feeds one served connection. `end` is the tape's end of the socket pair."""

    def __init__(self, talk: Talk, end: socket.socket) -> None:
        self._talk = talk
        self._end = end
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)
        # Delivered pieces that the program has not read: index on the tape, and number of bytes left.
        self._unread: deque[list[int]] = deque()
        self._waiting = bytearray()
        self._task: Any = None
        self._awake: Any = None
        self._is_closed = False

    def begin(self) -> None:
        """Deliver the pieces that are due when the connection is made: the other side may send first."""
        loop = _running_loop()
        if loop is not None:
            self._awake, self._task = loop(self._play)
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
            return size
        index, left = self._unread[0]
        if self._task is None and timeout != 0:
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

    def peer(self, family: int) -> Any:
        name = self._crossing.call.name
        host, _, port = name.rpartition(":")
        if family == socket.AF_INET and port.isdigit():
            return (host, int(port))
        if family == socket.AF_INET6 and port.isdigit():
            return (host.strip("[]"), int(port), 0, 0)
        return name

    def close(self) -> None:
        self._is_closed = True
        if self._awake is not None:
            self._awake.set()
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
        if self._awake is not None:
            self._awake.set()
            return
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

    def _finish(self) -> None:
        if self._script.is_over and self._script.closes and not self._waiting:
            try:
                self._end.shutdown(socket.SHUT_WR)
            except OSError:
                return

    async def _play(self) -> None:
        """Deliver each piece at its place, as a task of an event loop."""
        while not self._is_closed:
            due = self._script.due
            if due is None:
                self._finish()
                if self._script.is_over and self._script.closes:
                    return
                self._awake = type(self._awake)()
                await self._awake.wait()
                continue
            await self._crossing.reach_async(due[0])
            self._deliver(*due)


def _running_loop() -> Any:
    """Return a function that starts a coroutine function in the event loop of this thread, not as a task of the
    program; None if no loop runs here.
    """
    asyncio: Any = sys.modules.get("asyncio")
    loop = None if asyncio is None else asyncio.events._get_running_loop()
    if loop is not None:

        def start(play: Any) -> Any:
            # Not `create_task`, which would count it as a task of the program.
            return asyncio.Event(), asyncio.Task(play(), loop=loop)

        return start
    trio: Any = sys.modules.get("trio")
    if trio is None or not trio.lowlevel.in_trio_run():
        return None

    def spawn(play: Any) -> Any:
        return trio.Event(), trio.lowlevel.spawn_system_task(play)

    return spawn
