"""How processes end: facts for the tape, names of signals, and the exit of a process that the program has dropped."""

from __future__ import annotations

import os

from playhead import clock
from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    signal = Later("signal")

# How long a process may take from the end of its output to its exit. It is less than 1 ms on an idle machine.
_EXIT_NS = 250_000_000


def facts_of(code: int) -> dict[str, Any]:
    """Return how a process ended, as facts of its outcome: an exit code, or the signal that killed it."""
    return {"exit_code": code} if code >= 0 else {"signal": signal_name(-code)}


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(int(number))  # a real-time signal has no name


def file_name(error: OSError) -> str | None:
    """Return the file that a process could not be started from, as its error names it."""
    file = error.filename
    return os.fsdecode(file) if isinstance(file, (str, bytes)) else None


def reap_soon(reap: Callable[[], None], is_over: Callable[[], bool]) -> None:
    """Wait for the exit of a process whose output has ended, and to which the program has no reference.

    `os.popen(command).read()` drops the process before it reads the output. The next start of a process would reap
    it; until then its call would be open, and would share the files of the calls after it.
    """
    latest = clock.mono_ns() + _EXIT_NS
    while not is_over() and clock.mono_ns() < latest:
        reap()
        if not is_over():
            clock.sleep(0.0005)
