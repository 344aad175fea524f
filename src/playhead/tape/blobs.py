"""Payloads over 64 KiB: stored as files named by their hash, and replaced by references in events.

Knows folders and frozen values; not events.
"""

from __future__ import annotations

import os

from playhead.encoding.jsonbytes import decode_std
from playhead.errors import TapeDamaged
from playhead.host.later import Later, pattern
from playhead.host.private_files import create_part, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    import base64
    import hashlib
    import pathlib
    from pathlib import Path
    from typing import Any

    from playhead.encoding.jsonbytes import Encode
    from playhead.tape.reading import partial_run
else:
    hashlib = Later("hashlib")
    base64 = Later("base64")
    pathlib = Later("pathlib")
    partial_run = Later("playhead.tape.reading.partial_run")  # for payloads that are missing


THRESHOLD = 64 * 1024
# The recorder never stores more in one blob: a body or an output in one piece.
LARGEST = 4 * 1024 * 1024 * 1024
_NAME = pattern(r"[0-9a-f]{64}")


def blob_path(run: Path, digest: str) -> Path:
    """Return the path of a blob. The digest comes from a tape, so its form is checked: it must not contain a path."""
    if not _NAME.fullmatch(digest):
        raise TapeDamaged(f"A blob is named {digest[:80]!r}; expected 64 hexadecimal digits.")
    return run / "blobs" / digest[:2] / digest


def push(run: Path, payload: bytes) -> str:
    """Store `payload` unless it is stored already. Return its SHA-256."""
    digest = hashlib.sha256(payload).hexdigest()
    path = blob_path(run, digest)
    if path.exists():
        return digest
    path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    # The file gets its name only when it is complete: a kill leaves a *.part file that is never read, never a
    # blob whose content does not match its name.
    fd, part = create_part(path)
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
    """Return the payload; raise TapeDamaged if it is missing or does not match its name."""
    path = blob_path(run, digest)
    try:
        payload = read_regular(path, LARGEST)
    except FileNotFoundError:
        if not partial_run.fetch_blob(run, digest):
            raise TapeDamaged(f"Blob {digest} is missing from {run}.") from None
        payload = read_regular(path, LARGEST)
    except OSError as error:
        raise TapeDamaged(f"Blob {digest} in {run} cannot be read ({error.strerror}).") from None
    if hashlib.sha256(payload).hexdigest() != digest:
        raise TapeDamaged(f"Blob {digest} in {run} has been altered: its content has another hash.")
    return payload


# Occurs in each line that has a part of its data in a blob.
SPILLED = b'"$blob"'
# Three levels: all data of an event, a member of it, a string in that.
_DEEPEST = 3


def spill(run: Path | str, frozen: Any, encode: Encode) -> bytes:
    """Return `frozen` as JSON of at most about 64 KiB, with its large parts in blobs."""
    run = pathlib.Path(run)
    small = _leaves(run, frozen)
    encoded = encode(small)
    if len(encoded) <= THRESHOLD:
        return encoded
    if type(small) is not dict or next(iter(small), "")[:1] == "$":
        return encode(_blob(run, encoded, "json"))
    # Many small leaves: move the largest members to blobs first, so that the small members that describe the event
    # stay.
    sizes = {name: len(encode(item)) for name, item in small.items()}
    total = len(encoded)
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        small[name] = _blob(run, encode(small[name]), "json")
        total -= sizes[name] - 110
        if total <= THRESHOLD:
            return encode(small)
    return encode(_blob(run, encode(small), "json"))


def unspill(run: Path, frozen: Any) -> Any:
    """Put every blob back in its place: the inverse of `spill`. TapeDamaged: a blob is missing, altered or invalid."""
    try:
        return _Unspiller(run).whole(frozen, 0)
    except RecursionError:
        raise TapeDamaged(f"An event in {run} is nested too deeply to be put together.") from None


class _Unspiller:
    """The blobs of one event. Each is opened once: blobs that contain each other several times must not grow in memory
    beyond their size on disk.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._opened: dict[tuple[str, str], Any] = {}

    def whole(self, frozen: Any, depth: int) -> Any:
        if type(frozen) is list:
            return [self.whole(item, depth) for item in frozen]
        if type(frozen) is not dict:
            return frozen
        if "$blob" in frozen:
            return self._open(str(frozen["$blob"]), str(frozen.get("as")), depth)
        if (
            type(frozen.get("$dict")) is dict
        ):  # the keys inside are the host's own, "$blob" included
            return {
                "$dict": {name: self.whole(item, depth) for name, item in frozen["$dict"].items()}
            }
        return {name: self.whole(item, depth) for name, item in frozen.items()}

    def _open(self, digest: str, kind: str, depth: int) -> Any:
        if depth >= _DEEPEST:
            raise TapeDamaged(
                f"Blob {digest[:80]} in {self._run} contains nested references to blobs. Playhead did not write it."
            )
        if (digest, kind) not in self._opened:
            self._opened[digest, kind] = self._payload(digest, kind, depth)
        return self._opened[digest, kind]

    def _payload(self, digest: str, kind: str, depth: int) -> Any:
        payload = pull(self._run, digest)
        if kind == "text":
            return payload.decode("utf-8", "replace")
        if kind == "bytes":
            return {"$bytes": base64.b64encode(payload).decode()}
        try:
            return self.whole(decode_std(payload), depth + 1)
        except ValueError as error:
            raise TapeDamaged(f"Blob {digest} in {self._run} is not JSON ({error}).") from None


def _leaves(run: Path, frozen: Any) -> Any:
    if type(frozen) is str:
        return _blob(run, frozen.encode(), "text") if len(frozen) > THRESHOLD else frozen
    if type(frozen) is list:
        return [_leaves(run, item) for item in frozen]
    if type(frozen) is not dict:
        return frozen
    if type(frozen.get("$dict")) is dict:  # the keys inside are the host's own, "$bytes" included
        return {"$dict": {name: _leaves(run, item) for name, item in frozen["$dict"].items()}}
    raw = frozen.get("$bytes")
    if type(raw) is str and len(raw) > THRESHOLD:
        return _blob(run, base64.b64decode(raw), "bytes")
    return {name: _leaves(run, item) for name, item in frozen.items()}


def _blob(run: Path, payload: bytes, kind: str) -> dict[str, Any]:
    return {"$blob": push(run, payload), "size": len(payload), "as": kind}
