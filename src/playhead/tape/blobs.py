"""Payloads over 64 KiB, each a file named after its content. Knows folders; not events.

Equal payloads share one file, and nothing is ever truncated.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from playhead.errors import TapeDamaged

THRESHOLD = 64 * 1024
_NAME = re.compile(r"[0-9a-f]{64}")


def blob_path(run: Path, digest: str) -> Path:
    """Where a blob lies. The digest comes from a tape, so its form is checked: no path can hide in it."""
    if not _NAME.fullmatch(digest):
        raise TapeDamaged(f"A blob is named {digest[:80]!r}; expected 64 hexadecimal digits.")
    return run / "blobs" / digest[:2] / digest


def push(run: Path, payload: bytes) -> str:
    """Store `payload` unless it is there already; its SHA-256 in either case."""
    digest = hashlib.sha256(payload).hexdigest()
    path = blob_path(run, digest)
    if path.exists():
        return digest
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Under its own name only when whole: a kill in the middle leaves a *.part that nobody reads,
    # never a blob whose content belies its name.
    part = path.with_name(f"{digest}.{os.getpid()}.part")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(payload)
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        os.unlink(part)
        raise
    finally:
        os.close(fd)
    os.replace(part, path)
    return digest


def pull(run: Path, digest: str) -> bytes:
    """The payload; TapeDamaged if it is missing or is not what its name says."""
    path = blob_path(run, digest)
    try:
        payload = path.read_bytes()
    except FileNotFoundError:
        raise TapeDamaged(f"Blob {digest} is missing from {run}.") from None
    if hashlib.sha256(payload).hexdigest() != digest:
        raise TapeDamaged(f"Blob {digest} in {run} has been altered: its content has another hash.")
    return payload
