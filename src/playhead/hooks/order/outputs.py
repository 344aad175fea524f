"""Keep the order in which threads write to stdout and stderr. Knows Python's own text streams and `os.write`.

The stream objects stay the same; only their methods `write` and `flush` are replaced. A program without threads decides
the order of its output itself, so its writes are not recorded as points. The output of a tool belongs to the tool's
call (`recording/tool_facts`) and has its place there.
"""

from __future__ import annotations

import _thread
import io
import sys

from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import Builtin
from playhead.host.later import Later
from playhead.recording import lanes, order_slot, points, tool_facts
from playhead.recording.where import OWNERS, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.hooks.order import print_turns
    from playhead.recording.recorder import Recorder
else:
    print_turns = Later("playhead.hooks.order.print_turns")  # few programs have several processes


# The threads in which an HTTP library logs about its connections: see `log_handlers`.
logging_transports: set[int] = set()

# Python's buffers hold 8 KiB, and a character takes up to four bytes.
_FULL = 2048
_FDS = {"stdout": 1, "stderr": 2}
_STREAMS = frozenset(_FDS.values())


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is sys."""
    for name in ("stdout", "stderr"):
        stream = getattr(module, name)
        if type(stream) is io.TextIOWrapper:
            shared = _SharedStream(stream)
            tool_facts.writers[name] = shared.write
            patches.replace(stream, "write", _writer(name, stream, shared))
            patches.replace(stream, "flush", _flusher(_FDS[name], shared))
    patches.on_undo(tool_facts.writers.clear)
    order_slot.record_prints = _record_prints


def hook_os(module: ModuleType, patches: Patches) -> None:
    """`module` is os."""
    need(module, "write")
    patches.replace(module, "write", lambda original: Builtin(_write_bytes(original)))


def _write_bytes(original: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    def write(fd: int, data: Any, /) -> int:
        # Frames 0 and 1: this hook, `Builtin`.
        if fd not in _STREAMS or OWNERS[sys._getframe(2).f_code.co_filename] != PROGRAM:
            return original(fd, data)
        if (show := order_slot.show_children) is not None:
            show()
        is_point = _has_others() and order_slot.is_kept()
        if is_point:
            order_slot.wait_for(points.OUTPUT)
        if points.active() is None:
            try:
                return original(fd, data)
            finally:
                order_slot.acted()
        with order_slot.printing.lock:
            settle, own = order_slot.settle_children, bytes(data)
            if settle is not None:
                settle(fd, None)
            count = original(fd, own)
            finish = None if settle is None else settle(fd, own[:count])
            if is_point:
                order_slot.happened(points.OUTPUT)
            if finish is not None:
                finish()
            return count

    return write


def _has_others() -> bool:
    """Return whether others may print at the same time. The tasks of an event loop print in the order of their own
    points.
    """
    return lanes.have_threads() or (lanes.have_writers() and not points.turn()[0])


def _record_prints(recorder: Recorder) -> order_slot.PrintTurns:
    return print_turns.RecordedPrints(recorder)


class _SharedStream:
    """The unhooked stream, which waits for its turn while several processes of the program print: see `print_turns`.

    A turn is a moment at which text leaves the process, so a write that only fills the buffer is none. A buffer that is
    full would be written at any time; it is flushed before.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._write: Callable[[str], int] = stream.write
        self._flush: Callable[[], None] = stream.flush
        # The number of characters that may not have left the process. Not 0: some may have been written before the
        # processes shared the stream.
        self._waiting = 1

    def write(self, text: str) -> int:
        prints = order_slot.prints
        if prints is None or type(text) is not str or not text:
            return self._write(text)
        stream = self._stream
        if stream.write_through or (stream.line_buffering and ("\n" in text or "\r" in text)):
            with order_slot.printing.lock, prints:
                self._waiting = 0
                return self._write(text)
        if self._waiting + len(text) < _FULL:
            self._waiting += len(text)
            return self._write(text)
        with order_slot.printing.lock, prints:
            self._waiting = 0
            count = self._write(text)
            self._flush()
            return count

    def flush(self) -> None:
        prints = order_slot.prints
        if prints is None or not self._waiting:
            return self._flush()
        with order_slot.printing.lock, prints:
            self._waiting = 0
            return self._flush()


def _writer(name: str, stream: Any, shared: _SharedStream) -> Callable[[Any], Callable[[str], int]]:
    def wrap(original: Callable[[str], int]) -> Callable[[str], int]:
        return _write(name, stream, original, shared)

    return wrap


def _flusher(fd: int, shared: _SharedStream) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def wrap(original: Callable[[], None]) -> Callable[[], None]:
        def flush() -> None:
            if points.active() is None:
                return shared.flush()
            with order_slot.printing.lock:
                if (settle := order_slot.settle_children) is None:
                    return shared.flush()
                settle(fd, None)
                shared.flush()
                settle(fd, b"")
            return None

        return flush

    return wrap


def _write(
    name: str, stream: Any, original: Callable[[str], int], shared: _SharedStream
) -> Callable[[str], int]:
    fd = _FDS[name]

    def write(text: str) -> int:
        if (show := order_slot.show_children) is not None:
            show()
        if lanes.printing.get() is not None and type(text) is str and not lanes.in_handler():
            with order_slot.printing.lock:
                if tool_facts.note(name, text):
                    return put(text)
        if _thread.get_ident() in logging_transports:
            with order_slot.printing.lock:
                if (log := points.active()) is not None and type(text) is str:
                    log.add_log_line(lanes.current.get().name, name, text)
                return put(text, has_turn=False)  # a replay does not print this line
        if not _has_others() or not order_slot.is_kept():
            if points.active() is None:
                return put(text)
            # A child may start or end in a thread of ours: see `PrintLock`.
            with order_slot.printing.lock:
                return put(text)
        order_slot.wait_for(points.OUTPUT)
        if points.active() is None:
            try:
                return order_slot.print_step(_printing(original, shared), text)
            finally:
                order_slot.acted()
        with order_slot.printing.lock:
            return put(text, is_point=True)

    def put(text: str, *, is_point: bool = False, has_turn: bool = True) -> int:
        settle = order_slot.settle_children
        if settle is not None:
            # The output up to here is from children that inherit the stream; the program's own follows.
            settle(fd, None)
        elif is_point:
            order_slot.happened(points.OUTPUT)
        printed = _printing(original, shared) if has_turn else original
        count = order_slot.print_step(printed, text)
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


def _printing(original: Callable[[str], int], shared: _SharedStream) -> Callable[[str], int]:
    """Return the method that prints. Without other processes it is the one in C, which no signal handler interrupts."""
    return original if order_slot.prints is None else shared.write
