"""The folder in which the shims of a run are. Knows where there is one to be had; not what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from playhead import clock

# What the address of a socket has room for.
_LONGEST_ADDRESS = 100


def make(env: Mapping[str, str]) -> Path:
    """For this run and this user alone, and with a short name: a socket's address is short."""
    name = f"playhead-{clock.urandom(6).hex()}"
    for parent in (env.get("TMPDIR"), "/tmp"):  # noqa: S108  0700, random
        if parent and len(parent) + len(name) < _LONGEST_ADDRESS:
            folder = Path(parent) / name
            try:
                folder.mkdir(mode=0o700)
            except OSError:
                continue
            return folder
    raise OSError("there is no folder for them to be in")


def remove(folder: Path) -> None:
    with suppress(OSError):
        for inner in sorted(folder.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        folder.rmdir()
