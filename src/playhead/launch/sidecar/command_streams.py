"""Decide how the command's output is passed on and recorded, and pass on one stream of it.

A terminal is left to the command. In front of everything else (pipes, files, sockets, /dev/null) stands a pipe
from which the sidecar reads, records and writes to the original target. A replay gives the command what the recorded
one had, because many programs print differently on a terminal: a pipe in front of our terminal, or a terminal of the
recorded size in front of our pipe. Knows descriptors; not processes.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import termios
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from playhead.tape.output_position import OutputPage

STDIN = "stdin"
# F_SETPIPE_SZ. Python 3.10 has the name only if the C library it was built with has it.
_SET_PIPE_SIZE = 1031
_PIPE_SIZE = 1024 * 1024
_NAMES = {1: "stdout", 2: "stderr"}
# Above the descriptors that programs and shells use by number.
HIGH = 60
_USUAL_SIZE = (80, 24)
_PIPED = "piped"
_WITH = "with "
# Device and number of a file, and whether the command gets a terminal in front of it.
_Place = tuple[int, int, bool]
# A terminal holds less than this between a program that writes and us.
_TERMINAL_HOLDS = 128 * 1024


class Stream(NamedTuple):
    """A pipe between the command and one or two of its descriptors. For stdin the bytes flow the other way: `source`
    is the original descriptor, `entry` the end that the command reads, `sink` the end that the sidecar fills.
    """

    name: str
    # The command's descriptors that lead into it.
    fds: tuple[int, ...]
    # The two ends of the pipe, and its target: a duplicate of the command's original descriptor.
    source: int
    entry: int
    sink: int
    # Whether it is a terminal in front of the target. The program's own streams record what is written to a terminal.
    is_terminal: bool = False


class TapedOutput(NamedTuple):
    """The stdout and stderr of a recorded command."""

    # As in `StreamPlan.kinds`.
    kinds: Mapping[str, Any]
    # Columns and lines of its terminal. None: it had none, or an older Playhead recorded it.
    size: tuple[int, int] | None
    # Whether an agent with its own clock printed it.
    has_own_clock: Callable[[], bool] = bool


def taped_output(
    then: Mapping[str, Any], has_own_clock: Callable[[], bool] = bool
) -> TapedOutput | None:
    """Read the facts of a recorded run. None: its tape has none about output."""
    kinds, size = then.get("output"), then.get("terminal_size")
    if not isinstance(kinds, dict):
        return None
    if not (isinstance(size, list) and len(size) == 2 and all(type(one) is int for one in size)):
        return TapedOutput(kinds=kinds, size=None, has_own_clock=has_own_clock)
    return TapedOutput(kinds=kinds, size=(size[0], size[1]), has_own_clock=has_own_clock)


class StreamPlan(NamedTuple):
    """How the command's stdout and stderr are handled."""

    streams: tuple[Stream, ...]
    # The devices of those descriptors that are terminals.
    terminals: tuple[int, ...]
    # For the tape: {"stdout": "piped", "stderr": "terminal"}.
    kinds: dict[str, str]
    # Columns and lines of the terminal.
    size: tuple[int, int] | None

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts for the tape."""
        size = {} if self.size is None else {"terminal_size": list(self.size)}
        return {"output": self.kinds, **size}


def plan(taped: TapedOutput | None = None) -> StreamPlan:
    """Look at our own stdout and stderr, which the command inherits, and plan pipes for them. `taped`: those of the
    recorded command, if this is a replay.
    """
    streams: dict[_Place, Stream] = {}
    terminals: list[int] = []
    kinds: dict[str, str] = {}
    size: tuple[int, int] | None = None
    for fd, name in _NAMES.items():
        try:
            found = os.fstat(fd)
        except OSError:
            kinds[name] = "closed"
            continue
        own_size = _size_of(fd)
        wanted = _wanted_size(name, own_size, taped)
        if own_size is not None and wanted == own_size:
            kinds[name], size = "terminal", own_size
            terminals.append(found.st_rdev)
            continue
        place = (found.st_dev, found.st_ino, wanted is not None)
        # `2>&1`: with two pipes into one file, the order of the writes could change.
        if wanted is None and taped is not None and streams:
            place = _taped_place(taped, name, place, streams)
        before = streams.get(place)
        opened = _opened(name, fd, wanted) if before is None else _joined(before, fd)
        streams[place] = opened
        if wanted is None:
            kinds[name] = _PIPED if before is None else f"{_WITH}{before.name}"
        else:
            kinds[name], size = "terminal", wanted
            terminals.append(os.fstat(opened.entry).st_rdev)
    return StreamPlan(
        streams=tuple(streams.values()),
        terminals=tuple(dict.fromkeys(terminals)),
        kinds=kinds,
        size=size,
    )


def _taped_place(
    taped: TapedOutput, name: str, own: _Place, streams: Mapping[_Place, Stream]
) -> _Place:
    """Return the key of a second stream. It is joined with the first one if that was so on the tape.

    Agents with their own clock write times and progress to stderr, which do not count, and answers to stdout, which
    do. In a joined stream the two cannot be told apart. All other programs have our own streams.
    """
    kind = taped.kinds.get(name)
    is_joined = isinstance(kind, str) and kind.startswith(_WITH)
    if is_joined is (own in streams) or not (is_joined or kind == _PIPED):
        return own
    if not taped.has_own_clock():  # reads the tape
        return own
    return next(iter(streams)) if is_joined else (*own[:2], True)


def _size_of(fd: int) -> tuple[int, int] | None:
    """Return columns and lines of a terminal, None for everything else."""
    if not os.isatty(fd):
        return None
    try:
        found = os.get_terminal_size(fd)
    except OSError:
        return (0, 0)  # a terminal without a size
    return found.columns, found.lines


def _wanted_size(
    name: str, own: tuple[int, int] | None, taped: TapedOutput | None
) -> tuple[int, int] | None:
    """Return the size of the terminal that the command needs for this stream. None: it needs a pipe."""
    kind = None if taped is None else taped.kinds.get(name)
    if taped is None or not isinstance(kind, str) or kind == "closed":
        return own
    if kind != "terminal":
        return None
    return taped.size or own or _USUAL_SIZE


def _opened(name: str, fd: int, size: tuple[int, int] | None) -> Stream:
    if size is not None:
        source, entry = (moved_up(end) for end in os.openpty())
        modes = termios.tcgetattr(entry)
        modes[
            1
        ] &= ~termios.OPOST  # the target gets what the program wrote, without carriage returns
        termios.tcsetattr(entry, termios.TCSANOW, modes)
        fcntl.ioctl(entry, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    else:
        source, entry = (moved_up(end) for end in os.pipe())
    # Only the reading end: a program that finds its stdout non-blocking would lose output.
    os.set_blocking(source, False)
    # A full pipe stops the command until the sidecar runs again. The usual 64 KiB are full within a millisecond.
    with suppress(OSError):  # the user's pipes already hold as much as the system allows
        fcntl.fcntl(source, _SET_PIPE_SIZE, _PIPE_SIZE)
    sink = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH)
    return Stream(
        name=name, fds=(fd,), source=source, entry=entry, sink=sink, is_terminal=size is not None
    )


def _joined(stream: Stream, fd: int) -> Stream:
    return stream._replace(fds=(*stream.fds, fd))


def moved_up(fd: int) -> int:
    """Move a descriptor above the usual numbers: if stdin, stdout or stderr was closed, a pipe would take its
    number.
    """
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH)
    os.close(fd)
    return moved


# Half the size from which on a payload goes into a blob: a piece of output is one line of the tape.
_AT_ONCE = 32 * 1024


def _is_patient(fd: int) -> bool:
    """Return whether a write of any size never waits for a reader: files, and devices that are not terminals."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))


