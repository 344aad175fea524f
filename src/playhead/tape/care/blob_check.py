"""Check that the blobs that events refer to exist and match their names. Knows references and files; reads a blob in
pieces, whatever its size.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal

from playhead.errors import TapeDamaged
from playhead.events import Event
from playhead.host.private_files import read_regular
from playhead.tape.blobs import blob_path

State = Literal["whole", "missing", "altered"]
_PIECE = 1024 * 1024
# Blobs that hold JSON may refer to others. Playhead never wrote one this large.
_LARGEST_JSON = 256 * 1024 * 1024


class BlobCheck:
    """Checks every blob once, and reports the events that refer to damaged ones."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._states: dict[str, State] = {}
        self._looked_inside: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._states)

    def in_state(self, state: State) -> list[str]:
        return [digest for digest, known in self._states.items() if known == state]

    def look(self, event: Event, raw: bytes) -> list[tuple[str, State]]:
        """Return the blobs of this event that are not whole and were not reported for an earlier event."""
        if b'"$blob"' not in raw:
            return []
        found: list[tuple[str, State]] = []
        waiting = references(event.data)
        while waiting:
            digest, kind = waiting.pop()
            known = self._states.get(digest)
            state = known or state_of(self._run, digest)
            self._states[digest] = state
            if state != "whole":
                found += [(digest, state)] if known is None else []
            elif kind not in ("text", "bytes") and digest not in self._looked_inside:
                self._looked_inside.add(digest)
                waiting += references(_json(self._run, digest))
        return found


def references(frozen: Any) -> list[tuple[str, str]]:
    """Return digest and form of every blob in a value, without recursion."""
    found = []
    waiting = [frozen]
    while waiting:
        value = waiting.pop()
        if type(value) is list:
            waiting += value
        elif type(value) is dict:
            if "$blob" in value:
                found.append((str(value["$blob"]), str(value.get("as"))))
                continue
            # The keys inside a $dict are the host's own: "$blob" has no meaning there.
            inner = value.get("$dict")
            waiting += (inner if type(inner) is dict else value).values()
    return found


def state_of(run: Path, digest: str) -> State:
    try:
        path = blob_path(run, digest)
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (TapeDamaged, OSError):
        return "missing"
    with open(fd, "rb") as file:
        if not S_ISREG(os.fstat(fd).st_mode):
            return "altered"
        hashed = hashlib.sha256()
        while piece := file.read(_PIECE):
            hashed.update(piece)
    return "whole" if hashed.hexdigest() == digest else "altered"


def _json(run: Path, digest: str) -> Any:
    """Return the JSON of a blob; None if it is not JSON: then it refers to no other blob."""
    try:
        path = blob_path(run, digest)
        return json.loads(read_regular(path, _LARGEST_JSON))
    except (ValueError, OSError, RecursionError):
        return None
