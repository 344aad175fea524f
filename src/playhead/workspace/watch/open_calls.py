"""Keep track of the open calls, from their marks. Knows names of calls and processes; does not know files."""

from __future__ import annotations

import os


class OpenCalls:
    """The calls that have started and not ended."""

    def __init__(self) -> None:
        # The process of each call, if it can be seen from here: another namespace has other numbers.
        self._processes: dict[str, str | None] = {}
        # The processes that have been seen from here.
        self._seen: set[str] = set()

    @property
    def names(self) -> set[str]:
        return set(self._processes)

    def start(self, call: str) -> None:
        process = f"/proc/{pid_of(call)}"
        # A process that waits at its mark exists now. One that has logged its call may have ended since, but it has
        # waited at a mark before.
        if process not in self._seen and os.path.exists(process):
            self._seen.add(process)
        self._processes[call] = process if process in self._seen else None

    def end(self, call: str) -> None:
        self._processes.pop(call, None)

    def end_killed(self) -> None:
        """End the calls of processes that no longer exist: a killed worker does not mark the end of its call."""
        for call, process in list(self._processes.items()):
            if process is not None and not os.path.exists(process):
                del self._processes[call]


def pid_of(call: str) -> int:
    """Return the process that made a call: segments of a tape are named after processes."""
    digits = call.partition(":")[0].partition("-")[0]
    return int(digits) if digits.isdigit() else 0
