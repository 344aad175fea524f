"""Write the output and read the input of a taped process, at the child's ends of its streams.

Output that does not fit into a pipe is queued. Knows descriptors and bytes; does not know the steps of the process.
"""

from __future__ import annotations

import fcntl
import os
import select
import termios
from collections import deque
from contextlib import suppress
from stat import S_ISFIFO, S_ISSOCK
from typing import TYPE_CHECKING

from playhead import clock
from playhead.hooks.process import output_files
from playhead.hooks.process.stage import make_raw, room_of, widen
from playhead.host.later import Later
from playhead.replay.matching import fingerprint

if TYPE_CHECKING:
    from playhead.replay.report import printed_output
else:
    printed_output = Later("playhead.replay.report.printed_output")

# The events of `poll` for a stream whose other end was closed.
GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL
# A write of this size does not block if `poll` reports that the pipe has room.
_AT_ONCE = 4096
# A program that reads stdout and stderr in two threads needs a moment between reading and handling a piece.
_HANDLING_NS = 4_000_000
# How long pieces of one process wait for their turn, altogether: a program may read one stream to its end first.
_LONGEST_TURNS_NS = 400_000_000


class PlayedStreams:
    """The ends of the streams that a player writes to and reads from, by the names of the streams.

    `in_turn`: write to a stream only after the program has read the other one. A program that finds both stdout and
    stderr readable may take them in either order: Codex shows a model whichever it reads first.
    """

    def __init__(self, *, in_turn: bool = False) -> None:
        self.ends: dict[str, int] = {}
        # Streams whose end no other process holds: writing to them does not block.
        self.alone: set[str] = set()
        self.queues: dict[str, deque[tuple[int, memoryview | None]]] = {}
        # Streams that have come to their end, or that the program has closed.
        self.closed: set[str] = set()
        self._queued = 0
        # Streams that go to the terminal of the replay itself, whose mode is not changed.
        self._inherited: set[str] = set()
        # The stream that was written last, and until when another one waits for its turn.
        self._written = ""
        self._quiet_ns = 0
        self._left_ns = _LONGEST_TURNS_NS if in_turn else 0

    def take(self, stream: str, fd: int, size: int | None, *, cooked: bool = False) -> None:
        """Take over an end. `size` is the number of bytes that will be written to it; None if other processes hold the
        end, too. `cooked` means that the tape has the output before its terminal translated it.
        """
        self.ends[stream] = fd
        if size is not None and stream != "stdin":
            os.set_blocking(fd, False)
            self.alone.add(stream)
            widen(fd, size)
        elif os.isatty(fd):
            if _is_inherited(fd):
                self._inherited.add(stream)
            elif not cooked:
                make_raw(fd)

    def queue(self, stream: str, data: memoryview | None) -> None:
        if stream in self.ends:
            self.queues.setdefault(stream, deque()).append((self._queued, data))
            self._queued += 1

    def give(self) -> None:
        """Write queued output in taped order while there is room. A full stream does not block the others."""
        ready = set(self.queues)
        while ready:
            stream = min(ready, key=lambda one: self.queues[one][0][0])
            queue = self.queues[stream]
            if queue[0][1] is not None and self._waits(stream):
                return  # the stage calls again: there is room in the pipe
            order, data = queue.popleft()
            rest = None if data is None else self._write(stream, data)
            if data is None:
                self.close(stream)
            elif rest is None:
                self.closed.add(stream)
                queue.clear()
            elif rest:
                queue.appendleft((order, rest))
                ready.discard(stream)
            if not queue:
                del self.queues[stream]
                ready.discard(stream)

    def _waits(self, stream: str) -> bool:
        """Wait a millisecond if it is not this stream's turn yet, and return whether that is so."""
        other = self.ends.get(self._written)
        if self._left_ns <= 0 or other is None or self._written == stream:
            self._written, self._quiet_ns = stream, 0
            return False
        before = clock.mono_ns()
        if _is_unread(other):
            self._quiet_ns = 0
        elif not self._quiet_ns:
            self._quiet_ns = before + _HANDLING_NS
        elif before >= self._quiet_ns:
            self._written, self._quiet_ns = stream, 0
            return False
        clock.sleep(0.001)
        self._left_ns -= clock.mono_ns() - before
        return True

    def _write(self, stream: str, data: memoryview) -> memoryview | None:
        """Write, and return the bytes that did not fit; None if the program has closed its end."""
        fd = self.ends[stream]
        at_once = len(data) if stream in self.alone else _AT_ONCE
        while data:
            if stream not in self.alone:
                state = room_of(fd)
                if state & GONE:
                    return None
                if not state & select.POLLOUT:
                    return data
            try:
                size = os.write(fd, data[:at_once])
                if stream in self._inherited:
                    output_files.shown_on_terminal(stream, bytes(data[:size]))
                data = data[size:]
            except BlockingIOError:
                return data
            except BrokenPipeError:
                return None
        return data

    def close(self, stream: str) -> None:
        """Close a stream. A terminal ends when its last descriptor is closed, so all its descriptors are closed."""
        on_terminal = os.isatty(self.ends[stream])
        for name in [*self.ends] if on_terminal else [stream]:
            if name == stream or os.isatty(self.ends[name]):
                os.close(self.ends.pop(name))
                self.closed.add(name)

    def watched(self) -> dict[int, int]:
        """Return the descriptors that show the program's actions, with the events to poll for."""
        asked = {}
        # A copy: an event loop may close one meanwhile.
        for stream, fd in self.ends.copy().items():
            if stream == "stdin" and stream not in self.closed:
                asked[fd] = select.POLLIN
            elif stream not in self.closed:
                asked[fd] = select.POLLOUT if stream in self.queues else 0
        return asked

    def lose(self, fd: int) -> None:
        """Note that the program has closed the other end of this descriptor."""
        for stream, end in self.ends.items():
            if end == fd:
                self.closed.add(stream)
                self.queues.pop(stream, None)


