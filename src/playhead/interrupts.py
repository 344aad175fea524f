"""Did this exception come out of a signal handler? Knows handlers and tracebacks; not why we ask.

A host that gives its own code a time limit (`signal.alarm` and a handler that raises) may be
interrupted in the middle of ours. What comes out there is the host's, however it is called, and
must not be swallowed with our own failures.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from playhead.later import Later

if TYPE_CHECKING:
    import signal
    from types import TracebackType
else:
    signal = Later("signal")


def is_interrupt(error: BaseException) -> bool:
    # Python runs handlers in the main thread only.
    if error.__traceback__ is None or threading.current_thread() is not threading.main_thread():
        return False
    codes = set()
    step: TracebackType | None = error.__traceback__
    while step is not None:
        codes.add(step.tb_frame.f_code)
        step = step.tb_next
    return any(_code(number) in codes for number in signal.valid_signals())


def _code(number: int) -> object:
    handler = signal.getsignal(number)
    return getattr(getattr(handler, "__func__", handler), "__code__", number)
