"""Tell whether an exception came out of a signal handler, or ends the program. Knows handlers and tracebacks.

A host that limits the time of its own code (`signal.alarm` and a handler that raises) may interrupt ours.
Such an exception belongs to the host, whatever its class, and must not be swallowed with our own failures.
"""

from __future__ import annotations

import _thread
import os
import sys

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import TracebackType
else:
    signal = Later("signal")


def is_interrupt(error: BaseException) -> bool:
    # Python runs handlers in the main thread only.
    if error.__traceback__ is None or not _in_main_thread():
        return False
    return _from_handler(error) is not None


def strip_if_interrupt(error: BaseException, handled: BaseException | None) -> None:
    """Remove the frames and the context that an exception of a signal handler got inside our own code: the program was
    interrupted while it waited, and may print the exception. `handled` is the exception that the program was handling
    when it called us.
    """
    if isinstance(error, KeyboardInterrupt) or is_interrupt(error):
        error.__context__ = handled
        error.__traceback__ = _from_handler(error)


def _from_handler(error: BaseException) -> TracebackType | None:
    """Return the traceback from the frame of a signal handler on; None: no handler written in Python raised this."""
    codes = {_code(number) for number in signal.valid_signals()}
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code not in codes:
        step = step.tb_next
    return step


def _in_main_thread() -> bool:
    """Return whether this is the main thread, without importing `threading`: the thread that imports it first becomes
    its main thread.
    """
    threading = sys.modules.get("threading")
    main = getattr(threading, "main_thread", None)
    if threading is None or main is None:
        return _thread.get_ident() == _main
    return bool(threading.current_thread() is main())


def _code(number: int) -> object:
    handler = signal.getsignal(number)
    return getattr(getattr(handler, "__func__", handler), "__code__", number)


def _note_main_thread() -> None:
    global _main  # noqa: PLW0603  one a process
    _main = _thread.get_ident()


_main = _thread.get_ident()
os.register_at_fork(after_in_child=_note_main_thread)


def uncaught() -> BaseException | None:
    """Return the exception that ended the program, if one did.

    Does not use `sys.excepthook`: libraries check whether it is still the original (exceptiongroup, trio).
    `sys.last_value` is also set by test runners and shells for exceptions that they caught. An exception that was never
    caught has a traceback that begins at the outermost frame.
    """
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException) or error.__traceback__ is None:
        return None
    return error if error.__traceback__.tb_frame.f_back is None else None
