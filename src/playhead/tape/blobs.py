"""Payloads over 64 KiB, each a file named after its content. Knows folders; not events.

Equal payloads share one file, and nothing is ever truncated.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from playhead.errors import TapeDamaged
from playhead.host.later import Later, pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from pathlib import Path
else:
    hashlib = Later("hashlib")

THRESHOLD = 64 * 1024
_NAME = pattern(r"[0-9a-f]{64}")


def blob_path(run: Path, digest: str) -> Path:
    """Where a blob lies. The digest comes from a tape: its form is checked, no path hides in it."""
    if not _NAME.fullmatch(digest):
        raise TapeDamaged(f"A blob is named {digest[:80]!r}; expected 64 hexadecimal digits.")
    return run / "blobs" / digest[:2] / digest


def push(run: Path, payload: bytes) -> str:
    """Store `payload` unless it is there already; its SHA-256 in either case."""
    digest = hashlib.sha256(payload).hexdigest()
    path = blob_path(run, digest)
    if path.exists():
        return digest
    path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
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
        # Not through links, and never waiting on a pipe: the folder may be a stranger's.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            payload = file.read() if S_ISREG(os.fstat(fd).st_mode) else b""
    except FileNotFoundError:
        raise TapeDamaged(f"Blob {digest} is missing from {run}.") from None
    except OSError as error:
        raise TapeDamaged(f"Blob {digest} in {run} cannot be read ({error.strerror}).") from None
    if hashlib.sha256(payload).hexdigest() != digest:
        raise TapeDamaged(f"Blob {digest} in {run} has been altered: its content has another hash.")
    return payload
