"""Record the order in which several processes of a run print, and take items from a queue that they share. Knows locks
between processes; not how a replay keeps the order (`replay/print_order`).

Processes that the program forks or starts with `multiprocessing` write to the same stdout and stderr as the program
itself. A replay starts them again, and the machine decides which of them prints first. So each write that leaves a
process is a point, and a lock that all processes share makes the times of these points the order of the writes.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from playhead import clock
from playhead.recording import lanes, points

if TYPE_CHECKING:
    from playhead.recording.recorder import Recorder

# A process that holds the lock only writes. If it does not return for this long, its reader may wait for this process:
# the program must go on, and the order is not recorded.
_LONGEST_WAIT_NS = 1_000_000_000
_NAP_S = 0.000_2


class RecordedPrints:
    """A context manager around each write of this process to stdout or stderr. Callers do not enter it in two threads
    at once.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._folder = str(recorder.folder)
        self._pid = 0
        self._fd: int | None = None
        self._count = 0
        self._depth = 0

    def __enter__(self) -> None:
        if self._pid != os.getpid():
            self._start()
        self._depth += 1
        if self._depth > 1 or self._fd is None or not self._lock(self._fd):
            return
        log = points.of_process()
        if log is not None:
            self._count += 1
            log.add((clock.mono_ns(), (0, 0), lanes.MAIN.name, points.PRINTED, self._count, None))
            # At once: a supervisor kills its workers, and uvicorn ends each of them by the default action of a signal.
            log.flush()

    def __exit__(self, *raised: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def await_item(self) -> None:
        """Do nothing: a recorded process takes the items that it can get."""

    def note_item(self) -> None:
        """Note that this process has taken an item from a queue that several processes read. The caller holds the lock
        of the queue, so the times of these points are in the order of the items.
        """
        if self._pid != os.getpid():
            self._start()
        log = points.of_process()
        if log is not None:
            self._count += 1
            at = (clock.mono_ns(), (0, 0), lanes.MAIN.name)
            log.add((*at, points.PRINTED, self._count, points.TAKEN))
            log.flush()

    def _start(self) -> None:
        """Open the lock in this process: a fork would share the lock of its parent."""
        self._pid, self._count, self._depth = os.getpid(), 0, 0
        try:
            # The folder itself, so that the run has no file more.
            self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            self._fd = None  # recording fails open

    def _lock(self, fd: int) -> bool:
        until = 0
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                now = clock.mono_ns()
                until = until or now + _LONGEST_WAIT_NS
                if now >= until:
                    self._fd = None
                    os.close(fd)
                    return False
                clock.sleep(_NAP_S)
            except OSError:
                self._fd = None
                return False
            else:
                return True
