"""Find the files that changed since the last look. Knows the state of one workspace and how to update it; does
not know where notices of changes come from, nor who made them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from playhead import clock
from playhead.workspace.snapshot import WorkspaceState, note_link
from playhead.workspace.tree_listing import Change
from playhead.workspace.watch import inotify
from playhead.workspace.watch.own_writes import OwnWrites

_OBJECTS = b".git/objects/"
_GONE = inotify.DELETE | inotify.MOVED_FROM
_OBJECTS_INFO = b".git/objects/info/"

# A process that waits for its changes to be stored continues after this much work, and before a file of this size.
_LONG_NS = 30_000_000
_LARGE = 16 * 1024 * 1024


class Effects:
    """The changes of one workspace, path by path."""

    def __init__(self, state: WorkspaceState) -> None:
        self.state = state
        # Path → the reported events.
        self.dirty: dict[bytes, int] = {}
        # When a path of the last `settle` was read.
        self.read_at: dict[bytes, int] = {}
        # Versions that were gone before they were read.
        self.missed = 0
        # The changes that are not by calls.
        self.own = OwnWrites(state.root)

    def note(self, path: bytes, mask: int) -> None:
        self.dirty[path] = self.dirty.get(path, 0) | mask
        self.own.note(path, mask)
        if path.endswith(b".gitignore"):
            self.state.selection.ignore.forget(path.rpartition(b"/")[0])

    def note_below(self, folder: bytes) -> None:
        """Note that a folder was moved away with its contents."""
        prefix = folder + b"/"
        known = (one for one in self.state.entries if one.startswith(prefix))
        for path in [*known, *(one for one in self.dirty if one.startswith(prefix))]:
            self.note(path, inotify.DELETE)
        self.note(folder, inotify.DELETE)

    def scan(self, entering: Callable[[bytes], object] | None = None) -> None:
        """Note every path whose status differs. Used if events were lost, or if there are none."""
        state, seen = self.state, set()
        for path, status in state.selection.walk(entering=entering):
            seen.add(path)
            entry = state.entries.get(path)
            stamp = (status.st_ino, status.st_ctime_ns)
            is_same_mode = entry is not None and entry.mode == status.st_mode
            is_folder = entry is not None and entry.is_folder
            if not is_same_mode or not (is_folder or state.stamps.get(path) == stamp):
                self.note(path, inotify.CONTENT)
        for path in state.entries.keys() - seen:
            self.note(path, inotify.DELETE)

    def settle(self, long: Callable[[], None] = lambda: None) -> list[Change]:
        """Read and store the changes. OSError: the store is full, and the remaining paths stay dirty.

        `long` is called as soon as this takes longer than the process that made the changes should wait. The time of
        the processor counts: on a busy machine this thread waits for its turn, and few changes are worth that time.
        """
        changes: list[Change] = []
        self.read_at = {}
        entries = self.state.entries
        latest = clock.thread_cpu_ns() + _LONG_NS
        while self.dirty:
            # In order, so that a folder comes before its contents.
            for one in sorted(self.dirty):
                old = entries.get(one)
                if clock.thread_cpu_ns() > latest or self._is_large(one):
                    long()
                self._look(one, self.dirty[one])
                self.dirty.pop(one)
                self.read_at[one] = clock.mono_ns()
                new = entries.get(one)
                self.state.is_changed |= old != new
                if old != new and not (old is not None and old.same_as(new)):
                    changes.append(Change(one, old, new))
        return changes

    def _is_large(self, path: bytes) -> bool:
        try:
            return os.lstat(os.path.join(self.state.root, path)).st_size > _LARGE
        except OSError:
            return False

    def _look(self, path: bytes, mask: int) -> None:
        """Update one entry."""
        state = self.state
        old = state.entries.get(path)
        try:
            status = os.lstat(os.path.join(state.root, path))
        except OSError:
            state.entries.pop(path, None)
            state.stamps.pop(path, None)
            # Its deletion was not reported yet: the file existed when the call ended, and its content is lost.
            self.missed += bool(mask & inotify.CONTENT) and not mask & _GONE
            return
        stamp = (status.st_ino, status.st_ctime_ns)
        if old is not None and self._is_same(path, status, mask):
            if old.mode != status.st_mode:
                state.entries[path] = old._replace(mode=status.st_mode)
            state.stamps[path] = stamp
            return
        # Folders have several links as well, but are not noted: the inode may be that of a deleted folder, which did
        # not change.
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            self._note_links(path, status)
        if state.selection.why_not_file(path, status.st_size) is not None:
            return
        entry = state.capture.entry(path, status, old)
        if entry is None:
            state.entries.pop(path, None)
            state.stamps.pop(path, None)
        else:
            state.entries[path], state.stamps[path] = entry, stamp

    def _is_same(self, path: bytes, status: os.stat_result, mask: int) -> bool:
        """Return whether the content is known without reading it: git updates the times of its packs to keep them."""
        old, stamp = self.state.entries[path], self.state.stamps.get(path)
        if old.is_folder:
            return old.mode == status.st_mode
        if stamp is None or stamp[0] != status.st_ino or old.size != status.st_size:
            return False
        if path.startswith(_OBJECTS) and not path.startswith(_OBJECTS_INFO):
            return True
        return not mask & inotify.CONTENT and old.mtime_ns == status.st_mtime_ns

    def _note_links(self, path: bytes, status: os.stat_result) -> None:
        others = self.state.links.get(status.st_ino, set())
        for one in others - {path} - self.read_at.keys():
            self.dirty.setdefault(one, inotify.MODIFY)
        note_link(self.state, path, status)
