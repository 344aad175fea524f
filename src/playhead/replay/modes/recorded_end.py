"""End a process of a replay where the recorded run was killed. Keep calls open that were open when it ended normally.
Knows signals, and `timeout` of coreutils.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from playhead import clock

if TYPE_CHECKING:
    from playhead.replay.matching.taped import TapedCall, TapedRun

# A thread that waits for an answer while the program ends must not be the first to continue.
_AFTER_THE_END_NS = 3_600_000_000_000
# Boundaries whose calls a program can leave open when it ends. Connections and processes have ends of their own.
_LEFT_OPEN = frozenset({"llm", "http", "mcp", "tool"})
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


def left_open_ns(recording: TapedRun, call: TapedCall, *, is_command: bool) -> int | None:
    """Return how long after its beginning a call is left that was open when its process ended normally: the program did
    not read a stream to its end, or a daemon thread waited for the answer. None: the call has an outcome, or its
    process was killed. `is_command`: the exit code of the run is that of this process, which may end without closing
    its segment (`os._exit`).
    """
    if call.outcome is not None or call.boundary not in _LEFT_OPEN:
        return None
    ended = recording.ends.get(call.event.segment)
    if ended is None and is_command and recording.run_end is not None:
        ended = recording.run_end.mono
    return None if ended is None else max(ended - call.event.mono, 0) + _AFTER_THE_END_NS


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
