"""Tell the changes by the program's own code from the changes by its calls. Knows one workspace, announcements and
the order of file events; does not read contents.

A replay runs the program's own code again, and makes the changes of calls from the tape. A change that counts as the
wrong one of the two is made twice, or never. The program announces each file that it is about to open, move or
delete (see `hooks.state.written_files`), before it does so. An announcement therefore lasts until the queue of file
events proves that the operation is over: the thread may lose the interpreter's lock between its announcement and its
system call, and other calls may start and end meanwhile. Looking at the process instead of the queue is not enough:
a file may be closed while its last change is still in the queue.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from playhead.workspace.blobs.stable_read import is_database, open_file
from playhead.workspace.scratch.open_files import open_count, positions
from playhead.workspace.watch import call_marks, inotify

# SQLite changes these together with the file that the program opened.
_SIDE_FILES = (b"-wal", b"-journal", b"-shm")
# These operations end when the file is closed; the others are one system call each.
_OPENING = (call_marks.OWN, call_marks.OWN_DATABASE)
# There are more announcements than this only if operations fail, or if files are not watched.
_MOST = 10_000


@dataclass(slots=True)
class Announcement:
    """One operation on a file, by a thread (its number in the kernel, which no other process uses)."""

    kind: str
    pid: int
    thread: int
    # Announced since the last attribution of changes.
    is_fresh: bool = True
    # The process had ended at the last attribution of changes.
    is_orphan: bool = False


class OwnWrites:
    """The files of one workspace that the program's own code is changing."""

    def __init__(self, root: bytes) -> None:
        self._prefix = root.rstrip(b"/") + b"/"
        self._pending: dict[bytes, list[Announcement]] = {}
        # Finished operations whose changes have not been attributed yet: their kinds by path.
        self._done: dict[bytes, str] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether no announced operation is under way, and none has changes that are not attributed yet."""
        return not self._pending and not self._done

    def announce(self, full: bytes, one: Announcement) -> None:
        """Note that the program's own code is about to change a file, if it is in this workspace."""
        if full.startswith(self._prefix) and len(self._pending) < _MOST:
            self._pending.setdefault(full[len(self._prefix) :], []).append(one)

    def has(self, path: bytes) -> bool:
        """Return whether the program's own code is changing this file, or has just changed it."""
        if path in self._pending or path in self._done:
            return True
        return self._is_side_file(path) or self._is_moved(path)

    def note(self, path: bytes, mask: int) -> None:
        """Note a file event, in its order with the announcements: it may be the end of an operation."""
        if path not in self._pending:
            return
        for one in self._pending[path]:
            if one.kind not in _OPENING:
                self._end(path, one)
                return
            if mask & inotify.CLOSE_WRITE:
                # Another process may have closed the file: a log of the program stays open.
                if not self._is_open(path, one):
                    self._end(path, one)
                return

    def pass_by(self, thread: int) -> None:
        """Note that a thread waits at a mark: the operations that it announced have happened, or have failed."""
        for path, one in self._announced(lambda one: one.thread == thread):
            if not self._is_open(path, one):
                self._end(path, one)

    def among(self, sizes: Mapping[bytes, int], pids: Iterable[int]) -> frozenset[bytes]:
        """Return the changed paths that the program's own code wrote, as opposed to the calls that were open.

        `sizes` are the sizes of the changed files; 0 for a deleted one. `pids` are the processes of the program. If one
        of them has kept a file open and has written to its end, the file is the program's own: a log. If a call wrote
        last, the program's position is before the end.
        """
        full_sizes = {self._prefix + path: size for path, size in sizes.items()}
        known = {one.pid for each in self._pending.values() for one in each}
        reached = positions({*pids, *known}, full_sizes)
        found = set()
        for full, size in full_sizes.items():
            path = full[len(self._prefix) :]
            position = reached.get(full)
            is_fresh = any(one.is_fresh for one in self._pending.get(path, ()))
            if path in self._done or is_fresh or position is None:
                is_own = self.has(path)
            else:
                is_own = position >= size or not position or _is_database(full)
            if is_own:
                found.add(path)
        return frozenset(found)

    def settle(self) -> None:
        """Finish an attribution: operations that are over do not count for later changes."""
        self._done.clear()
        if not self._pending:
            return
        alive = {
            pid: os.path.exists(f"/proc/{pid}")
            for pid in {one.pid for each in self._pending.values() for one in each}
        }
        # The last changes of an ended process may still be in the queue, so its announcements count once more.
        for path, one in self._announced(lambda one: one.is_orphan):
            self._end(path, one)
        for each in self._pending.values():
            for one in each:
                one.is_fresh, one.is_orphan = False, not alive.get(one.pid, True)

    def _announced(
        self, wanted: Callable[[Announcement], bool]
    ) -> list[tuple[bytes, Announcement]]:
        return [(path, one) for path, each in self._pending.items() for one in each if wanted(one)]

    def _end(self, path: bytes, one: Announcement) -> None:
        each = self._pending[path]
        each.remove(one)
        if not each:
            del self._pending[path]
        self._done[path] = one.kind

    def _is_open(self, path: bytes, one: Announcement) -> bool:
        """Return whether each announced opening of a file by a process is one of its descriptors."""
        if one.kind not in _OPENING:
            return False
        announced = sum(
            other.pid == one.pid and other.kind in _OPENING for other in self._pending[path]
        )
        return open_count(one.pid, self._prefix + path) >= announced

    def _is_side_file(self, path: bytes) -> bool:
        for suffix in _SIDE_FILES:
            if path.endswith(suffix):
                main = path[: -len(suffix)]
                kinds = (self._done.get(main), *(one.kind for one in self._pending.get(main, ())))
                return call_marks.OWN_DATABASE in kinds
        return False

    def _is_moved(self, path: bytes) -> bool:
        """Return whether the program moved a folder above this path."""
        while path := path.rpartition(b"/")[0]:
            kinds = (self._done.get(path), *(one.kind for one in self._pending.get(path, ())))
            if call_marks.OWN_MOVE in kinds:
                return True
        return False


def _is_database(full: bytes) -> bool:
    """Return whether this is a database: SQLite writes at places that it chooses, so the position proves nothing."""
    if full.endswith(_SIDE_FILES):
        return True
    try:
        fd = open_file(full)
        try:
            return is_database(os.read(fd, 16))
        finally:
            os.close(fd)
    except OSError:
        return True
