"""Whether the list of runs has changed, asked often. Knows what may be looked at cheaply; not what
the list shows.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

from playhead import clock
from playhead.errors import PlayheadError, StoreError
from playhead.tape import store
from playhead.tape.manifest import read_manifest, status_of
from playhead.tape.marks import FILE as MARKS
from playhead.tape.store import MANIFEST

# All who watch share one look.
_FRESH_NS = 400_000_000
# Of older runs only comings and goings are noticed: a hundred thousand cannot be looked at twice a
# second.
_NEWEST = 200


class Pulse:
    """Of one store. `look` gives a number that is another one whenever something changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._runs = home / "runs"
        self._lock = Lock()
        self._looked_ns = 0
        self._beat = 0
        self._seen: object = None
        self._ids: list[str] = []
        self._ids_of = -1
        # State of a run that goes on, by its manifest's stamp: most have ended and stay so.
        self._ended: dict[str, tuple[int, int]] = {}

    def look(self) -> int:
        with self._lock:
            now = clock.mono_ns()
            if self._seen is None or now - self._looked_ns > _FRESH_NS:
                seen = self._state()
                self._beat += seen != self._seen
                self._seen, self._looked_ns = seen, clock.mono_ns()
            return self._beat

    def _state(self) -> tuple[object, ...]:
        changed = _changed(str(self._runs))
        if not changed:
            return ("no store",)
        if changed != self._ids_of:
            try:
                self._ids, self._ids_of = store.run_ids(self._home)[:_NEWEST], changed
            except StoreError:
                return ("unreadable",)
            self._ended = {run: at for run, at in self._ended.items() if run in set(self._ids)}
        return (changed, *(self._of_run(run) for run in self._ids))

    def _of_run(self, run: str) -> object:
        folder = f"{self._runs}/{run}"
        stamp = (_changed(f"{folder}/{MANIFEST}"), _changed(f"{folder}/{MARKS}"))
        if self._ended.get(run) == stamp:
            return stamp
        path = self._runs / run
        try:
            status = status_of(read_manifest(path))
        except PlayheadError:
            status = "interrupted"
        if status != "running":
            self._ended[run] = stamp
        return (stamp, status, _grown_to(path))


def _changed(path: str) -> int:
    """0: it is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116  Path.stat costs three times as much
    except OSError:
        return 0


def _grown_to(run: Path) -> int:
    try:
        with os.scandir(run) as files:
            return sum(file.stat().st_size for file in files if file.name.startswith("tape"))
    except OSError:
        return 0
