"""Keep a running viewer up to date: index new runs in a background thread, and detect changes of the
list cheaply. Knows the store and the index; not who displays them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from playhead import clock
from playhead.errors import PlayheadError, StoreError
from playhead.library.indexing import try_update
from playhead.tape import store
from playhead.tape.annotations import FILE as MARKS
from playhead.tape.manifest import read_manifest, status_of
from playhead.tape.store import MANIFEST

# Maximum time that a query waits for the index; after it, the existing rows are the answer.
PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Progress of indexing: the number of finished runs, and of runs that had to be scanned or read."""

    done: int
    of: int


class _Pass:
    """One pass over the store."""

    def __init__(self) -> None:
        self.began_ns = clock.mono_ns()
        self.over = Event()
        self.backlog = Backlog(done=0, of=0)
        self.error: BaseException | None = None

    def tell(self, done: int, of: int) -> None:
        self.backlog = Backlog(done=done, of=of)


class BackgroundIndex:
    """Indexes one store in the background, with these prices."""

    def __init__(
        self,
        home: Path,
        prices: Mapping[str, Any] | None = None,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._home = home
        self._prices = prices
        self._patience_s = patience_s
        self._lock = Lock()
        # One pass per kind (with or without reading tapes): a list does not wait for the tapes that a search needs.
        self._passes: dict[bool, _Pass] = {}

    def wait(self, *, read: bool) -> Backlog | None:
        """Wait for the index. None: the catalogue is at least as new as this query. `read`: also in the data that
        only tapes have. Otherwise return the progress.
        """
        until_ns = clock.mono_ns() + int(self._patience_s * 1e9)
        return self._wait(False, until_ns) or (self._wait(True, until_ns) if read else None)

    def _wait(self, read: bool, until_ns: int) -> Backlog | None:  # noqa: FBT001  a key
        asked_ns = clock.mono_ns()
        while True:
            current = self._current(read)
            if not current.over.wait(max(0.0, (until_ns - clock.mono_ns()) / 1e9)):
                return current.backlog
            if current.error is not None:
                raise current.error
            # A pass that was running already may have missed runs that were added since.
            if current.began_ns >= asked_ns:
                return None

    def _current(self, read: bool) -> _Pass:  # noqa: FBT001  a key
        with self._lock:
            current = self._passes.get(read)
            if current is None or current.over.is_set():
                current = self._passes[read] = _Pass()
                Thread(target=self._go, args=(current, read), daemon=True).start()
            return current

    def _go(self, current: _Pass, read: bool) -> None:  # noqa: FBT001  a key
        try:
            try_update(self._home, prices=self._prices, progress=current.tell, read=read)
        except Exception as error:  # noqa: BLE001  every waiting query raises it
            current.error = error
        finally:
            current.over.set()


# All watchers share one look at the store.
_FRESH_NS = 400_000_000
# For older runs, only additions and deletions are detected: a hundred thousand runs cannot be checked twice a second.
_NEWEST = 200


class ChangeFeed:
    """Detects changes in one store. `look` returns a number that differs whenever something changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._runs = home / "runs"
        self._lock = Lock()
        self._looked_ns = 0
        self._beat = 0
        self._seen: object = None
        self._ids: list[str] = []
        self._ids_of = -1
        # State of a run in progress, by its manifest's stamp. Most runs have ended and do not change.
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
    """Return the time of the last change; 0: the path does not exist."""
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
