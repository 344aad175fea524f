"""Count events that could not be recorded, warn once on stderr, and note them on the tape. Knows how to count
under threads, forks and signals; does not know how events are written.
"""

from __future__ import annotations

import sys

from playhead.encoding.values import safe_str
from playhead.host.lean import RLock
from playhead.host.stderr import say


class Losses:
    """One per recorder."""

    def __init__(self, *, warned: bool = False) -> None:
        self.total = 0
        self.warned = warned
        # Losses that are not on the tape yet: their number and reason.
        self.untold: tuple[int, str] | None = None
        # Re-entrant: a signal handler may lose an event while one is being counted.
        self._lock = RLock()

    def count(self, lost: int, why: str) -> None:
        with self._lock:
            self.total += lost
            before = self.untold[0] if self.untold is not None else 0
            self.untold = (before + lost, why)

    def take(self) -> tuple[int, str] | None:
        """Return the losses to write now; call `give_back` if writing fails."""
        with self._lock:
            untold, self.untold = self.untold, None
            return untold

    def give_back(self, lost: int, why: str) -> None:
        with self._lock:
            self.total -= lost
            self.count(lost, why)

    def warn(self, message: str) -> None:
        """Print one line on stderr, once per run."""
        # While Python shuts down, the tape is closed already: an answer that the program never closed ends then.
        if self.warned or sys.is_finalizing():
            return
        self.warned = True
        say(f"{message} The program is not affected.")


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {safe_str(error)}"
