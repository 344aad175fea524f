"""A folder that no overlay can cover, composed of its entries: an overlay for each folder in it, copies of its files.

In a user namespace the kernel refuses an overlay over a folder with mounts below it (EINVAL): the overlay would show
the files that those mounts hide. AppImages mount themselves below `/tmp`, and people mount disks below their home.
If such a folder were read-only, every program that needs a temporary file would fail. So a folder of the stage takes
its place. Knows one folder; does not know which folders a fence covers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from playhead.replay.fence import mount_table

# Larger files are shown as they are, read-only: the stage is in memory.
_LARGEST_COPY = 4 << 20
_MOST_COPIED = 256 << 20


@dataclass(slots=True)
class Composed:
    """Replaces folders by compositions. `cover` puts a cover over one folder in them."""

    # Path of a folder, path of its real twin → None.
    cover: Callable[[str, str], None]
    # Paths that are mount points: the fence covers these on its own.
    mounted: frozenset[str]
    # File that is part of the composition → its size and its time of modification, so that a file that the command
    # wrote is recognised.
    copies: dict[str, tuple[int, int]] = field(default_factory=dict)
    _copied: int = 0

    def fill(self, path: str, real: str) -> None:
        """Fill the folder `path`, which is empty and writable, with what is in the folder `real`."""
        with os.scandir(real) as entries:
            for entry in entries:
                # Files of `/tmp` come and go, and some may not be read. A program would not see those either.
                with suppress(OSError):
                    self._add(os.path.join(path, entry.name), f"{real}/{entry.name}")

    def _add(self, path: str, real: str) -> None:
        seen = os.lstat(real)
        mode = stat.S_IMODE(seen.st_mode)
        if stat.S_ISLNK(seen.st_mode):
            os.symlink(os.readlink(real), path)
            self._note(path)
        elif stat.S_ISDIR(seen.st_mode):
            self._add_folder(path, real, mode)
        elif stat.S_ISREG(seen.st_mode):
            self._add_file(path, real, seen)
        elif stat.S_ISSOCK(seen.st_mode) or stat.S_ISFIFO(seen.st_mode):
            # A new inode: no process outside listens on it or reads from it.
            os.mknod(path, stat.S_IFMT(seen.st_mode) | mode)
            self._note(path)

    def _add_folder(self, path: str, real: str, mode: int) -> None:
        os.mkdir(path)
        os.chmod(path, mode)
        if path in self.mounted:
            return
        if any(one.startswith(f"{path}/") for one in self.mounted):
            self.fill(path, real)
        else:
            self.cover(path, real)

    def _add_file(self, path: str, real: str, seen: os.stat_result) -> None:
        if path not in self.mounted and self._may_copy(seen):
            with suppress(OSError):
                _copy(real, path, seen)
                self._copied += seen.st_size
                self._note(path)
                return
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        self._note(path)
        if path not in self.mounted:
            mount_table.bind(real, path)
            mount_table.set_read_only(path)

    def _may_copy(self, seen: os.stat_result) -> bool:
        """Return whether to copy a file. The user cannot write files of other users, and a copy would belong to the
        user, so these are shown as they are.
        """
        fits = seen.st_size <= min(_LARGEST_COPY, _MOST_COPIED - self._copied)
        return fits and seen.st_uid == os.geteuid()

    def _note(self, path: str) -> None:
        made = os.lstat(path)
        self.copies[path] = (made.st_size, made.st_mtime_ns)


def _copy(real: str, path: str, seen: os.stat_result) -> None:
    with open(real, "rb") as file:
        data = file.read(_LARGEST_COPY)
    with open(path, "wb") as copy:
        copy.write(data)
    os.chmod(path, stat.S_IMODE(seen.st_mode))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
