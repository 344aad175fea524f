"""The journal of a batch: its verdicts so far, so that an interrupted batch can resume."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead.errors import StoreError, UsageError
from playhead.tape.store import open_store

_FOLDER = "batches"
_BATCH = "batch"


class Journal:
    """Verdicts of a batch so far, as JSON lines; locked while open, deleted when the batch is done."""

    def __init__(self, home: Path, key: str) -> None:
        # Names this execution of the batch, until it is over. Empty: not begun, or the journal of an older version.
        self.batch = ""
        folder = open_store(home) / _FOLDER
        self.path = folder / f"{key}.jsonl"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written ({error.strerror}).") from error
        try:
            # lockf belongs to the process: replays that outlive a killed batch do not hold the lock.
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise UsageError(
                "This batch is already running. Wait for it to end, or stop it."
            ) from None

    def read(self) -> list[dict[str, Any]]:
        """Return every complete line; a line that was torn by a crash is dropped."""
        raw = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        found: list[dict[str, Any]] = []
        good = 0
        for line in raw.splitlines(keepends=True):
            try:
                members = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                members = None
            if not isinstance(members, dict):
                break
            if good == 0 and isinstance(members.get(_BATCH), str):
                self.batch = members[_BATCH]
            else:
                found.append(members)
            good += len(line)
        os.ftruncate(self._fd, good)
        os.lseek(self._fd, good, os.SEEK_SET)
        return found

    def begin(self, batch: str) -> None:
        """Forget an earlier execution, and begin this one."""
        os.ftruncate(self._fd, 0)
        os.lseek(self._fd, 0, os.SEEK_SET)
        self.batch = batch
        self.write({_BATCH: batch})

    def write(self, members: Mapping[str, Any]) -> None:
        line = json.dumps(members, ensure_ascii=True, separators=(",", ":")) + "\n"
        rest = line.encode()
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        os.fsync(self._fd)

    def close(self, *, over: bool) -> None:
        """Close the journal. `over`: there is nothing to resume."""
        if over:
            self.path.unlink(missing_ok=True)
        os.close(self._fd)
