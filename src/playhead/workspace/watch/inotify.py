"""File events from the Linux kernel. Knows the system calls; does not know what the events mean.

With ctypes, because the standard library has no inotify. An event is queued inside the system call that
causes it, so after a process has ended, reading the queue to its end returns everything it did.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_FOLDER = 0x4000, 0x8000, 0x40000000
CONTENT = MODIFY | CLOSE_WRITE | CREATE | MOVED_TO
_WATCHED = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
_ONLY_FOLDERS = 0x01000000
_DONT_FOLLOW = 0x02000000
_HEAD = struct.Struct("iIII")
_BUFFER = 1 << 18

# File systems whose changes the kernel does not see, or not all of them.
_SILENT = ("9p", "fuse", "nfs", "cifs", "smb", "vboxsf", "virtiofs", "drvfs", "afs", "ceph")


class FileEvent(NamedTuple):
    """A file event. `watch` is the number that `add` returned; -1 means that events were lost."""

    watch: int
    mask: int
    name: bytes


class Inotify:
    """One queue of events. OSError: the kernel has no inotify, or allows no more watches."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("inotify is a Linux system call")
        self._library = ctypes.CDLL(None, use_errno=True)
        self.fd = self._library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            raise _failure("inotify_init1")

    def add(self, folder: bytes, events: int = _WATCHED) -> int:
        """Watch a folder. The same folder under another name gets the same number again."""
        flags = events | _ONLY_FOLDERS | _DONT_FOLLOW
        number = self._library.inotify_add_watch(self.fd, folder, ctypes.c_uint32(flags))
        if number < 0:
            raise _failure("inotify_add_watch")
        return int(number)

    def read(self) -> bytes:
        """Return the queued events; empty if there are none."""
        try:
            return os.read(self.fd, _BUFFER)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self.fd)


def parse_events(queued: bytes) -> Iterator[FileEvent]:
    at = 0
    while at < len(queued):
        watch, mask, _, length = _HEAD.unpack_from(queued, at)
        at += _HEAD.size
        yield FileEvent(watch, mask, queued[at : at + length].rstrip(b"\0"))
        at += length


def is_silent(folder: bytes) -> bool:
    """Return whether the folder is on a file system that reports no changes, such as Docker Desktop's mounts."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return False
    best, kind = b"", b""
    for line in lines:
        left, _, right = line.partition(b" - ")
        place = left.split(b" ")[4].replace(b"\\040", b" ")
        inside = folder == place or folder.startswith(place.rstrip(b"/") + b"/")
        if inside and len(place) >= len(best):
            best, kind = place, right.split(b" ")[0]
    return kind.startswith(tuple(one.encode() for one in _SILENT))


def _failure(name: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{name}: {os.strerror(number)}")
