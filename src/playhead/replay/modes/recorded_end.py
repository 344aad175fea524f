"""End a process of a replay where the recorded run was killed. Knows signals, and `timeout` of coreutils."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from playhead import clock

# The exit code of `timeout` when it has ended its command.
_TIMED_OUT = 124


def signal_in(code: int | None) -> int | None:
    """Return the signal that an exit code stands for; a shell adds 128 to it."""
    if code is None or 0 <= code <= 128:
        return None
    number = -code if code < 0 else code - 128
    return number if number in signal.valid_signals() else None


def is_normal(code: int | None) -> bool:
    """Return whether a program that exits with this code has ended by itself."""
    return code is not None and code != _TIMED_OUT and signal_in(code) is None


def end_process(code: int | None, *, with_traceback: bool) -> None:
    """End this process as the command ended, whose exit code was `code`: by the same signal, without a message.
    `with_traceback`: Ctrl-C ended the program itself, and Python printed the traceback.
    """
    if code == _TIMED_OUT and _is_timeout(os.getppid()):
        # Its limit is off in a replay (`without_limit`). This is the signal of its timer: `timeout` ends this process
        # and exits as it did.
        os.kill(os.getppid(), signal.SIGALRM)
        signal.pause()
    number = signal_in(code) or signal.SIGKILL
    if number == signal.SIGINT and with_traceback:
        signal.raise_signal(number)
    if number != signal.SIGKILL:
        with suppress(
            ValueError
        ):  # only the main thread can do this, and a call may be in any thread
            signal.signal(number, signal.SIG_DFL)
    os.kill(clock.pid(), number)
    signal.pause()


def _is_timeout(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
            return name.read().strip() == "timeout"
    except OSError:  # no /proc, or the process has ended
        return False
