"""Disks that a test mounts below the temporary folder, and tests that need this folder without mounts below it.

The kernel lets an ordinary user put an overlay over a folder only if nothing is mounted below it. So a test that
mounts a disk in one worker changes what a fence of another worker can do: these tests take turns.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LOCK = Path(tempfile.gettempdir()) / f"playhead-tests-mounts-{os.getuid()}.lock"


@contextlib.contextmanager
def mounting() -> Iterator[None]:
    with _locked(fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def without_mounts() -> Iterator[None]:
    with _locked(fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def _locked(kind: int) -> Iterator[None]:
    with _LOCK.open("w") as file:
        fcntl.flock(file, kind)
        yield
