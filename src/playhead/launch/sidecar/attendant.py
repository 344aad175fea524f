"""A small process of our own beside the command: passes its output on, and bears witness to signals.

Knows pipes and pending signals; not runs. A process and not a thread of the launcher: whatever becomes
of the launcher (`kill -9`), the command's output must go on flowing. It is in the command's process
group, so a signal that was sent to all of them reaches it as well: that is how the launcher knows
whether the command has got a signal already, or has to be told.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from playhead.host import descriptors
from playhead.launch.guest.printed import OutputBuffer
from playhead.launch.sidecar.command_streams import Stream
from playhead.launch.sidecar.pump import Pump
from playhead.recording.recorder import Recorder
from playhead.tape.output_at import OutputPage

_ASK_SIGNALS = b"s"
_DRAIN = b"d"
_ENDED = b"e"
_GOING_ON = b"g"


class Attendant:
    """The launcher's end."""

    def __init__(self, pid: int, ask: int, hear: int) -> None:
        self.pid = pid
        self._ask = ask
        self._hear = hear

    def signals(self) -> frozenset[int]:
        """The signals that have reached the process group since this was asked last."""
        count = self._asked(_ASK_SIGNALS)
        return frozenset(os.read(self._hear, count[0])) if count and count[0] else frozenset()

    def dismiss(self) -> None:
        """Returns when all that the command wrote has been passed on and is on the tape. What its
        own children write later is still passed on: then the attendant stays behind for them.
        """
        done = self._asked(_DRAIN)
        os.close(self._ask)
        os.close(self._hear)
        if done != _GOING_ON:
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)

    def _asked(self, question: bytes) -> bytes:
        try:
            os.write(self._ask, question)
            return os.read(self._hear, 1)
        except OSError:
            return b""  # killed: nothing more to hear from it


def post(
    recorder: Recorder, streams: Sequence[Stream], signals: frozenset[signal.Signals]
) -> Attendant:
    """Fork the attendant. `signals` are blocked already, and stay so in it."""
    ask, hear = os.pipe(), os.pipe()
    page = _page(recorder.run, streams)
    pid = os.fork()
    if pid == 0:
        try:
            descriptors.keep_only(
                0, 1, 2, ask[0], hear[1], *(fd for one in streams for fd in (one.source, one.sink))
            )
            _Attending(recorder, streams, signals, ask[0], hear[1], page=page).attend()
        finally:
            os._exit(0)
    os.close(ask[0])
    os.close(hear[1])
    return Attendant(pid, ask[1], hear[0])


def _page(run: Path, streams: Sequence[Stream]) -> OutputPage | None:
    try:
        return OutputPage(run, {one.name: one.source for one in streams}) if streams else None
    except OSError:
        return None  # a full disk: then no process knows which output is a child's own


class _Attending:
    """The attendant's own end."""

    def __init__(
        self,
        recorder: Recorder,
        streams: Sequence[Stream],
        signals: frozenset[signal.Signals],
        asked: int,
        answer: int,
        *,
        page: OutputPage | None,
    ) -> None:
        self._recorder = recorder
        self._tape: OutputBuffer | None = OutputBuffer(recorder)
        self._pumps = [Pump(stream, page) for stream in streams]
        self._signals = signals
        self._asked = asked
        self._answer = answer
        self._listening = True
        self._draining = False

    def attend(self) -> None:
        while self._pumps or self._listening:
            if self._draining and all(pump.is_dry and not pump.pending for pump in self._pumps):
                self._drained()
            poll = select.poll()
            if self._listening and not self._draining:
                poll.register(self._asked, select.POLLIN)
            for pump in self._pumps:
                pump.register(poll)
            ready = dict(poll.poll())
            for pump in list(self._pumps):
                self._pump(pump, ready)
            if self._asked in ready:
                self._answer_to(os.read(self._asked, 1))
        self._close_tape()

    def _pump(self, pump: Pump, ready: dict[int, int]) -> None:
        sink = ready.get(pump.stream.sink, 0)
        if sink & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
            self._end(pump)  # its reader has left
        elif sink & select.POLLOUT:
            if not pump.push():
                self._end(pump)
            elif not pump.pending:
                self._record(pump, pump.told())
        elif pump.stream.source in ready and not pump.pull():
            self._end(pump)

    def _record(self, pump: Pump, piece: bytes) -> None:
        if self._tape is not None and piece:
            self._tape.add(pump.stream.name, piece)

    def _end(self, pump: Pump) -> None:
        self._pumps.remove(pump)
        self._record(pump, pump.told() + pump.tail)
        pump.close()

    def _answer_to(self, question: bytes) -> None:
        if question == _ASK_SIGNALS:
            got = signal.sigpending() & self._signals
            for one in got:
                signal.sigwait({one})
            os.write(self._answer, bytes([len(got), *got]))
        elif question == _DRAIN:
            self._draining = True
            for pump in self._pumps:
                pump.drain()
        else:
            self._listening = False  # the launcher is gone; the command is not

    def _drained(self) -> None:
        """All that the command wrote is passed on. What its children write from here on is so, too,
        but the run has ended.
        """
        for pump in self._pumps:
            self._record(pump, pump.tail)
            pump.tail = b""
        self._close_tape()
        self._draining = False
        for pump in list(self._pumps):
            pump.owed = None
            if not pump.pull():
                self._end(pump)
        os.write(self._answer, _GOING_ON if self._pumps else _ENDED)

    def _close_tape(self) -> None:
        if self._tape is not None:
            self._tape.close()
            self._tape = None
            self._recorder.close()
