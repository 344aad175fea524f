"""Record when each signal handler of the program runs. Knows `signal`; `replay` decides when a signal is delivered.

An object of ours replaces each handler. The interpreter looks up its `__call__`, which notes the signal and returns the
program's own handler. So the interpreter calls that handler itself: the handler sees the frame that was interrupted,
and no frame of ours is in a traceback. `signal.signal` and `signal.getsignal` return the program's handlers.
"""

from __future__ import annotations

import _thread
import sys

from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import like_builtin, replace_copies
from playhead.recording import lanes, order_slot, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


class NotedHandler:
    """Replaces one handler."""

    __slots__ = ("handler", "number")

    def __init__(self, number: int, handler: Any) -> None:
        self.number = number
        self.handler = handler
        if (code := _code_of(handler)) is not None:
            lanes.handler_codes.add(code)

    @property
    def __call__(self) -> Any:
        head = order_slot.active()
        if head is not None:
            return head.signals.handler_of(self.number, self.handler)
        if points.active() is not None:
            mark: list[None] = []
            is_before = _is_before_handler(sys._getframe(1))
            points.note_signal(int(self.number), mark, is_before=is_before)
            global _begun  # noqa: PLW0603  one main thread a process
            _begun = _code_of(self.handler)
        return self.handler


# The code of the look-up above, and of the handler that it returned last.
_LOOK_UP: Any = vars(NotedHandler)["__call__"].fget.__code__
_begun: Any = None
# A handler begins with at most this offset: the interpreter may run another handler before the first line.
_ENTRY = 4


def _code_of(handler: Any) -> Any:
    """Return the code of a function, a method, or an object that can be called; None if it is not Python code."""
    found = getattr(handler, "__code__", None)
    return getattr(type(handler).__call__, "__code__", None) if found is None else found


def _is_before_handler(frame: Any) -> bool:
    """Return whether another signal has been noted already, and its handler has not reached its first line. A timer
    with a short interval does that. `frame` was interrupted.
    """
    if frame.f_code is _begun and frame.f_lasti <= _ENTRY:
        return True
    while frame is not None and frame.f_code is not _LOOK_UP:
        if frame.f_code in lanes.handler_codes:
            return False  # the handler that was to run last has begun
        frame = frame.f_back
    return frame is not None and bool(frame.f_locals.get("mark"))


def hook_handlers(module: ModuleType, patches: Patches) -> None:
    """`module` is _signal. Replace the handlers that are already set, above all that of Ctrl-C. Separate from `hook`,
    because Ctrl-C also interrupts the many programs that never import `signal`.
    """
    need(module, "signal", "getsignal", "valid_signals")
    if not _in_main_thread():
        return  # only the main thread may set handlers
    for number in module.valid_signals():
        handler = module.getsignal(number)
        if callable(handler) and type(handler) is not NotedHandler:
            module.signal(number, NotedHandler(number, handler))

    def undo() -> None:
        for number in module.valid_signals() if _in_main_thread() else ():
            handler = module.getsignal(number)
            if type(handler) is NotedHandler:
                module.signal(number, handler.handler)

    patches.on_undo(undo)


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is signal."""
    _replace(module, patches, {"signal": _signal, "getsignal": _getsignal})


def hook_senders(module: ModuleType, patches: Patches) -> None:
    """`module` is signal. In a replay, the tape delivers the signals that the program sends to itself."""
    need(module, "ITIMER_REAL")
    _replace(
        module,
        patches,
        {
            "raise_signal": _raise_signal,
            "pthread_kill": _pthread_kill,
            "pause": _pause,
            "alarm": _alarm,
            "setitimer": lambda original: _setitimer(original, module.ITIMER_REAL),
        },
    )


def _replace(
    module: ModuleType, patches: Patches, made: dict[str, Callable[[Any], Callable[..., Any]]]
) -> None:
    need(module, *made)
    originals = {name: getattr(module, name) for name in made}
    for name, wrap in made.items():
        patches.replace(module, name, like_builtin(wrap))
    replace_copies(
        patches, {id(original): getattr(module, name) for name, original in originals.items()}
    )


def _in_main_thread() -> bool:
    threading = sys.modules.get("threading")
    return threading is None or threading.main_thread().ident == _thread.get_ident()


def _shown(handler: Any) -> Any:
    return handler.handler if type(handler) is NotedHandler else handler


def _signal(original: Callable[..., Any]) -> Callable[..., Any]:
    def signal(signalnum: Any, handler: Any, /) -> Any:
        if callable(handler) and type(handler) is not NotedHandler:
            handler = NotedHandler(signalnum, handler)
        return _shown(original(signalnum, handler))

    return signal


def _getsignal(original: Callable[..., Any]) -> Callable[..., Any]:
    def getsignal(signalnum: Any, /) -> Any:
        return _shown(original(signalnum))

    return getsignal


def _raise_signal(original: Callable[[int], None]) -> Callable[[int], None]:
    def raise_signal(signalnum: int, /) -> None:
        if not order_slot.send_to_self(signalnum):
            original(signalnum)

    return raise_signal


def _pthread_kill(original: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def pthread_kill(thread_id: int, signalnum: int, /) -> None:
        if not order_slot.send_to_self(signalnum):
            original(thread_id, signalnum)

    return pthread_kill


def _pause(original: Callable[[], None]) -> Callable[[], None]:
    def pause() -> None:
        head = order_slot.active()
        if head is None or not head.signals.pause():
            original()

    return pause


def _alarm(original: Callable[[int], int]) -> Callable[[int], int]:
    def alarm(seconds: int, /) -> int:
        head = order_slot.active()
        if head is None:
            return original(seconds)
        return round(head.signals.set_timer(seconds, 0.0)[0])

    return alarm


def _setitimer(original: Callable[..., Any], real_time: int) -> Callable[..., Any]:
    def setitimer(which: int, seconds: float, interval: float = 0.0, /) -> Any:
        head = order_slot.active()
        # The other timers count CPU time, which a replay does not control.
        if head is None or which != real_time:
            return original(which, seconds, interval)
        return head.signals.set_timer(seconds, interval)

    return setitimer
