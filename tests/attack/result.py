"""The result of an attack: what was tried, and what succeeded."""

import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_CPU_S, MOST_MB = 2.0, 300.0
# What must be 0, in the order of the last table.
KINDS = {
    "executed": "programs executed",
    "outside": "files read or written outside",
    "secret": "secrets in clear",
    "hang": "hangs",
    "traceback": "tracebacks",
    "memory": f"more than {MOST_MB:.0f} MB",
    "time": f"more than {MOST_CPU_S:.0f} s of CPU time",
    "lost": "acknowledged events lost",
    "replay": "replays that differ",
    "test": "failed tests",
    "broken": "attacks that could not run",
}


class Finding(NamedTuple):
    """An attack that succeeded. `kind` is one of KINDS."""

    kind: str
    what: str


@dataclass(slots=True)
class Row:
    """One line of the result."""

    what: str
    wanted: int = 0
    tried: int = 0
    found: list[Finding] = field(default_factory=list)
    seconds: float = 0.0
    note: str = ""
    # The largest process, if the part measures it.
    mb: float = 0.0
    # Whether the time limit came before everything was tried.
    unfinished: bool = False

    @property
    def line(self) -> str:
        state = "FAIL" if self.found else "TIME" if self.unfinished else "ok  "
        note = f"  ({self.note})" if self.note else ""
        counts = f"{self.tried:>8,} tried {len(self.found):>4} succeeded {self.seconds:>6.0f} s"
        return f"{state} {self.what:<36} {counts}{note}"


class Progress:
    """Prints from time to time how far a part is."""

    def __init__(self, row: Row, every_s: float = 30) -> None:
        self._row = row
        self._every = every_s
        self._began = self._last = time.monotonic()
        self._lock = threading.Lock()

    def add(self, tried: int = 0, found: list[Finding] | None = None) -> None:
        """Count attacks of any thread."""
        with self._lock:
            self._row.tried += tried
            for one in found or []:
                self._row.found.append(one)
                print(f"     found: {one.kind}: {one.what[:1000]}", flush=True)
            now = time.monotonic()
            if now - self._last >= self._every:
                self._last = now
                wanted = f" of {self._row.wanted:,}" if self._row.wanted else ""
                print(
                    f"     {self._row.what}: {self._row.tried:,}{wanted}, {now - self._began:.0f} s",
                    flush=True,
                )
