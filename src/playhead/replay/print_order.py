"""Let the processes of a replay print in the order of the tape. Knows the points of all processes; not streams.

Each process reports what it has printed by a line in one file beside the tape of the replay, and waits before it prints
until the processes whose output comes first have reported theirs. In the recorded run these waits were over at that
moment, so an unchanged program cannot block. A changed program may never print a text of the tape: it is not waited
for if its process has ended, or is idle for some seconds.
"""

from __future__ import annotations

import os

# The original functions: a replay hooks those of `os` and `open` for the program.
import posix
from typing import TYPE_CHECKING

from playhead import clock
from playhead.recording import lanes
from playhead.tape.store import PRINT_TURNS

if TYPE_CHECKING:
    from playhead.recording.recorder import Recorder
    from playhead.replay.points_table import TapedPrint

_SHORTEST_NAP, _LONGEST_NAP = 0.000_5, 0.02
# Without a report for this long, a process that has used almost no processor time in the meantime is not waited for.
_PATIENCE_NS = 10_000_000_000
_IDLE_NS = 50_000_000
# A process that computes may need long on a busy machine. A changed script may never start the process of the tape.
_LONGEST_WAIT_NS = 120_000_000_000
_LONGEST_START_NS = 10_000_000_000
_LOOK_EVERY_NS = 1_000_000_000
_WORKS, _ENDED, _LOST = "works", "ended", "lost"
_PIECE = 64 * 1024
# Fields of /proc/PID/stat behind the name of the program, and the unit of both times.
_USER_TIME, _SYSTEM_TIME = 11, 12
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class ReplayedPrints:
    """A context manager around each write of this process to stdout or stderr. Callers do not enter it in two threads
    at once, but a signal handler may enter it while its thread waits here.
    """

    def __init__(self, recorder: Recorder, prints: list[TapedPrint]) -> None:
        self._path = f"{recorder.folder}/{PRINT_TURNS}"
        self._prints = prints
        self._places = {(one.lane, one.number): at for at, one in enumerate(prints)}
        # The place behind the last item that a process takes.
        self._last_item = max((at + 1 for at, one in enumerate(prints) if one.is_item), default=0)
        self._pid = 0
        self._count = 0
        self._depth = 0
        self._place: int | None = None
        # The place of the item that this process is about to take.
        self._item: int | None = None
        # What the file says: the prints that are done or not waited for, and the processes by their lanes.
        self._read = 0
        self._done: set[int] = set()
        self._first = 0
        self._pids: dict[str, int] = {}
        # The place that a process waits for, or has waited for, by its pid.
        self._waits: dict[int, int] = {}
        self._held: set[int] = set()
        # Since when nothing was reported, and the processor time of the process that is waited for at that moment.
        self._since = 0
        self._used: int | None = None
        self._look_at = 0
        # Whether the program has left the order of the tape, so that waiting is of no use.
        self._has_left = False

    def __enter__(self) -> None:
        self.join()
        self._depth += 1
        if self._depth > 1:
            return
        self._place = self._await_turn()

    def __exit__(self, *raised: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._place is not None:
            self._report(f"d {self._place}\n")
            self._done.add(self._place)
            self._place = None

    def await_item(self) -> None:
        """Wait until the other processes have taken the items that came before. If the tape has no further item for
        this process, all items that it has for the others are theirs.
        """
        self.join()
        self._depth += 1
        nap, said = _SHORTEST_NAP, False
        while self._turn() is None and self._owes(self._last_item, only_items=True):
            if not said:
                self._report(f"w {os.getpid()} {self._last_item}\n")
                said = True
            clock.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)
        self._item = self._await_turn()
        self._depth -= 1

    def note_item(self) -> None:
        """Report that this process has taken the item that it waited for."""
        if self._item is not None:
            self._report(f"d {self._item}\n")
            self._done.add(self._item)
            self._item = None

    def _turn(self) -> int | None:
        """Return the place of the next turn of this process; None if it is not on the tape."""
        return self._places.get((lanes.MAIN.name, self._count + 1))

    def _await_turn(self) -> int | None:
        """Wait for the next turn of this process, and return its place."""
        nap, said = _SHORTEST_NAP, None
        # The number is looked up again each time: a signal handler that runs during the wait prints first.
        while (at := self._turn()) is not None:
            if not self._owes(at):
                break
            if at != said:
                # The parent moves on only when its children are idle, and this process may wait for the parent.
                self._report(f"w {os.getpid()} {at}\n")
                said = at
            self._depth -= 1
            clock.sleep(nap)
            self._depth += 1
            nap = min(2 * nap, _LONGEST_NAP)
        self._count += 1
        return at

    def join(self) -> None:
        """Report that this process runs, once."""
        if self._pid != os.getpid():
            self._pid, self._count, self._depth, self._place = os.getpid(), 0, 0, None
            self._report(f"p {os.getpid()} {lanes.MAIN.name}\n")

    def is_waiting(self, pid: int) -> bool:
        """Return whether this process waits until others have printed."""
        self._look()
        at = self._waits.get(pid)
        if at is None:
            return False
        while self._first in self._done:
            self._first += 1
        return any(index not in self._done for index in range(self._first, at))

    def hold(self) -> None:
        """Report that this process waits for a signal of its parent, and does nothing until then."""
        self.join()
        self._report(f"h {os.getpid()}\n")

    def is_holding(self, pid: int) -> bool:
        """Return whether this process waits for a signal that its parent has not passed yet."""
        self._look()
        return pid in self._held

    def signal_came(self) -> None:
        """Note that this process has passed a signal: its children may have waited for it."""
        self._look()
        self._held.clear()

    def owes_before(self, ns: int) -> bool:
        """Return whether another process has yet to print a text that was printed before this time of the tape."""
        self.join()
        low, high = 0, len(self._prints)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._prints[middle].ns < ns else (low, middle)
        return self._owes(low)

    def _owes(self, at: int, *, only_items: bool = False) -> bool:
        """Return whether a print of another process before this place is yet to come, or an item that it takes."""
        self._look()
        if self._has_left:
            return False
        while self._first in self._done:
            self._first += 1
        own = lanes.MAIN.name
        for index in range(self._first, at):
            print_ = self._prints[index]
            if index in self._done or print_.lane == own or (only_items and not print_.is_item):
                continue
            printer = self._printer(self._prints[index].lane)
            if printer == _WORKS:
                return True
            if printer == _LOST:
                # Once for all processes: a changed program would wait for each text of the tape that it never prints.
                self._has_left = True
                self._report("l\n")
                return False
            self._done.add(index)
            self._report(f"d {index}\n")
        return False

    def _look(self) -> None:
        """Read the new reports."""
        new = _read(self._path, self._read).rpartition(b"\n")[0]
        if not new:
            return
        self._read += len(new) + 1
        self._since = 0
        for line in new.split(b"\n"):
            kind, _, rest = line.decode("utf-8", "replace").partition(" ")
            number, _, lane = rest.partition(" ")
            if kind == "d":
                self._done.add(int(number))
            elif kind == "l":
                self._has_left = True
            elif kind == "p":
                self._pids[lane] = int(number)
            elif kind == "h":
                self._held.add(int(number))
            elif kind == "w":
                self._waits[int(number)] = int(lane)

    def _printer(self, lane: str) -> str:
        """Return whether the process of this lane works, has ended, or is lost: it will not print any more, as far as
        one can know.
        """
        now = clock.mono_ns()
        if not self._since:
            self._since, self._used, self._look_at = now, None, 0
        if now - self._since > _LONGEST_WAIT_NS:
            return _LOST
        if now < self._look_at:
            return _WORKS
        self._look_at = now + _LOOK_EVERY_NS
        pid = self._pids.get(lane)
        if pid is None:
            return _LOST if now - self._since > _LONGEST_START_NS else _WORKS
        used = _processor_time(pid)
        if used is None:
            # Its last report may have come after the look at the file.
            before = self._read
            self._look()
            return _ENDED if self._read == before else _WORKS
        if self._used is None:
            self._used = used
        is_idle = now - self._since > _PATIENCE_NS and used - self._used < _IDLE_NS
        return _LOST if is_idle else _WORKS

    def _report(self, line: str) -> None:
        try:
            fd = posix.open(
                self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError:
            return
        try:
            posix.write(fd, line.encode("utf-8", "replace"))
        finally:
            posix.close(fd)


def _read(path: str, offset: int = 0) -> bytes:
    """Return the content of a file from this offset on; nothing if it cannot be read."""
    try:
        fd = posix.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        found = b""
        while piece := posix.pread(fd, _PIECE, offset + len(found)):
            found += piece
        return found
    except OSError:
        return b""
    finally:
        posix.close(fd)


def _processor_time(pid: int) -> int | None:
    """Return the processor time that a process has used; None if it has ended."""
    words = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    if len(words) <= _SYSTEM_TIME or words[0] in (b"Z", b"X"):
        return None
    return (int(words[_USER_TIME]) + int(words[_SYSTEM_TIME])) * _TICK_NS
