"""Ctrl-C and SIGTERM while a loop runs its commands. Knows signals and one process; not what it does.

Nothing is broken off in the middle: a command that the terminal's Ctrl-C has reached ends by itself, what
it still said is read to the end, and then the loop stops. So a tape of it holds what the loop has seen,
no more and no less.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

# As shells say it.
INTERRUPTED, TERMINATED = 130, 143
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
# How long a command that was asked to end may take to do so by itself.
PATIENCE_S = 10.0


class Terminated(BaseException):
    """SIGTERM: as KeyboardInterrupt, by another hand."""


class Stops:
    """Stands in for the two signals' handlers while it is entered; in the main thread alone."""

    def __init__(self) -> None:
        # What the loop will leave with; 0: nobody has asked it to.
        self.code = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}
        self._asked = 0

    def __enter__(self) -> Stops:  # noqa: PYI034  (typing.Self came with 3.11)
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._hear) for one in _CODES}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Stop here, if somebody has asked for it."""
        if self.code:
            stop_with(self.code)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self.code = _CODES[signal.Signals(number)]
        self._asked += 1
        process = self.process
        if process is None:
            return
        # Ctrl-C reaches the command as well; SIGTERM was sent to us alone. Whoever asks twice means it.
        if number == signal.SIGTERM or self._asked > 1:
            with suppress(OSError):
                process.terminate()
        if self._asked == 1:
            threading.Thread(target=_see_to_it, args=(process,), daemon=True).start()


def stop_with(code: int) -> None:
    """Raise what leaves with that code."""
    raise KeyboardInterrupt if code == INTERRUPTED else Terminated


def code_of(stopped: BaseException) -> int:
    return INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else TERMINATED


def end(process: subprocess.Popen[bytes]) -> None:
    """Have it end: by itself, by request, by force."""
    for last_word in (None, process.terminate, process.kill):
        if last_word is not None:
            last_word()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue
        return


def _see_to_it(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        end(process)
