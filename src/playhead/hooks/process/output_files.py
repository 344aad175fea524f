"""Record the output that a child writes directly to the streams it inherits, or to a file of the program.

Inherited streams: the sidecar already records the command's whole output. So only the start and end offsets of the
child's parts are recorded, whenever a child starts or ends, and whenever the program prints while a child runs.
Files: the new bytes are read from the file when the child has exited.
"""

from __future__ import annotations

import fcntl
import os
import stat
from binascii import crc32

from playhead.host.later import Later
from playhead.recording import lanes, order_slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import Any

    from playhead.hooks.process.flight import Flight
    from playhead.recording.deck import Crossing, Piece
    from playhead.tape import output_position
    from playhead.tape.output_position import OutputGauge
else:
    output_position = Later("playhead.tape.output_position")  # most processes start no child


_gauge: tuple[str, OutputGauge] | None = None
# Children that inherit a stream, in the order of their start; and the offset up to which each stream is assigned.
_running: list[Inherited] = []
_seen: dict[str, int] = {}


def _start_anew() -> None:
    """In a forked child, forget the children of the parent: the parent assigns their output."""
    _running.clear()
    _seen.clear()
    order_slot.settle_children = None


os.register_at_fork(after_in_child=_start_anew)


class Inherited:
    """The parts of the command's output that one child wrote: `[stream of the command, from, to, when]`, and
    `[length, checksum, when]` of output in between that the program itself wrote.

    Output that several children write at the same time cannot be separated. It is assigned to the child that ends
    next, or to the youngest one when the program prints in between. So the whole output is on the tape in its order.
    """

    def __init__(self, crossing: Crossing, streams: dict[str, int]) -> None:
        self._crossing = crossing
        self._fds = streams
        # A replay does not start an MCP server, but it prints the server's output: see `ServerOutput`.
        self._is_server = crossing.deck.is_inside("mcp")
        self._parts: dict[str, list[list[Any]]] = {}
        with order_slot.printing.lock:
            if _running:
                _settle(None)
                _running.append(self)
            else:
                _running.append(self)
                _seen.update((name, now) for name, _, now in _positions())
            order_slot.settle_children = _settle_around

    def inherits(self, fds: set[int]) -> bool:
        return not fds.isdisjoint(self._fds.values())

    def add(
        self, name: str, start: int, end: int, besides: list[int] | None = None
    ) -> Callable[[], None]:
        """Add a part. `besides` has the length and checksum of the program's own output in it."""
        stream = name if name in self._fds else next(iter(self._fds))
        part = [name, start, end, self._moment(), *([besides] if besides else ())]
        self._parts.setdefault(stream, []).append(part)
        return lambda: (besides if besides is not None else part).append(self._moment())

    def _moment(self) -> int:
        return self._crossing.moment(is_shown=self._is_server)

    def end(self) -> dict[str, Any]:
        """Return the facts for the outcome: `{"wrote": {"stdout": [["stdout", FROM, TO, WHEN], …]}}`."""
        with order_slot.printing.lock:
            _settle(self)
            _running.remove(self)
            if not _running:
                order_slot.settle_children = None
        return {"wrote": self._parts} if self._parts else {}

    @property
    def run(self) -> str:
        return self._crossing.deck.recorder.folder


def _settle_around(fd: int, own: bytes | None) -> Callable[[], None] | None:
    """Assign the output of children around a write of the program to this stream. Called twice: before the write with
    None, and after it with the written bytes (empty if they are not known, because they are still in a buffer).

    A child may have written in between, before or after the program's own bytes; only the output itself shows which.
    So the tape has a place for either. The returned function records the second place.
    """
    with order_slot.printing.lock:
        if own is None:
            _settle(None)
            return None
        for name, fds, now in _positions() if _running else ():
            if fd not in fds:
                continue
            start, youngest = _seen.get(name), _heir(fds)
            _seen[name] = now
            if own and youngest is not None and start is not None and now - start > len(own):
                return youngest.add(name, start, now, [len(own), crc32(own)])
        return None


def _settle(owner: Inherited | None) -> None:
    """Assign the output since the last call to `owner`, or to the youngest child."""
    for name, fds, now in _positions() if _running else ():
        start = _seen.get(name)
        _seen[name] = now
        heir = owner if owner is not None and owner.inherits(fds) else _heir(fds)
        if heir is not None and start is not None and now > start:
            heir.add(name, start, now)


def _heir(fds: set[int]) -> Inherited | None:
    """Return the youngest child that inherits one of these descriptors."""
    return next((one for one in reversed(_running) if one.inherits(fds)), None)


