"""Compare a folder with a recorded tree. Knows files and hashes; does not know views."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable

from playhead.workspace.blobs.stable_read import hash_file, open_file, read_file
from playhead.workspace.chosen_files import ChosenFiles
from playhead.workspace.git_objects import blob_name
from playhead.workspace.tree_listing import (
    FOLDER,
    UNREAD,
    Change,
    FileEntry,
    Tree,
    git_id,
    hash_only,
    link_id,
)


def compare_folder(
    expected: Tree,
    folder: str,
    excluded: tuple[bytes, ...] = (),
    *,
    only: frozenset[bytes] | None = None,
    special: Callable[[bytes], object] = lambda _path: None,
) -> list[Change]:
    """Return the changes from the recorded tree to the folder. Empty: they are identical.

    `excluded` are folders in it that do not count. If `only` is given, just the files with these names count.
    `special` is called with each socket, pipe and device: a tree has none of them.

    A file with the recorded size and modification time counts as unchanged: restoring sets both.
    """
    # Not resolved: in a replay the name of the folder is a descriptor of another mount namespace.
    root = os.fsencode(folder)
    selection = ChosenFiles(
        root, tuple(os.path.join(root, one) for one in excluded), only=only, recorded=expected
    )
    differing: list[Change] = []
    seen: set[bytes] = set()
    for path, status in selection.walk():
        seen.add(path)
        wanted = expected.get(path)
        if is_special(status.st_mode):
            special(path)
        found = _entry(root, path, status, wanted)
        if found is not None and not found.same_as(wanted):
            differing.append(Change(path, wanted, found))
    for path, wanted in expected.items():
        if path not in seen and wanted.is_stored and selection.has(path):
            differing.append(Change(path, wanted, None))
    return sorted(differing, key=lambda one: one.path)


def is_special(mode: int) -> bool:
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def entry_now(root: bytes, path: bytes, wanted: FileEntry | None) -> FileEntry | None:
    """Return the current entry of a path. Its content has the same id as in `wanted` if it is equal. None: it does
    not exist.
    """
    try:
        status = os.lstat(os.path.join(root, path))
    except OSError:
        return None
    return _entry(root, path, status, wanted)


def is_now(root: bytes, path: bytes, entry: FileEntry | None) -> bool:
    """Return whether a path of a folder matches `entry`. An `entry` of None matches if the path does not exist."""
    found = entry_now(root, path, entry)
    return entry is None if found is None else found.same_as(entry)


def _entry(
    root: bytes, path: bytes, status: os.stat_result, wanted: FileEntry | None
) -> FileEntry | None:
    """Return the entry of a file. None: a snapshot leaves it out."""
    mode, full = status.st_mode, os.path.join(root, path)
    if stat.S_ISDIR(mode):
        return FileEntry(mode, 0, 0, FOLDER)
    if stat.S_ISLNK(mode):
        target = os.readlink(full)
        return FileEntry(mode, len(target), status.st_mtime_ns, link_id(target))
    if not stat.S_ISREG(mode) or path.endswith(b"-shm"):
        return None
    size, mtime = status.st_size, status.st_mtime_ns
    if wanted is not None and (wanted.size, wanted.mtime_ns) == (size, mtime):
        return FileEntry(mode, size, mtime, wanted.id)
    if wanted is not None and wanted.id == UNREAD:
        return FileEntry(wanted.mode, size, mtime, UNREAD)
    try:
        return FileEntry(mode, size, mtime, _name(full, size, wanted))
    except OSError:
        return FileEntry(mode, size, mtime, UNREAD)


def _name(full: bytes, size: int, wanted: FileEntry | None) -> str:
    """Return the id of the content, in the same scheme as the recorded one."""
    if size > 1 << 23:
        fd = open_file(full)
        try:
            return hash_file(fd)
        finally:
            os.close(fd)
    data = read_file(full).data
    if wanted is not None and wanted.git_object is not None:
        name = git_id(blob_name(data).hex())
        if name == wanted.id:
            return name
    digest = hashlib.sha256(data).hexdigest()
    if wanted is not None and wanted.id == hash_only(digest):
        return wanted.id
    return digest
