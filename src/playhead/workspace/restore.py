"""Restore a recorded tree into a folder: bytes, modes, times, links, empty folders. Knows files; does not know
steps.

Never writes through a symbolic link, and never into a folder that already has files: other tools have destroyed
their users' work by deleting such files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress

from playhead.errors import UsageError
from playhead.workspace.chosen_files import LeftOut
from playhead.workspace.tree_listing import Change, FileEntry, Tree

Read = Callable[[FileEntry], bytes]


def restore_tree(tree: Tree, target: str, read: Read) -> list[LeftOut]:
    """Write a tree into a new or empty folder. Return the files that could not be restored. UsageError: it is not
    empty.
    """
    folder = os.fsencode(target)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UsageError(f"{target} exists and is not a folder; name a new one.")
    if os.path.isdir(folder) and os.listdir(folder):
        raise UsageError(f"{target} is not empty; name a new folder, or use --in-place.")
    os.makedirs(folder, exist_ok=True)
    missing: list[LeftOut] = []
    _check_collisions(tree, folder)
    for path, entry in sorted(tree.items()):
        _write(folder, path, entry, read, missing)
    _set_folder_modes(tree, folder)
    return missing


def apply_effects(
    folder: str, changes: tuple[Change, ...], read: Read, *, keep_inodes: bool = False
) -> list[LeftOut]:
    """Change a folder from its state before some changes to its state after them.

    `keep_inodes`: write into existing files, for programs that have them open.
    """
    root, missing = os.fsencode(folder), list[LeftOut]()
    for change in sorted(changes, key=lambda one: one.path, reverse=True):
        if change.after is None or _type_changes(change):
            _remove(root, change.path)
    for change in sorted(changes, key=lambda one: one.path):
        if change.after is not None:
            if change.is_touch:
                _set_time(root, change.path, change.after)
                continue
            if keep_inodes and _overwrite(root, change, read):
                continue
            _write(root, change.path, change.after, read, missing)
    folders = {c.path: c.after for c in changes if c.after is not None and c.after.is_folder}
    _set_folder_modes(folders, root)
    return missing


def _set_time(root: bytes, path: bytes, entry: FileEntry) -> None:
    with suppress(OSError, NotImplementedError):
        times = (entry.mtime_ns, entry.mtime_ns)
        os.utime(_inside(root, path), ns=times, follow_symlinks=False)


def _overwrite(root: bytes, change: Change, read: Read) -> bool:
    """Write into an existing file. Return whether that was possible."""
    entry = change.after
    if entry is None or not (entry.is_file and entry.is_stored):
        return False
    full = _inside(root, change.path)
    try:
        if not stat.S_ISREG(os.lstat(full).st_mode):
            return False
        fd = os.open(full, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with open(fd, "wb") as file:
        file.write(read(entry))
        file.flush()
        os.fchmod(fd, stat.S_IMODE(entry.mode))
    os.utime(full, ns=(entry.mtime_ns, entry.mtime_ns))
    return True


def _type_changes(change: Change) -> bool:
    before, after = change.before, change.after
    return (
        before is not None
        and after is not None
        and stat.S_IFMT(before.mode) != stat.S_IFMT(after.mode)
    )


def _remove(root: bytes, path: bytes) -> None:
    full = _inside(root, path)
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.lstat(full).st_mode):
            # If it has files that no tape knows, the folder stays.
            with suppress(OSError):
                os.rmdir(full)
        else:
            os.unlink(full)


def _write(root: bytes, path: bytes, entry: FileEntry, read: Read, missing: list[LeftOut]) -> None:
    full = _inside(root, path)
    if entry.is_folder:
        with suppress(FileExistsError):
            os.makedirs(full, 0o700)
        return
    if not entry.is_stored:
        missing.append(LeftOut(path, "its content is not on the tape"))
        return
    os.makedirs(os.path.dirname(full), exist_ok=True)
    if entry.is_link:
        with suppress(FileNotFoundError):
            os.unlink(full)
        os.symlink(entry.target, full)
        with suppress(OSError, NotImplementedError):
            os.utime(full, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)
        return
    content = read(entry)
    # Written under another name, then renamed: a process that has the old file open keeps its content.
    part = os.path.join(os.path.dirname(full), b".playhead-%d.part" % os.getpid())
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(part, flags, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(fd, stat.S_IMODE(entry.mode))
        os.utime(part, ns=(entry.mtime_ns, entry.mtime_ns))
        os.replace(part, full)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise


def _set_folder_modes(tree: Tree, root: bytes) -> None:
    """Set the modes of folders last, deepest first: no file can be created in a folder without write permission."""
    for path in sorted((p for p, entry in tree.items() if entry.is_folder), reverse=True):
        with suppress(OSError):
            os.chmod(os.path.join(root, path), stat.S_IMODE(tree[path].mode))


def _inside(root: bytes, path: bytes) -> bytes:
    """Return the full path, if no folder on the way is a symbolic link that leads out."""
    full = os.path.join(root, path)
    folder = os.path.dirname(full)
    while len(folder) > len(root):
        if os.path.islink(folder):
            raise UsageError(
                f"{os.fsdecode(folder)} is a symbolic link here; expected a folder of the workspace."
            )
        folder = os.path.dirname(folder)
    return full


def _check_collisions(tree: Tree, folder: bytes) -> None:
    """Refuse names that differ only in case if the file system ignores case: they would become one file."""
    probe, other = os.path.join(folder, b".playhead-Case"), os.path.join(folder, b".playhead-case")
    os.close(os.open(probe, os.O_CREAT | os.O_CLOEXEC, 0o600))
    is_insensitive = os.path.exists(other)
    os.unlink(probe)
    if not is_insensitive:
        return
    seen: dict[bytes, bytes] = {}
    for path in tree:
        first = seen.setdefault(path.lower(), path)
        if first != path:
            raise UsageError(
                f"{os.fsdecode(first)} and {os.fsdecode(path)} differ in case only; this file system cannot "
                "hold both. Name a folder on another one."
            )
