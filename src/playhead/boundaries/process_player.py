"""Plays a taped process: real pipes, a real pid, a real exit, and nothing executed but a stand-in.

The stand-in is `/bin/sh`, waiting on a pipe of ours for the one line that tells it how to end: it
costs less than `true` does. The child's ends of the streams are ours: what the tape holds goes in
as far as there is room before the program even has its process back; a thread plays the rest,
and waits for what the program did in between. Knows descriptors and the script; not `subprocess`.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import select
import signal
import termios
from collections import deque
from contextlib import suppress

from playhead import clock, fingerprint
from playhead.boundaries.process_flight import Flight, signal_name
from playhead.boundaries.process_script import Script, Step
from playhead.errors import Divergence

STAND_IN = "/bin/sh"

# A program that does not do again what it did then must not hang for ever.
_PATIENCE_NS = 60 * 1_000_000_000
_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL
# As much as a pipe that is not full surely takes without making us wait.
_AT_ONCE = 4096
_PIPE, _WIDEST = 1 << 16, 1 << 20


class Player:
    """One taped process, being played."""

    def __init__(self, script: Script, flight: Flight) -> None:
        self._script = script
        self._flight = flight
        self._ends: dict[str, int] = {}
        self._alone: set[str] = set()
        self._queues: dict[str, deque[tuple[int, memoryview | None]]] = {}
        self._queued = 0
        self._next = 0
        self._read = 0
        self._lines = 0
        self._odd: bytearray | None = None
        self._closed: set[str] = set()
        self._signals = 0
        self._control = -1
        self._stand_in = -1
        self._wake: tuple[int, int] | None = None

    def take(self, stream: str, fd: int, *, alone: bool = False) -> None:
        """`fd`, the child's end of a stream, is ours from now on. `alone`: nobody else has it, so
        that it need not block, and may hold more than a pipe does by itself.
        """
        self._ends[stream] = fd
        if alone and stream != "stdin":
            os.set_blocking(fd, False)
            self._alone.add(stream)
            _widen(fd, self._size_of(stream))
        elif os.isatty(fd):
            _make_raw(fd)

    def wants(self, stream: str) -> bool:
        """Whether the tape has something to put into this stream."""
        return bool(self._size_of(stream))

    def _size_of(self, stream: str) -> int:
        steps = self._script.steps
        return sum(len(data) for step in steps for name, data in step.writes if name == stream)

    def ready(self) -> int:
        """Give what can be given now. Returns what the stand-in must have as its stdin."""
        self._stand_in, self._control = os.pipe()
        if self._script.signals:
            self._wake = os.pipe()
        self._play()
        return self._stand_in

    def go(self) -> None:
        """The stand-in runs."""
        os.close(self._stand_in)
        if self._control >= 0:
            _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        """There is no stand-in after all."""
        if self._stand_in >= 0:
            os.close(self._stand_in)
        self._finish(None)

    def signalled(self, number: int) -> bool:
        """Whether the tape has this signal here: then it is played, and not to be delivered."""
        wanted = self._script.signals[self._signals : self._signals + 1]
        wake = self._wake
        if wanted != (signal_name(number),) or wake is None:
            return False
        self._signals += 1
        try:
            os.write(wake[1], b"!")
        except OSError:
            return False  # the play has ended in this very moment
        return True

    @property
    def is_at_end(self) -> bool:
        """Whether there is nothing more to come, although the process did not end on the tape."""
        done = self._next == len(self._script.steps) and not self._queues
        return done and self._script.ending is None

    def _run(self) -> None:
        # What the program made of SIGPIPE is its own affair; for us it is a stream that was closed.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        since = clock.mono_ns()
        while self._control >= 0:
            if self._listen(since):
                since = clock.mono_ns()
            elif clock.mono_ns() - since >= _PATIENCE_NS:
                self._skip_waiting()
            self._play()

    def _play(self) -> None:
        """As many steps as the program has done its part for."""
        steps = self._script.steps
        self._give()
        while not self._queues and self._next < len(steps) and self._is_met(steps[self._next]):
            self._check(steps[self._next])
            self._release(steps[self._next])
            self._next += 1
            self._give()
        if self._next == len(steps) and not self._queues and self._script.ending is not None:
            self._finish(self._script.ending)

    def _is_met(self, step: Step) -> bool:
        if (step.closed - self._closed) & self._ends.keys() or step.signals > self._signals:
            return False
        if "stdin" in self._closed or "stdin" not in self._ends:
            return True
        return self._read >= step.stdin or (step.lines is not None and self._lines >= step.lines)

    def _skip_waiting(self) -> None:
        if self._next < len(self._script.steps):
            self._release(self._script.steps[self._next])
            self._next += 1

    def _release(self, step: Step) -> None:
        for stream, data in step.writes:
            self._queue(stream, memoryview(data))
        for stream in step.ends:
            self._queue(stream, None)

    def _queue(self, stream: str, data: memoryview | None) -> None:
        if stream in self._ends:
            self._queues.setdefault(stream, deque()).append((self._queued, data))
            self._queued += 1

    def _give(self) -> None:
        """In taped order while there is room; a stream that is full does not hold up the others."""
        ready = set(self._queues)
        while ready:
            stream = min(ready, key=lambda one: self._queues[one][0][0])
            queue = self._queues[stream]
            order, data = queue.popleft()
            rest = None if data is None else self._write(stream, data)
            if data is None:
                self._close(stream)
            elif rest is None:
                self._closed.add(stream)
                queue.clear()
            elif rest:
                queue.appendleft((order, rest))
                ready.discard(stream)
            if not queue:
                del self._queues[stream]
                ready.discard(stream)

    def _write(self, stream: str, data: memoryview) -> memoryview | None:
        """What found no room; None: the program has closed its end."""
        fd = self._ends[stream]
        at_once = len(data) if stream in self._alone else _AT_ONCE
        while data:
            if stream not in self._alone:
                state = _state(fd)
                if state & _GONE:
                    return None
                if not state & select.POLLOUT:
                    return data
            try:
                data = data[os.write(fd, data[:at_once]) :]
            except BlockingIOError:
                return data
            except BrokenPipeError:
                return None
        return data

    def _listen(self, since: int) -> bool:
        """Wait until the program does something, or has made room. Whether it has."""
        poll = select.poll()
        for stream, fd in self._ends.items():
            if stream == "stdin":
                if "stdin" not in self._closed:
                    poll.register(fd, select.POLLIN)
            elif stream not in self._closed:
                poll.register(fd, select.POLLOUT if stream in self._queues else 0)
        poll.register(self._control, 0)
        if self._wake is not None:
            poll.register(self._wake[0], select.POLLIN)
        left = max(0, _PATIENCE_NS - (clock.mono_ns() - since)) // 1_000_000
        waits = self._next < len(self._script.steps)
        happened = poll.poll(left + 1 if waits else None)
        for fd, state in happened:
            self._notice(fd, state)
        return bool(happened)

    def _notice(self, fd: int, state: int) -> None:
        if fd == self._control:
            self._finish(None)  # the stand-in is gone: killed by a signal that is not on the tape
        elif self._wake is not None and fd == self._wake[0]:
            os.read(fd, 1)
        elif fd == self._ends.get("stdin"):
            self._hear(fd)
        elif state & _GONE:
            for stream, end in self._ends.items():
                if end == fd and stream != "stdin":
                    self._closed.add(stream)
                    self._queues.pop(stream, None)

    def _hear(self, fd: int) -> None:
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""  # a terminal that was closed says so
        if not data:
            self._closed.add("stdin")
            return
        expected = self._script.stdin[self._read : self._read + len(data)]
        if self._odd is not None:
            self._odd += data
        elif data[: len(expected)] != expected:
            self._odd = bytearray(self._script.stdin[: self._read] + data)
        self._read += len(data)
        self._lines += data.count(b"\n")

    def _check(self, step: Step) -> None:
        """Whether the program sent what it had sent then, but for what is minted anew each time."""
        if self._flight.sent or "stdin" not in self._ends:
            return
        if self._odd is None and self._read >= step.stdin:
            return
        sent = self._script.stdin[: self._read] if self._odd is None else bytes(self._odd)
        then, now = (
            fingerprint.rename(raw.decode("utf-8", "replace"))
            for raw in (self._script.stdin[: step.stdin], sent)
        )
        if then == now[: len(then)]:
            return
        at = next(
            (i for i, pair in enumerate(zip(then, now, strict=False)) if pair[0] != pair[1]),
            len(now),
        )
        self._flight.diverged(
            Divergence(
                f"The program sends something else to {self._flight.name} than it did then. "
                f"From character {at} on it was {then[at : at + 60]!r}, "
                f"and now it is {now[at : at + 60]!r}. "
                "Record the run anew, or let this process run for real: `--live process`."
            )
        )
        self._finish("kill -9 $$")

    def _close(self, stream: str) -> None:
        """A terminal is at its end when the last of its users has gone: all of them go."""
        on_terminal = os.isatty(self._ends[stream])
        for name in [*self._ends] if on_terminal else [stream]:
            if name == stream or os.isatty(self._ends[name]):
                os.close(self._ends.pop(name))
                self._closed.add(name)

    def _finish(self, ending: str | None) -> None:
        """All descriptors first: whoever hears of the exit must find the streams at their end."""
        control, self._control = self._control, -1
        while self._ends:
            self._close(next(iter(self._ends)))
        self._queues.clear()
        wake, self._wake = self._wake, None
        for fd in wake or ():
            os.close(fd)
        if control >= 0:
            try:
                if ending is not None:
                    os.write(control, f"{ending}\n".encode())
            except BrokenPipeError:
                ending = None  # the stand-in is gone already
            os.close(control)


def _state(fd: int) -> int:
    room = select.poll()
    room.register(fd, select.POLLOUT)
    return dict(room.poll(0)).get(fd, 0)


def _widen(fd: int, size: int) -> None:
    """Room for all of it, where the system has it to give: then no thread need stand by."""
    widen = getattr(fcntl, "F_SETPIPE_SZ", None)
    if widen is not None and _PIPE < size <= _WIDEST:
        with suppress(OSError):
            fcntl.fcntl(fd, widen, size)


def _make_raw(fd: int) -> None:
    """A terminal that adds nothing: what it echoed and translated then is on the tape already."""
    mode = termios.tcgetattr(fd)
    mode[0] = mode[1] = mode[3] = 0
    termios.tcsetattr(fd, termios.TCSANOW, mode)
