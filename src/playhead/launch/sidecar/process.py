"""The sidecar's main loop: pass on the command's output, report signals, start and end the services.

Knows pipes, pending signals and one line to the launcher; not what services do. The output has this thread
for itself: services run in threads of their own, so a slow client never delays what the command prints. The
sidecar is in the command's process group, so a signal that was sent to the whole group is pending here as
well. That is how the launcher learns whether the command has received a signal already.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

from playhead import clock
from playhead.host.descriptors import frame, take_frames
from playhead.launch.guest.printed import OutputBuffer
from playhead.launch.sidecar import process_tree
from playhead.launch.sidecar.command_streams import STDIN, Pump, Stream
from playhead.launch.sidecar.services import Service, SharedDeck
from playhead.launch.sidecar.successor import Heir
from playhead.tape.output_position import OutputPage
from playhead.tape.store import PLAN

# The messages between launcher and sidecar; see `control`.
WATCH, SIGNALS, END, TAKEN_OVER = b"W", b"G", b"E", b"T"

# A command that lives longer than this may well start a subprocess: its service is loaded by then.
_EARLY_NS = 50_000_000
# The longest time that services may take to write running calls when the command has ended.
_LONGEST_END_NS = 20_000_000_000
# The pump needs the interpreter's lock many times for each piece of output, and by default may wait 5 ms each
# time that a service computes.
_SWITCH_S = 0.0005


class SidecarProcess:
    """The sidecar. `line` leads to the launcher; `page` says which output is on the tape already (see `output_at`)."""

    def __init__(
        self,
        world: SharedDeck,
        streams: Sequence[Stream],
        services: Sequence[Service],
        *,
        line: socket.socket,
        signals: frozenset[signal.Signals],
        page: OutputPage | None,
        heir: Heir,
        is_taped: bool = True,
    ) -> None:
        """`heir` takes this process's place if it is killed; `is_taped`: output goes on the tape."""
        self._recorder = world.recorder
        self._tape: OutputBuffer | None = OutputBuffer(world.recorder) if is_taped else None
        self._heir = heir
        # Services that the heir keeps open.
        self._kept = {number for number, one in enumerate(services) if not one.is_over}
        self._pumps = [
            Pump(stream, None if stream.name == STDIN or stream.is_terminal else page)
            for stream in streams
        ]
        self._services = services
        self._world = world
        self._signals = signals
        self._line: socket.socket | None = line
        self._buffer = bytearray()
        # Readable when the command has ended; used when the launcher was killed.
        self._command_end: int | None = None
        # The mount namespace of the fence that the command is in.
        self._namespace: process_tree.HeldNamespace | None = None
        self._early_at: int | None = None
        self._is_draining = False
        self._end_at: int | None = None
        # Services end in threads of their own; this wakes the loop.
        self._bell, self._ring = os.pipe()

    def run(self) -> None:
        sys.setswitchinterval(_SWITCH_S)
        while self._pumps or self._line or self._command_end or not self._are_services_over:
            if self._is_draining and all(pump.is_dry and not pump.pending for pump in self._pumps):
                self._end_services()
                if self._are_services_over or clock.mono_ns() >= (self._end_at or 0):
                    self._report_end()
                    continue
            self._turn()
        self._close_tape()

    @property
    def _are_services_over(self) -> bool:
        return all(one.is_over for one in self._services)

    def _turn(self) -> None:
        """Wait for an event, and handle it."""
        for number in [one for one in self._kept if self._services[one].is_over]:
            self._kept.discard(number)
            self._heir.drop_service(number)
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        if self._line is not None and not self._is_draining:
            poll.register(self._line, select.POLLIN)
        if self._command_end is not None:
            poll.register(self._command_end, select.POLLIN)
        for pump in self._pumps:
            pump.register(poll)
        # Not before the command is known: if the recorded run was killed, a replay must know which process to kill.
        idle = [one for one in self._services if not (one.is_started or one.is_over)]
        if self._world.command is None and self._line is not None:
            idle = []
        for one in idle:
            for fd in one.fds:
                poll.register(fd, select.POLLIN)
        ready = dict(poll.poll(self._patience_ms()))
        for pump in list(self._pumps):
            self._pump(pump, ready)
        if self._bell in ready:
            os.read(self._bell, 64)
        if self._line is not None and self._line.fileno() in ready:
            self._hear(self._line)
        elif self._command_end in ready:
            self._see_command_end()
        else:
            self._start_services(idle, ready)

    def _patience_ms(self) -> float | None:
        wanted = [at for at in (self._early_at, self._end_at) if at is not None]
        return max(0, (min(wanted) - clock.mono_ns()) / 1e6 + 1) if wanted else None

    def _start_services(self, idle: Sequence[Service], ready: dict[int, int]) -> None:
        early = self._early_at is not None and clock.mono_ns() >= self._early_at
        if early:
            self._early_at = None
        for one in idle:
            if (early and one.starts_early) or any(fd in ready for fd in one.fds):
                one.start(self._wake)

    def _wake(self) -> None:
        os.write(self._ring, b".")

    def _pump(self, pump: Pump, ready: dict[int, int]) -> None:
        sink = ready.get(pump.stream.sink, 0)
        if sink & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
            self._end_pump(pump)  # its reader has closed it
        elif sink & select.POLLOUT:
            if not pump.push():
                self._end_pump(pump)
            elif not pump.pending:
                self._record(pump, pump.take_piece())
        elif pump.stream.source in ready and not pump.pull():
            self._end_pump(pump)

    def _record(self, pump: Pump, piece: bytes) -> None:
        if self._tape is not None and piece and not pump.stream.is_terminal:
            self._tape.add(pump.stream.name, piece)

    def _end_pump(self, pump: Pump) -> None:
        self._pumps.remove(pump)
        self._record(pump, pump.take_piece() + pump.tail)
        pump.close()
        self._heir.drop_stream(pump.stream)

    def _hear(self, line: socket.socket) -> None:
        try:
            data = line.recv(1024)
        except OSError:
            data = b""
        if not data:
            self._outlive_launcher()
            return
        self._buffer += data
        for letter, payload in take_frames(self._buffer):
            if letter == WATCH:
                self._world.command = int.from_bytes(payload, "big")
                self._namespace = process_tree.HeldNamespace(self._world.command)
                if any(one.starts_early for one in self._services):
                    self._early_at = clock.mono_ns() + _EARLY_NS
            elif letter == SIGNALS:
                got = signal.sigpending() & self._signals
                for one in got:
                    signal.sigwait({one})  # it is pending, so this returns at once
                self._answer(SIGNALS, bytes(sorted(got)))
            elif letter == END:
                self._drain()

    def _end_input(self) -> None:
        """End the pump of the command's stdin: nothing reads it any more."""
        for pump in [one for one in self._pumps if one.is_input]:
            self._end_pump(pump)

    def _drain(self) -> None:
        self._is_draining = True
        self._early_at = None
        self._end_input()
        for pump in self._pumps:
            pump.drain()

    def _outlive_launcher(self) -> None:
        """Continue after the launcher was killed. A recorded command must not notice: serve it until it has ended.
        If its end cannot be seen (before Linux 5.3), services end now. A replay without its launcher is useless,
        and may wait forever for answers of the launcher: end all of its processes.
        """
        self._close_line()
        if (self._recorder.run / PLAN).exists():
            process_tree.end_all(
                str(self._recorder.run),
                root=self._world.command,
                namespace=None if self._namespace is None else self._namespace.name,
            )
        with suppress(OSError, AttributeError):
            if self._world.command is not None:
                self._command_end = os.pidfd_open(self._world.command)
        if self._command_end is None:
            self._see_command_end()

    def _see_command_end(self) -> None:
        """Continue to pass on and record output: no launcher is left to close the tape."""
        if self._command_end is not None:
            os.close(self._command_end)
            self._command_end = None
        self._end_input()
        for one in self._services:
            one.stop(alone=True)

    def _end_services(self) -> None:
        if self._end_at is None:
            self._end_at = clock.mono_ns() + _LONGEST_END_NS
            for one in self._services:
                one.stop(alone=False)

    def _report_end(self) -> None:
        """Report that everything of the run is on the tape. Later output of the command's children is passed on, but
        not recorded.
        """
        for pump in self._pumps:
            self._record(pump, pump.tail)
            pump.tail = b""
        self._close_tape()
        self._is_draining, self._end_at = False, None
        for one in self._services:
            one.is_over = True
        for pump in list(self._pumps):
            pump.owed = None
            if not pump.pull():
                self._end_pump(pump)
        self._answer(END, b"\1" if self._pumps else b"\0")
        self._close_line()

    def _answer(self, letter: bytes, payload: bytes) -> None:
        if self._line is not None:
            with suppress(OSError):  # the launcher was killed
                self._line.sendall(frame(letter, payload))

    def _close_line(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _close_tape(self) -> None:
        self._heir.close_tape()
        if self._tape is not None:
            self._tape.close()
            self._tape = None
            self._recorder.close()
