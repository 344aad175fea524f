"""A small folder of a session outside of its store: the status file of an iteration, and the lock. Knows
the machine's folder for temporary files; not what is in them.

Outside, because an agent in a sandbox may write there and not into a store, and because a decision must
get through when the store's disk is full.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from playhead.errors import UsageError

_STATUS = "status"
_LOCK = "lock"


def folder_for(session: Path) -> Path:
    """By the session's own folder: every process of it finds the same."""
    name = hashlib.sha256(os.fsencode(session)).hexdigest()[:16]
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"playhead-{os.getuid()}" / name  # noqa: S108


def status_file(session: Path) -> Path:
    """Where an iteration writes its decision."""
    return folder_for(session) / _STATUS


def clear_status(session: Path) -> None:
    """An empty one, in a folder that is nobody else's. OSError: there is none."""
    folder = _made(session)
    fd = os.open(folder / _STATUS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.close(fd)


def hold(session: Path) -> int | None:
    """Take the session for this process, until it lets go or ends; None: nobody can say who has it.
    UsageError: another one has it.
    """
    try:
        fd = os.open(_made(session) / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise UsageError(f"Session {session.name} is going on just now.") from None
        return None
    return fd


def let_go(session: Path, held: int | None) -> None:
    """The inverse of `hold`; the folder goes with it."""
    folder = folder_for(session)
    for name in (_STATUS, _LOCK):
        with suppress(OSError):
            os.unlink(folder / name)
    with suppress(OSError):
        os.rmdir(folder)
    if held is not None:
        os.close(held)


def _made(session: Path) -> Path:
    folder = folder_for(session)
    for one in (folder.parent, folder):
        with suppress(FileExistsError):
            os.mkdir(one, 0o700)
        found = os.lstat(one)
        # Anybody may have made a folder, or a link, of that name in a place where all may write.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "belongs to somebody else", str(one))
    return folder
