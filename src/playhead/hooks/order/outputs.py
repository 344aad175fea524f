"""Keep the order in which threads write to stdout and stderr. Knows Python's own text streams.

The stream objects stay the same; only their methods `write` and `flush` are replaced. A program without threads decides
the order of its output itself, so its writes are not recorded as points. The output of a tool belongs to the tool's
call (`recording/tool_facts`) and has its place there.
"""

from __future__ import annotations

import _thread
import io
import os

from playhead.hooks.guest import Patches
from playhead.recording import lanes, order_slot, points, tool_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


class _Turnstile:
    """Admits one writer at a time, so that points are in the order of the writes. Re-entrant: a signal handler
    may print.
    """

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """Make a new lock, also in a forked child, which lacks the thread that held the old one."""
        self.lock = _thread.RLock()


# The threads in which an HTTP library logs about its connections: see `log_handlers`.
logging_transports: set[int] = set()

_FDS = {"stdout": 1, "stderr": 2}
_turnstile = _Turnstile()
os.register_at_fork(after_in_child=_turnstile.start_anew)


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is sys."""
    for name in ("stdout", "stderr"):
        stream = getattr(module, name)
        if type(stream) is io.TextIOWrapper:
            tool_facts.writers[name] = stream.write
            patches.replace(stream, "write", _writer(name, stream))
            patches.replace(stream, "flush", _flusher(_FDS[name]))
    patches.on_undo(tool_facts.writers.clear)


def _writer(name: str, stream: Any) -> Callable[[Any], Callable[[str], int]]:
    def wrap(original: Callable[[str], int]) -> Callable[[str], int]:
        return _write(name, stream, original)

    return wrap


def _flusher(fd: int) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def wrap(original: Callable[[], None]) -> Callable[[], None]:
        def flush() -> None:
            settle = order_slot.settle_children
            if settle is None:
                return original()
            with _turnstile.lock:
                settle(fd, None)
                original()
                settle(fd, b"")
            return None

        return flush

    return wrap


def _write(name: str, stream: Any, original: Callable[[str], int]) -> Callable[[str], int]:
    fd = _FDS[name]

    def write(text: str) -> int:
        if (show := order_slot.show_children) is not None:
            show()
        if lanes.printing.get() is not None and type(text) is str:
            with _turnstile.lock:
                if tool_facts.note(name, text):
                    return put(text)
        if _thread.get_ident() in logging_transports:
            with _turnstile.lock:
                if (log := points.active()) is not None and type(text) is str:
                    log.add_log_line(lanes.current.get().name, name, text)
                return put(text)
        # The tasks of an event loop print in the order of their own points.
        has_others = lanes.have_threads() or (lanes.have_writers() and not points.turn()[0])
        if not has_others or not order_slot.is_kept():
            return put(text)
        order_slot.wait_for(points.OUTPUT)
        if points.active() is None:
            try:
                return write_through(text)
            finally:
                order_slot.acted()
        with _turnstile.lock:
            return put(text, is_point=True)

    def write_through(text: str) -> int:
        # A signal may arrive before or during the write. In both cases the program has printed the text.
        order_slot.step()
        count = original(text)
        order_slot.step()
        return count

    def put(text: str, *, is_point: bool = False) -> int:
        settle = order_slot.settle_children
        if settle is not None:
            # The output up to here is from children that inherit the stream; the program's own follows.
            settle(fd, None)
        elif is_point:
            order_slot.happened(points.OUTPUT)
        count = write_through(text)
        if settle is not None:
            is_whole = getattr(stream, "write_through", False) and type(text) is str
            own = text.encode(stream.encoding, stream.errors) if is_whole else b""
            finish = settle(fd, own)
            if is_point:
                order_slot.happened(points.OUTPUT)
            if finish is not None:
                finish()
        return count

    return write
