"""Access to the tapes of a store, as the catalogue needs it: a small interface, and its implementation for a
folder.

Tapes in object storage would need another class with these methods, and no other change in `library`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from playhead import clock
from playhead.library.run_rows import stamp_of
from playhead.tape import annotations as marks
from playhead.tape import store
from playhead.tape.manifest import Manifest, read_manifest
from playhead.tape.reader import Tape

# The modification time of a folder is as coarse as the kernel's tick, on some file systems two seconds: two changes
# within one tick look like one.
_SETTLED_NS = 100_000_000
_COARSELY_SETTLED_NS = 2_500_000_000


class Shelf(Protocol):
    """The runs of one store. Unreadable data raises PlayheadError."""

    def ids(self) -> Iterable[str]: ...

    def version(self) -> str | None:
        """Changes whenever a run is added or deleted. None: it cannot be determined now."""

    def announced(self) -> Mapping[str, int]:
        """Return runs that changed after they had ended, each with a token for `heard`."""

    def heard(self, announcements: Mapping[str, int]) -> None: ...

    def stamp(self, run_id: str) -> str | None:
        """Changes whenever the manifest changes. None: the run does not exist."""

    def state(self, run_id: str, prices: str) -> str:
        """Return a text that changes with the tape, the manifest or the prices."""

    def manifest(self, run_id: str) -> Manifest: ...

    def changed_ns(self, run_id: str) -> int:
        """Return when a run without a known start was last changed."""

    def tape(self, run_id: str) -> Tape: ...


class FolderShelf:
    """A store on this machine."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._runs = home / "runs"
        # Joining path objects costs more than the system call itself.
        self._prefix = f"{self._runs}/"

    def path(self, run_id: str) -> Path:
        return self._runs / run_id

    def ids(self) -> list[str]:
        # Playhead did not create a folder whose name is not text, and no database can hold such a name.
        return [run for run in store.run_ids(self.home) if run.isascii() or run.isprintable()]

    def version(self) -> str | None:
        try:
            state = self._runs.stat()
        except OSError:
            return None
        is_coarse = state.st_mtime_ns % 1_000_000_000 == 0
        settled = _COARSELY_SETTLED_NS if is_coarse else _SETTLED_NS
        if clock.wall_ns() - state.st_mtime_ns < settled:
            return None
        return f"{state.st_mtime_ns} {state.st_ino}"

    def announced(self) -> dict[str, int]:
        return store.announced(self.home)

    def heard(self, announcements: Mapping[str, int]) -> None:
        store.heard(self.home, announcements)

    def stamp(self, run_id: str) -> str | None:
        folder = self._prefix + run_id
        manifest = _changed(f"{folder}/{store.MANIFEST}")
        if not manifest and not os.path.isdir(folder):  # noqa: PTH112  as above
            return None
        return f"{manifest or 'none'}{_changed(f'{folder}/{marks.FILE}')}"

    def state(self, run_id: str, prices: str) -> str:
        return stamp_of(self._prefix + run_id, prices)

    def manifest(self, run_id: str) -> Manifest:
        return read_manifest(self._runs / run_id)

    def changed_ns(self, run_id: str) -> int:
        try:
            return (self._runs / run_id).stat().st_mtime_ns
        except OSError:
            return 0

    def tape(self, run_id: str) -> Tape:
        return Tape(self._runs / run_id)


def _changed(path: str) -> str:
    try:
        state = os.stat(path)  # noqa: PTH116  Path.stat costs three times as much
    except OSError:
        return ""
    return f"{state.st_mtime_ns} {state.st_size} {state.st_ino}"