def _positions() -> list[tuple[str, set[int], int]]:
    """Return each stream of the command, its descriptors (both with `2>&1`) and its size so far. Output that cannot be
    measured at the moment is assigned to no child.
    """
    found: dict[str, tuple[set[int], int]] = {}
    gauge = _gauge_of(_running[-1].run)
    if not gauge.is_open:
        _seen.clear()
        return []
    for fd in (1, 2):
        at = gauge.read(fd)
        if at is not None:
            found[at[0]] = (found.get(at[0], (set(), 0))[0] | {fd}, at[1])
    for name in [one for one in _seen if one not in found]:
        del _seen[name]
    return [(name, fds, now) for name, (fds, now) in found.items()]


def inherited_by(crossing: Crossing) -> Inherited:
    """Follow the output of a process that inherits both streams, and that the caller waits for and then ends."""
    return Inherited(crossing, _streams("inherited", "inherited"))


class ServerOutput:
    """Prints, in a replay, the output that a server wrote to the streams of the command while the program used it.

    The program does not wait for this output. It is printed at its place on the tape, before the program itself
    prints, and the rest when the server ends.
    """

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._pieces = list(pieces)
        self._outer = order_slot.show_children
        lanes.start_writer()
        order_slot.show_children = self._show

    def _show(self) -> None:
        """Print the output that is due, because the program is about to print."""
        if self._outer is not None:
            self._outer()
        with order_slot.printing.lock:
            while self._pieces and order_slot.knows(at := self._pieces[0].at_ns):
                if not order_slot.is_next(at):
                    return
                print_again([self._pieces.pop(0)])

    def end(self) -> None:
        with order_slot.printing.lock:
            left, self._pieces = self._pieces, []
            for piece in left:
                order_slot.pass_by(piece.at_ns)
            print_again(left)


# Gets the output that a replay prints for a child on a terminal. No other code sees it: see `launch/guest/printed`.
_on_terminal: Callable[[str, bytes], None] | None = None


def listen_to_terminal(listener: Callable[[str, bytes], None] | None) -> None:
    """Set the `listener(stream, data)` that gets the output of taped children that goes to the terminal."""
    global _on_terminal  # noqa: PLW0603  one a process
    _on_terminal = listener


def shown_on_terminal(stream: str, data: bytes) -> None:
    if _on_terminal is not None:
        _on_terminal(stream, data)


def print_again(pieces: Iterable[Piece]) -> None:
    """Print, in a replay, the output that a child wrote to our own streams."""
    for piece in pieces:
        fd = {"stdout": 1, "stderr": 2}.get(piece.stream)
        left = piece.data if fd is not None else b""
        if left and fd is not None and os.isatty(fd):
            shown_on_terminal(piece.stream, left)
        while left and fd is not None:
            left = left[os.write(fd, left) :]


def expect_inherited(flight: Flight, crossing: Crossing, stdout: str, stderr: str) -> None:
    """Follow the streams that a process inherits, before it starts. `stdout` and `stderr` are kinds of streams."""
    streams = _streams(stdout, stderr)
    if streams:
        lanes.start_writer()
        inherited = Inherited(crossing, streams)
        flight.at_exit(lambda flight: flight.add_facts(inherited.end()))


def _streams(stdout: str, stderr: str) -> dict[str, int]:
    kinds = (("stdout", stdout, 1), ("stderr", stderr, 2))
    return {name: fd for name, kind, fd in kinds if kind == "inherited"}


def _gauge_of(run: str) -> OutputGauge:
    global _gauge  # noqa: PLW0603  one a process
    if _gauge is None or _gauge[0] != run:
        _gauge = (run, output_position.OutputGauge(run))
    return _gauge[1]


_PIECE = 64 * 1024

# How far a file has been read for children that have exited. Concurrent writers of one file cannot be
# distinguished, but no byte may be recorded twice.
_read_up_to: dict[Hashable, tuple[int, int]] = {}


def expect_file(fd: int, flight: Flight, stream: str) -> None:
    """If `fd` is a regular file that the child writes to, read the new bytes when the child has exited."""
    what = os.fstat(fd)
    if not stat.S_ISREG(what.st_mode):
        return
    key = (what.st_dev, what.st_ino)
    start = _position(fd)
    # The program may close its own descriptor long before the child ends, and that descriptor may be write-only.
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
    """Return the offset at which the next byte is written. The child shares our open file, and so its offset."""
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
