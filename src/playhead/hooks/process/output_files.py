"""Record the output that a child writes past us: into the streams it inherits, or into a file of the program.

Inherited streams: the sidecar already records the command's whole output, so only the start and end offsets of the
child's part are noted. This works for children that the program waits for while it does nothing else. Files: the
child writes into the file directly, and the new bytes are read back when it has exited.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextvars import ContextVar

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from pathlib import Path
    from typing import Any

    from playhead.hooks.process.flight import Flight
    from playhead.recording.deck import Crossing, Piece
    from playhead.tape import output_position
    from playhead.tape.output_position import OutputGauge
else:
    output_position = Later("playhead.tape.output_position")  # most processes start no child


# Whether the program waits for the process that is started here: `run`, `call`, `system`.
waited_for: ContextVar[bool] = ContextVar("playhead_process_waited_for", default=False)

_gauge: tuple[Path, OutputGauge] | None = None
_running: list[Inherited] = []


class Inherited:
    """The output of one child, by where it begins and ends."""

    def __init__(self, run: Path, streams: dict[str, int]) -> None:
        self._gauge = _gauge_of(run)
        self._began: dict[str, tuple[str, int]] = {}
        for stream, fd in streams.items():
            at = self._gauge.read(fd)
            # `2>&1`: one pipe for both streams, whose bytes cannot be separated.
            if at is not None and at[0] not in [name for name, _ in self._began.values()]:
                self._began[stream] = at
        self._fds = streams
        # The output of two concurrent children cannot be separated.
        self._alone = not _running
        for other in _running:
            other._alone = False
        _running.append(self)

    def end(self) -> dict[str, Any]:
        """Facts for the outcome: `{"wrote": {"stdout": ["stdout", FROM, TO]}}`."""
        _running.remove(self)
        wrote: dict[str, Any] = {}
        for stream, (name, start) in self._began.items() if self._alone else ():
            now = self._gauge.read(self._fds[stream])
            if now is not None and now[1] > start:
                wrote[stream] = [name, start, now[1]]
        return {"wrote": wrote} if wrote else {}


def inherited_by(crossing: Crossing) -> Inherited:
    """The output of a process that inherits both streams and is waited for. The caller calls `end`."""
    return Inherited(crossing.deck.recorder.run, _streams("inherited", "inherited"))


# Reports what a replay prints for a child on a terminal, where nothing else sees it; see `launch/guest/printed`.
_on_terminal: Callable[[str, bytes], None] | None = None


def listen_to_terminal(listener: Callable[[str, bytes], None] | None) -> None:
    """`listener(stream, data)` is called for output of taped children that goes to the terminal."""
    global _on_terminal  # noqa: PLW0603  one a process
    _on_terminal = listener


def shown_on_terminal(stream: str, data: bytes) -> None:
    if _on_terminal is not None:
        _on_terminal(stream, data)


def print_again(pieces: Iterable[Piece]) -> None:
    """In a replay: print the output that the child wrote to our own streams."""
    for piece in pieces:
        fd = {"stdout": 1, "stderr": 2}.get(piece.stream)
        left = piece.data if fd is not None else b""
        if left and fd is not None and os.isatty(fd):
            shown_on_terminal(piece.stream, left)
        while left and fd is not None:
            left = left[os.write(fd, left) :]


def expect_inherited(flight: Flight, crossing: Crossing, stdout: str, stderr: str) -> None:
    """Before a process starts whose streams are of these kinds."""
    streams = _streams(stdout, stderr)
    if waited_for.get() and streams:
        inherited = Inherited(crossing.deck.recorder.run, streams)
        flight.at_exit(lambda flight: flight.add_facts(inherited.end()))


def _streams(stdout: str, stderr: str) -> dict[str, int]:
    kinds = (("stdout", stdout, 1), ("stderr", stderr, 2))
    return {name: fd for name, kind, fd in kinds if kind == "inherited"}


def _gauge_of(run: Path) -> OutputGauge:
    global _gauge  # noqa: PLW0603  one a process
    if _gauge is None or _gauge[0] != run:
        _gauge = (run, output_position.OutputGauge(run))
    return _gauge[1]


_PIECE = 64 * 1024

# How far a file has been read for children that have exited. Concurrent writers of one file cannot be
# distinguished, but no byte may be recorded twice.
_read_up_to: dict[Hashable, tuple[int, int]] = {}


def expect_file(fd: int, flight: Flight, stream: str) -> None:
    """`fd` is a regular file that the child writes into: read the new bytes when the child has exited."""
    what = os.fstat(fd)
    if not stat.S_ISREG(what.st_mode):
        return
    key = (what.st_dev, what.st_ino)
    start = _position(fd)
    # The program may close its own descriptor long before the child ends, and it may be one that
    # cannot be read from.
    ours = os.dup(fd)
    try:
        reader = os.open(f"/dev/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        os.close(ours)
        return
    users, up_to = _read_up_to.get(key, (0, start))
    _read_up_to[key] = (users + 1, up_to)

    def read(flight: Flight) -> None:
        users, up_to = _read_up_to.pop(key, (1, start))
        end = _position(ours)
        try:
            _tell(flight, stream, reader, max(start, up_to), end)
        finally:
            os.close(reader)
            os.close(ours)
            if users > 1:
                _read_up_to[key] = (users - 1, max(end, up_to))

    flight.at_exit(read)


def _position(fd: int) -> int:
    """Where the next byte goes. The child shares our description of the file, and so its offset."""
    at = os.lseek(fd, 0, os.SEEK_CUR)
    return max(at, os.fstat(fd).st_size) if _appends(fd) else at


def _appends(fd: int) -> bool:
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND)


def _tell(flight: Flight, stream: str, reader: int, start: int, end: int) -> None:
    while start < end:
        piece = os.pread(reader, min(_PIECE, end - start), start)
        if not piece:
            return
        flight.heard(stream, piece)
        start += len(piece)
