"""The mounts of this process, and the calls that change them. Knows Linux; not what a fence covers."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from playhead.replay.fence.kernel import MOUNT_SETATTR, call, syscall

_MS_RDONLY, _MS_REMOUNT, _MS_BIND = 0x1, 0x20, 0x1000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_MS_NOSUID, _MS_NODEV = 0x2, 0x4
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY = 0x1


class Mount(NamedTuple):
    """One line of mountinfo."""

    path: str
    kind: str
    options: str


def mounts() -> list[Mount]:
    """Return all mounts in the order in which they were made: a later one may cover an earlier one."""
    with open("/proc/self/mountinfo", "rb") as file:
        return list(_parsed(file.read()))


def _parsed(table: bytes) -> Iterator[Mount]:
    for line in table.splitlines():
        fields, _, rest = line.partition(b" - ")
        words = fields.split()
        # Blanks, tabs, line ends and backslashes are octal escapes.
        path = words[4].decode("unicode_escape").encode("latin-1")
        yield Mount(os.fsdecode(path), os.fsdecode(rest.split()[0]), os.fsdecode(words[5]))


def make_private() -> None:
    """Make the mounts private: mounts made here from now on are not seen outside, nor the other way round."""
    call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)


def tmpfs(path: str, *, mode: int) -> None:
    flags = _MS_NOSUID | _MS_NODEV
    call("mount", b"tmpfs", os.fsencode(path), b"tmpfs", flags, f"mode={mode:o}".encode())


def overlay(path: str, options: str) -> None:
    call("mount", b"overlay", os.fsencode(path), b"overlay", 0, os.fsencode(options))


def bind(source: str, target: str) -> None:
    call("mount", os.fsencode(source), os.fsencode(target), None, _MS_BIND, None)


def detach(path: str) -> None:
    """Remove a mount from the tree; files in use stay until they are closed."""
    call("umount2", os.fsencode(path), _MNT_DETACH)


def set_read_only(path: str, *, below: bool = False) -> None:
    """Make a mount read-only. `below`: every mount under `path` as well."""
    try:
        _set_attributes(path, on=_ATTR_RDONLY, off=0, below=below)
    except OSError:  # before Linux 5.12: one mount after the other, each with the flags it has
        inside = path.rstrip("/") + "/"
        for one in mounts():
            if one.path == path or (below and one.path.startswith(inside)):
                call(
                    "mount", b"none", os.fsencode(one.path), None, _remount(one) | _MS_RDONLY, None
                )


def set_writable(path: str) -> None:
    try:
        _set_attributes(path, on=0, off=_ATTR_RDONLY, below=False)
    except OSError:
        found = next(one for one in reversed(mounts()) if one.path == path)
        call("mount", b"none", os.fsencode(path), None, _remount(found), None)


def _set_attributes(path: str, *, on: int, off: int, below: bool) -> None:
    attributes = struct.pack("4Q", on, off, 0, 0)
    flags = _AT_RECURSIVE if below else 0
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    syscall(MOUNT_SETATTR, "mount_setattr", _AT_FDCWD, os.fsencode(path), flags, buffer, 32)


def _remount(one: Mount) -> int:
    """Return the flags of a remount that changes nothing: a user namespace may not remove any of them."""
    known = {"nosuid": 0x2, "nodev": 0x4, "noexec": 0x8, "noatime": 0x400, "relatime": 0x200000}
    kept = sum(flag for word, flag in known.items() if word in one.options.split(","))
    return _MS_REMOUNT | _MS_BIND | kept