def _is_readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(found & select.POLLIN for _, found in poll.poll(0))


class Pump:
    """Passes on one stream: reads from the command, writes to the target. Streams do not wait for each other."""

    def __init__(self, stream: Stream, page: OutputPage | None = None) -> None:
        self.stream = stream
        self._page = page
        self._largest_write = _AT_ONCE if _is_patient(stream.sink) else select.PIPE_BUF
        # The bytes that are read but not yet written; the whole piece that they are the rest of; its incomplete last
        # character.
        self.pending = b""
        self.piece = b""
        self.tail = b""
        # The number of bytes in the pipe when the command had ended; None: it has not ended.
        self.owed: int | None = None

    @property
    def is_input(self) -> bool:
        """Return whether this is the command's stdin, which ends with the command."""
        return self.stream.name == STDIN

    @property
    def is_dry(self) -> bool:
        if self.owed is None:
            return False
        return self.owed <= 0 or (self.stream.is_terminal and not _is_readable(self.stream.source))

    def drain(self) -> None:
        """Count the remaining bytes from here on: a child that was left behind might write forever."""
        if self.stream.is_terminal:
            self.owed = _TERMINAL_HOLDS  # FIONREAD counts only the first 4 KiB of it
            return
        (self.owed,) = struct.unpack(
            "i", fcntl.ioctl(self.stream.source, termios.FIONREAD, b"\0" * 4)
        )

    def register(self, poll: select.poll) -> None:
        # Even without an event of interest, poll reports that the reader of the sink has left. For the source it would
        # report again and again that its writer has left, so the source is registered only when it is to be read.
        poll.register(self.stream.sink, select.POLLOUT if self.pending else 0)
        if not self.pending and not self.is_dry:
            poll.register(self.stream.source, select.POLLIN)

    def pull(self) -> bool:
        """Read from the command. False: it has closed its end."""
        if self._page is not None:
            self._page.begin(self.stream.name)
        size = 0
        try:
            self.piece = self.pending = os.read(self.stream.source, _AT_ONCE)
            size = len(self.piece)
        except BlockingIOError:
            return True
        except OSError:
            if not self.stream.is_terminal:
                raise
            self.piece = self.pending = b""  # EIO: the last process has closed the terminal
        finally:
            if self._page is not None:
                self._page.end(self.stream.name, size)
        if self.owed is not None:
            self.owed -= len(self.piece)
        return bool(self.piece)

    def push(self) -> bool:
        """Write as much as cannot block: poll guarantees PIPE_BUF bytes for a pipe. False: the reader has closed it."""
        try:
            self.pending = self.pending[
                os.write(self.stream.sink, self.pending[: self._largest_write]) :
            ]
        except BlockingIOError:
            return True  # another process has made it non-blocking: poll reports when to continue
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the stream. The command gets SIGPIPE at its next write, as it would from the reader itself."""
        os.close(self.stream.source)
        os.close(self.stream.sink)

    def take_piece(self) -> bytes:
        """Return the piece for the tape, up to its last complete character."""
        piece, self.piece, self.tail = self.tail + self.piece, b"", b""
        for back in range(1, min(4, len(piece) + 1)):
            if piece[-back] & 0xC0 == 0x80:
                continue
            if piece[-back] >= 0xC0 and back < _width(piece[-back]):
                piece, self.tail = piece[:-back], piece[-back:]
            break
        return piece


def _width(lead: int) -> int:
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2