def _is_unread(fd: int) -> bool:
    """Return whether there are bytes in a pipe or a socket that its reader has not read."""
    mode = os.fstat(fd).st_mode
    if not (S_ISFIFO(mode) or S_ISSOCK(mode)):
        return False
    question = termios.TIOCOUTQ if S_ISSOCK(mode) else termios.FIONREAD
    with suppress(OSError):
        return any(fcntl.ioctl(fd, question, bytes(4)))
    return False


def _is_inherited(fd: int) -> bool:
    """Return whether this is the terminal of our own standard streams, and not one that the program made."""
    device = os.fstat(fd).st_rdev
    for own in (0, 1, 2):
        with suppress(OSError):
            if os.isatty(own) and os.fstat(own).st_rdev == device:
                return True
    return False


class PlayedInput:
    """The input that the program sends to a taped process, compared with the recorded input."""

    def __init__(self, expected: bytes, *, has_own_clock: bool = False) -> None:
        self._expected = expected
        self._has_own_clock = has_own_clock
        self._size = 0
        self._lines = 0
        # All input so far, once it differs from the tape.
        self._odd: bytearray | None = None

    def add(self, data: bytes) -> None:
        expected = self._expected[self._size : self._size + len(data)]
        if self._odd is not None:
            self._odd += data
        elif data[: len(expected)] != expected:
            self._odd = bytearray(self._expected[: self._size] + data)
        self._size += len(data)
        self._lines += data.count(b"\n")

    def has(self, size: int, lines: int | None) -> bool:
        """Return whether the program has sent this many bytes, or this many whole lines."""
        return self._size >= size or (lines is not None and self._lines >= lines)

    def difference(self, size: int) -> tuple[int, str, str] | None:
        """Return where the first `size` bytes differ from those on the tape, and both texts from there; None if they
        do not differ. Values that change in every run, such as ids and times, do not count.
        """
        if self._odd is None and self._size >= size:
            return None
        sent = self._expected[: self._size] if self._odd is None else bytes(self._odd)
        then, now = (
            fingerprint.rename(raw.decode("utf-8", "replace"))
            for raw in (self._expected[:size], sent)
        )
        if then == now[: len(then)]:
            return None
        if self._has_own_clock and (
            # Lines about progress come and go, so an earlier part has no exact end: only the whole is compared.
            size < len(self._expected) or printed_output.alike(self._expected, sent)
        ):
            return None
        same = zip(then, now, strict=False)
        at = next((i for i, pair in enumerate(same) if pair[0] != pair[1]), len(now))
        return at, then[at : at + 60], now[at : at + 60]
