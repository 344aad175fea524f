"""Find the files that changed since the last look. Knows the state of one workspace and how to update it; does
not know where notices of changes come from, nor who made them.

It works in two steps. `look` reads the changed files into memory: the process that made the changes waits for it, so
that the next call does not overwrite them. `store` hashes, compresses and writes them: small files at once, so that
a killed recorder loses nothing of an ended call, and files above 1 MB afterwards, while no process waits. A commit in
a repository of 50,000 files rewrites an index of 4.5 MB, which takes 2 ms to read and 10 ms to store.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from playhead import clock
from playhead.workspace.blobs.pool import LARGE
from playhead.workspace.blobs.stable_read import Content
from playhead.workspace.snapshot import WorkspaceState, note_link
from playhead.workspace.tree_listing import UNREAD, Change, FileEntry
from playhead.workspace.watch import inotify
from playhead.workspace.watch.own_writes import OwnWrites

_GIT = b".git/"
_OBJECTS = b".git/objects/"
_GONE = inotify.DELETE | inotify.MOVED_FROM
_OBJECTS_INFO = b".git/objects/info/"

# A process that waits for its changes to be stored continues after this much work, and before a file of this size.
_LONG_NS = 30_000_000
_LARGE = 16 * 1024 * 1024
# No process waits until a file above this size is stored.
_STORED_LATER = 1024 * 1024
# Maximum size of the contents that are read and not stored yet. It is exceeded by at most one small file.
_MOST_HELD = 64 * 1024 * 1024


class LookedAt(NamedTuple):
    """A changed path that has been looked at. Without `status` its new entry is known already."""

    path: bytes
    old: FileEntry | None
    new: FileEntry | None
    status: os.stat_result | None = None
    content: Content | None = None

    @property
    def held(self) -> int:
        """The size of the content in memory."""
        return 0 if self.content is None else len(self.content.data)

    @property
    def is_costly(self) -> bool:
        """Return whether no process should wait until the content is stored."""
        return self.held > _STORED_LATER or (self.status is not None and self.size > LARGE)

    @property
    def size(self) -> int:
        """The size of the file."""
        if self.status is None:
            return 0 if self.new is None else self.new.size
        return self.status.st_size if self.content is None else self.content.status.st_size


class Effects:
    """The changes of one workspace, path by path."""

    def __init__(self, state: WorkspaceState) -> None:
        self.state = state
        # Path → the reported events.
        self.dirty: dict[bytes, int] = {}
        # When a path of the last `settle` was read.
        self.read_at: dict[bytes, int] = {}
        # Versions that were gone before they were read, or that the store had no space for.
        self.missed = 0
        # The sizes of the paths of the last `look`.
        self.sizes: dict[bytes, int] = {}
        # Why contents could not be stored.
        self.problem: OSError | None = None
        self._looked: list[LookedAt] = []
        # Inode → a path that has it.
        self._paths: dict[int, bytes] | None = None
        # How many files of the current `_store_all` are not stored yet.
        self._left = 0
        self._held = 0
        # The processor time of this thread after which a process should not wait any longer.
        self._latest = 0
        self._changes: list[Change] = []
        # The changes that are not by calls.
        self.own = OwnWrites(state.root)

    @property
    def unstored(self) -> int:
        """The number of changed paths that `store` has not returned yet."""
        return len(self.dirty) + len(self._looked) + self._left + len(self._changes)

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

    def look(self, long: Callable[[], None] = lambda: None) -> None:
        """Read the changed files. `store` must follow.

        `long` is called as soon as this takes longer than the process that made the changes should wait. The time of
        the processor counts: on a busy machine this thread waits for its turn, and few changes are worth that time.
        """
        self.read_at, self.sizes, self._paths = {}, {}, None
        self._latest = clock.thread_cpu_ns() + _LONG_NS
        while self.dirty:
            # In order, so that a folder comes before its contents.
            for one in sorted(self.dirty):
                if clock.thread_cpu_ns() > self._latest or self._held > _MOST_HELD:
                    long()
                if self._held > _MOST_HELD:
                    self._store_held()
                found = self._look(one, self.dirty.pop(one))
                self.read_at[one], self.sizes[one] = clock.mono_ns(), found.size
                self._looked.append(found)
                self._held += found.held

    def store(self, long: Callable[[], None] | None = None) -> list[Change]:
        """Store files of the last `look`. Return the changes. `problem` is set if a file could not be stored.

        With `long`, only those that a process may wait for; a second call without it stores the others.
        """
        if long is None:
            self._store_held()
        else:
            waiting = [one for one in self._looked if not one.is_costly]
            self._looked = [one for one in self._looked if one.is_costly]
            self._store_all(waiting, long)
        changes, self._changes = self._changes, []
        return changes

    def _store_held(self) -> None:
        looked, self._looked, self._held = self._looked, [], 0
        self._store_all(looked, lambda: None)

    def _store_all(self, looked: list[LookedAt], long: Callable[[], None]) -> None:
        for place, one in enumerate(looked):
            self._left = len(looked) - place
            if clock.thread_cpu_ns() > self._latest:
                long()
            new = one.new if one.status is None else self._capture(one, one.status)
            self.state.is_changed |= one.old != new
            change = Change(one.path, one.old, new)
            is_same = one.old == new or (one.old is not None and one.old.same_as(new))
            # Git updates the times of its own files all the time, and reads them only to save work.
            is_touch = one.old != new and change.is_touch and not one.path.startswith(_GIT)
            if not is_same or is_touch:
                self._changes.append(change)
        self._left = 0

    def _capture(self, one: LookedAt, status: os.stat_result) -> FileEntry | None:
        state, path = self.state, one.path
        try:
            entry = state.capture.entry(path, status, one.old, one.content)
        except OSError as error:
            # The file has changed and its new content is not known: the last known one would be wrong from here on.
            entry = FileEntry(status.st_mode, status.st_size, status.st_mtime_ns, UNREAD)
            self.problem = error
            self.missed += 1
        if one.content is None:
            self.read_at[path] = clock.mono_ns()
        if entry is None:
            state.entries.pop(path, None)
            state.stamps.pop(path, None)
        else:
            state.entries[path], state.stamps[path] = entry, (status.st_ino, status.st_ctime_ns)
        return entry

    def _look(self, path: bytes, mask: int) -> LookedAt:
        """Look at one path: update its entry, or read its content."""
        state = self.state
        old = state.entries.get(path)
        try:
            status = os.lstat(os.path.join(state.root, path))
        except OSError:
            state.entries.pop(path, None)
            stamp = state.stamps.pop(path, None)
            if stamp is not None and stamp[0] in state.links:
                self._note_others(path, stamp[0], mask)
            # Its deletion was not reported yet: the file existed when the call ended, and its content is lost.
            self.missed += bool(mask & inotify.CONTENT) and not mask & _GONE
            return LookedAt(path, old, None)
        # Folders have several links as well, but are not noted: the inode may be that of a deleted folder, which did
        # not change.
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            self._note_links(path, status, mask)
        if old is not None and self._is_same(path, status, mask):
            new = old if old.mode == status.st_mode else old._replace(mode=status.st_mode)
            state.entries[path], state.stamps[path] = new, (status.st_ino, status.st_ctime_ns)
            return LookedAt(path, old, new)
        if state.selection.why_not_file(path, status.st_size) is not None:
            return LookedAt(path, old, old)
        if LARGE < status.st_size <= _LARGE and stat.S_ISREG(status.st_mode):
            # It is copied, not held in memory. The process waits for that.
            self._looked.append(LookedAt(path, old, None, status))
            self._store_held()
            now = state.entries.get(path)
            return LookedAt(path, now, now)
        # A file above 16 MB is copied after the small files are stored, while no process waits.
        return LookedAt(path, old, None, status, state.capture.read(path, status))

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

    def _note_links(self, path: bytes, status: os.stat_result, mask: int) -> None:
        """Note the other names of a file: a change is reported under one name only."""
        if path.startswith(_OBJECTS):
            return
        inode, links = status.st_ino, self.state.links
        if inode not in links and (first := self._path_of(inode)) is not None:
            # It had one name until now.
            note_link(self.state, first, inode)
        self._note_others(path, inode, mask)
        note_link(self.state, path, inode)

    def _note_others(self, path: bytes, inode: int, mask: int) -> None:
        # The other names are neither new nor gone.
        change = inotify.MODIFY if mask & inotify.CONTENT else inotify.ATTRIB
        for one in self.state.links.get(inode, set()) - {path} - self.read_at.keys():
            self.dirty.setdefault(one, change)

    def _path_of(self, inode: int) -> bytes | None:
        """Return the known path of a file. All of them are collected once per `look`: `cp -al` makes many links."""
        if self._paths is None:
            self._paths = {stamp[0]: path for path, stamp in self.state.stamps.items()}
        return self._paths.get(inode)
