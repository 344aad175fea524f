"""Open, read and replace the files of a store. Knows file types and limits; does not know their contents.

A store can come from another person. Its files may then be links to the user's own files, named pipes that
never deliver a byte, devices without an end, or simply too large. And a file with a predictable name can be
planted before we write to it. So all code that reads or writes a store opens its files here.
"""

from __future__ import annotations

import errno
import os
from stat import S_ISREG

from playhead import clock
from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from pathlib import Path
    from typing import BinaryIO
else:
    hashlib = Later("hashlib")

# Do not follow links; and opening a pipe without a writer returns at once instead of waiting for one.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 1024 * 1024
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_regular(path: Path | str) -> int:
    """Return a descriptor for reading. OSError: there is no file, or it is a link, pipe, device or folder."""
    fd = os.open(path, _READ)
    if not S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return fd


def file_of(path: Path | str) -> BinaryIO:
    """Open a file of a store like `open(path, "rb")`."""
    return open(open_regular(path), "rb")


def read_regular(path: Path | str, limit: int) -> bytes:
    """Return the content of a file of at most `limit` bytes. OSError: see `open_regular`, or it is larger."""
    with file_of(path) as file:
        # Read one byte more than its size, because a file may grow. A buffer of `limit` bytes would cost more than the
        # read.
        raw = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
        if len(raw) > limit:
            raise OSError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
        return raw


def sha256_of(path: Path | str) -> tuple[str, int]:
    """Return SHA-256 and size of a file. OSError: see `open_regular`."""
    digest, size = hashlib.sha256(), 0
    with file_of(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def create_part(path: Path | str) -> tuple[int, str]:
    """Create a file beside `path` with an unguessable name, for its owner alone. Return its descriptor, open for
    writing, and its name.
    """
    part = f"{path}.{clock.urandom(8).hex()}.part"
    return os.open(part, _CREATE, 0o600), part


def replace_file(path: Path | str, content: bytes) -> None:
    """Write `content` to `path` atomically: a reader sees the old file or the new one, never a part."""
    fd, part = create_part(path)
    try:
        # Through a file object: on a nearly full disk write(2) writes a part and reports success.
        with open(fd, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def copy_regular(source: Path | str, target: Path | str) -> None:
    """Copy a folder with its regular files. Links, pipes and devices are left out, not followed.

    OSError: the disk of `target` does not have enough room for all of them.
    """
    found = [
        (folder, name)
        for folder, _, names in os.walk(source)
        for name in names
        if S_ISREG(os.lstat(os.path.join(folder, name)).st_mode)
    ]
    needed = sum(os.lstat(os.path.join(*one)).st_size for one in found)
    os.makedirs(target, mode=0o700, exist_ok=True)
    room = os.statvfs(target)
    if needed > room.f_bavail * room.f_frsize:
        raise OSError(errno.ENOSPC, f"no room for {needed:,} bytes", str(target))
    for folder, name in found:
        place = os.path.join(target, os.path.relpath(folder, source))
        os.makedirs(place, mode=0o700, exist_ok=True)
        with (
            file_of(os.path.join(folder, name)) as old,
            open(os.open(os.path.join(place, name), _CREATE, 0o600), "wb") as new,
        ):
            while block := old.read(_BLOCK):
                new.write(block)


def write_export(path: Path | str, text: str) -> None:
    """Write an export: a new file is for its owner alone. Follows links, because the user named this path."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
