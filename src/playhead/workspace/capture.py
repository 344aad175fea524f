"""Turn one path of a workspace into an entry: store its content, or note why it is not stored.

Knows files, the pool and the repository's objects; does not choose the paths. Used for the snapshot at the start and
for every change afterwards.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping

from playhead.workspace.blobs.pool import LARGE, PoolWriter
from playhead.workspace.blobs.stable_read import (
    Content,
    is_database,
    open_file,
    read_database,
    read_file,
)
from playhead.workspace.chosen_files import LARGEST_FILE, LeftOut, is_secret
from playhead.workspace.git_objects import blob_name
from playhead.workspace.tree_listing import FOLDER, UNREAD, FileEntry, git_id, hash_only, link_id

_PACKS = b".git/objects/pack/"
_VOLATILE = (b"-shm",)


class Capture:
    """Stores files of one workspace. Never raises for a file that cannot be read."""

    def __init__(
        self,
        root: bytes,
        writer: PoolWriter,
        *,
        secrets: Callable[[], tuple[bytes, ...]],
        tracked: Callable[[], Mapping[bytes, bytes]],
    ) -> None:
        self.root = root
        self.writer = writer
        # Files that were left out and not reported yet: path and reason.
        self.left_out: list[LeftOut] = []
        # Files that changed while they were read.
        self.torn = 0
        self._secrets = secrets
        self._tracked = tracked
        # Objects of git that the snapshot has, loose or packed. Filled before files are captured.
        self.objects: set[bytes] = set()

    def read(self, path: bytes, status: os.stat_result) -> Content | None:
        """Read a small file now, to store it later. None: it is another kind of path, or cannot be read."""
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGE or path.endswith(_VOLATILE):
            return None
        try:
            return _read(self._full(path))
        except OSError:
            return None  # `entry` tries again, and notes the reason

    def entry(
        self,
        path: bytes,
        status: os.stat_result,
        old: FileEntry | None,
        content: Content | None = None,
    ) -> FileEntry | None:
        """Return the entry. None: it is not a file, folder or link. OSError: the store is full.

        `content` is the result of `read`; without it, the file is read now.
        """
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            return FileEntry(mode, 0, 0, FOLDER)
        if stat.S_ISLNK(mode):
            return self._link(path, status)
        if not stat.S_ISREG(mode):
            self._leave_out(path, f"special: {_kind(mode)}")
            return None
        if path.endswith(_VOLATILE):
            return (
                None  # shared memory of SQLite, rebuilt by the next process that opens the database
            )
        if status.st_size > LARGE:
            return self._large(path, status)
        return self._small(path, status, old, content)

    def _link(self, path: bytes, status: os.stat_result) -> FileEntry | None:
        try:
            target = os.readlink(self._full(path))
        except OSError:
            return None  # it was deleted or replaced, which has an event of its own
        return FileEntry(status.st_mode, len(target), status.st_mtime_ns, link_id(target))

    def _large(self, path: bytes, status: os.stat_result) -> FileEntry | None:
        is_pack = path.startswith(_PACKS)
        if is_secret(path) or (status.st_size > LARGEST_FILE and not is_pack):
            self._leave_out(path, "secret" if is_secret(path) else "large")
            return _unread(status)
        full = self._full(path)
        try:
            fd = open_file(full)
        except OSError as error:
            return self._unreadable(path, status, error)
        try:
            link = os.fsdecode(full) if is_pack else None
            digest = self.writer.put_file(fd, link=link)
            now = os.fstat(fd)
        finally:
            os.close(fd)
        return FileEntry(now.st_mode, now.st_size, now.st_mtime_ns, digest)

    def _small(
        self, path: bytes, status: os.stat_result, old: FileEntry | None, content: Content | None
    ) -> FileEntry | None:
        full = self._full(path)
        if content is None:
            if (
                name := self._unchanged(path, lambda: _read_once(full, status.st_size))
            ) is not None:
                return FileEntry(status.st_mode, status.st_size, status.st_mtime_ns, name)
            try:
                content = _read(full)
            except FileNotFoundError:
                return None
            except OSError as error:
                return self._unreadable(path, status, error)
        elif (name := self._unchanged(path, lambda: content.data)) is not None:
            now = content.status
            return FileEntry(now.st_mode, now.st_size, now.st_mtime_ns, name)
        data, now = content.data, content.status
        self.torn += content.torn
        if self._is_secret(path, data):
            self._leave_out(path, "secret")
            name = hash_only(hashlib.sha256(data).hexdigest())
        else:
            base = None if old is None or old.git_object else old.id
            name = self.writer.put(data, base)
        return FileEntry(now.st_mode, len(data), now.st_mtime_ns, name)

    def _unchanged(self, path: bytes, read: Callable[[], bytes | None]) -> str | None:
        """Return the object of the repository that has exactly this content, if the snapshot has it.

        The hash proves that the file was read completely: no further check is needed.
        """
        expected = self._tracked().get(path)
        if expected is None or expected not in self.objects or is_secret(path):
            return None
        data = read()
        return git_id(expected.hex()) if data is not None and blob_name(data) == expected else None

    def _is_secret(self, path: bytes, data: bytes) -> bool:
        if is_secret(path):
            return True
        return any(one in data for one in self._secrets())

    def _unreadable(self, path: bytes, status: os.stat_result, error: OSError) -> FileEntry:
        self._leave_out(path, f"unreadable: {error.strerror}")
        return _unread(status)

    def _leave_out(self, path: bytes, why: str) -> None:
        self.left_out.append(LeftOut(path, why))

    def _full(self, path: bytes) -> bytes:
        return os.path.join(self.root, path)


def _read(full: bytes) -> Content:
    """Read a file; a database in the middle of a transaction by SQLite's backup API."""
    content = read_file(full)
    if is_database(content.data) and (content.torn or _is_in_use(full)):
        copy = read_database(full)
        if copy is not None:
            return Content(copy, content.status, torn=False)
    return content


def _read_once(full: bytes, size: int) -> bytes | None:
    try:
        fd = open_file(full)
        try:
            return os.read(fd, size + 1)
        finally:
            os.close(fd)
    except OSError:
        return None


def _unread(status: os.stat_result) -> FileEntry:
    return FileEntry(status.st_mode, status.st_size, status.st_mtime_ns, UNREAD)


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFIFO: "FIFO",
        stat.S_IFSOCK: "socket",
        stat.S_IFCHR: "character device",
        stat.S_IFBLK: "block device",
    }
    return kinds.get(stat.S_IFMT(mode), "unknown type")


def _is_in_use(database: bytes) -> bool:
    """Return whether another process has an open transaction on the database."""
    return os.path.exists(database + b"-journal")
