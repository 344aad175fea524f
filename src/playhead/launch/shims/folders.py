"""Create and remove the folder that holds the shims of a run. Knows which folders are suitable."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from playhead import clock

# The maximum length of a socket's address.
_LONGEST_ADDRESS = 100
_PREFIX = "playhead-shims-"
# Where the clerk listens.
DOOR = "clerk"
_DAY_S = 24 * 3600


def make(env: Mapping[str, str]) -> Path:
    """For this run and this user alone, and with a short name: a socket's address is short."""
    name = f"{_PREFIX}{clock.urandom(6).hex()}"
    for parent in (env.get("TMPDIR"), "/tmp"):  # noqa: S108  0700, random
        if parent and len(parent) + len(name) < _LONGEST_ADDRESS:
            folder = Path(parent) / name
            try:
                folder.mkdir(mode=0o700)
            except OSError:
                continue
            _clear(folder.parent)
            return folder
    raise OSError("there is no suitable folder for them")


def remove(folder: Path) -> None:
    with suppress(OSError):
        for inner in sorted(folder.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        folder.rmdir()


def _clear(parent: Path) -> None:
    """Away with those of runs that were killed together with all their processes."""
    yesterday = clock.wall_ns() / 1e9 - _DAY_S
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            stat = folder.stat()
            if stat.st_uid == os.getuid() and stat.st_mtime < yesterday and not _is_open(folder):
                remove(folder)


def _is_open(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        return line.connect_ex(str(folder / DOOR)) == 0
