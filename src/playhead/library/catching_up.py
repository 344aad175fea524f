"""The catalogue brought up to date by threads of its own, for who cannot wait until that is done. Knows who
is at work and how far; not what is read.

A store that was never looked at takes a minute for a hundred thousand runs. Meanwhile the catalogue
answers from what it has, and says how much that is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from playhead import clock
from playhead.library.indexing import try_update

# How long a question waits before it is answered with what is there.
PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """So many runs are in the catalogue, of those that had to be looked at or read."""

    done: int
    of: int


class _Pass:
    """One time through the store."""

    def __init__(self) -> None:
        self.began_ns = clock.mono_ns()
        self.over = Event()
        self.backlog = Backlog(done=0, of=0)
        self.error: BaseException | None = None

    def tell(self, done: int, of: int) -> None:
        self.backlog = Backlog(done=done, of=of)


class CatchingUp:
    """Of one store, at these prices."""

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
        # By whether tapes are read: who asks for a list need not wait for somebody's search.
        self._passes: dict[bool, _Pass] = {}

    def wait(self, *, read: bool) -> Backlog | None:
        """None: the catalogue is as new as this question. `read`: also in what only tapes say."""
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
            # One that was under way already may have passed by what came since.
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
        except Exception as error:  # noqa: BLE001  told to all who wait
            current.error = error
        finally:
            current.over.set()
