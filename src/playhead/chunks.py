"""Pieces of a stream onto the tape as they arrive. Knows batching; not what the pieces mean.

The first piece is written at once. Pieces that follow within a few milliseconds share one event
(their boundaries and times kept): at 50 tiny pieces a burst, an event each would cost more than
the rest of the recorder. What waits is written by a thread of ours after those milliseconds, so
that a stream that stalls, and a process that is killed, leave what had come.
"""

from __future__ import annotations

import _thread
import base64
import os
import sys
from collections import deque
from typing import Any, Protocol

from playhead import clock, events
from playhead.recorder import Recorder

_TOGETHER_NS = 5_000_000
_LARGEST = 32 * 1024


def _real(name: str) -> Any:
    """As it is before gevent replaces it: a greenlet that waits for a lock of the system waits for
    ever, and all others with it."""
    monkey: Any = sys.modules.get("gevent.monkey")
    return getattr(_thread, name) if monkey is None else monkey.get_original("_thread", name)


_allocate_lock = _real("allocate_lock")
_start_new_thread = _real("start_new_thread")


class ChunkBuffer:
    """The pieces of one call's streams that are not on the tape yet."""

    __slots__ = ("_call", "_last", "_lock", "_pieces", "_recorder", "_scheduled", "_size", "_started", "_stream", "_times", "count", "total")

    def __init__(self, recorder: Recorder, call: int, started: int) -> None:
        self._recorder = recorder
        self._call = call
        self._started = started
        self._lock = _allocate_lock()
        self._stream = ""
        self._pieces: list[bytes] = []
        self._times: list[int] = []
        self._size = 0
        self._last = 0
        self._scheduled = False
        self.count = 0
        self.total = 0

    def add(self, stream: str, piece: bytes) -> None:
        now = clock.mono_ns()
        with self._lock:
            if self._pieces and self._stream != stream:
                self._write(now)
            self._stream = stream
            self._pieces.append(piece)
            self._times.append(now - self._started)
            self._size += len(piece)
            self.count += 1
            self.total += len(piece)
            if now - self._last >= _TOGETHER_NS or self._size >= _LARGEST:
                self._write(now)
            elif not self._scheduled:
                self._scheduled = True
                _flusher.push(self)

    def flush(self) -> None:
        with self._lock:
            self._scheduled = False
            if self._pieces:
                self._write(clock.mono_ns())

    def _write(self, now: int) -> None:
        pieces, times = self._pieces, self._times
        self._pieces, self._times, self._size, self._last = [], [], 0, now
        raw = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        redactor = self._recorder.redactor
        if redactor is not None and self._recorder.level == "full":
            # Looked through at once: a secret may lie across two pieces. Then they become one.
            clean = redactor.clean_bytes(raw)
            if clean is not raw:
                apart = [redactor.clean_bytes(piece) for piece in pieces]
                pieces, times = (apart, times) if b"".join(apart) == clean else ([clean], times[:1])
                raw = clean
        data: dict[str, Any] = {"call": self._call, "stream": self._stream, **as_text(raw)}
        data["sizes"] = [len(piece) for piece in pieces]
        data["at_ns"] = times
        self._recorder.add(events.CHUNK, data, '""', parent=self._call, clean=True)


def as_text(raw: bytes) -> dict[str, str]:
    """`{"text": …}` for UTF-8, `{"b64": …}` for anything else: readable where it can be."""
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(raw).decode()}


def as_bytes(data: dict[str, Any]) -> bytes:
    """The inverse of `as_text`."""
    text = data.get("text")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    return base64.b64decode(data.get("b64") or "")


class Flushed(Protocol):
    def flush(self) -> None: ...


class _Flusher:
    """One daemon thread, started with the first piece that waits.

    Started below `threading`, so that it has no lane: it comes and goes with timing, and would
    make the numbering of the host's own threads a race.
    """

    def __init__(self) -> None:
        self._waiting: deque[Flushed] = deque()
        self._wake = _allocate_lock()
        self._wake.acquire()
        self._running = False

    def push(self, buffer: Flushed) -> None:
        self._waiting.append(buffer)
        if not self._running:
            self._running = True
            _start_new_thread(self._run, ())
        if self._wake.locked():
            try:
                self._wake.release()
            except RuntimeError:
                return  # another thread was quicker: it is awake

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            clock.sleep(_TOGETHER_NS / 1e9)
            while self._waiting:
                self._waiting.popleft().flush()


_flusher = _Flusher()


def flush_soon(buffer: Flushed) -> None:
    """Have `buffer` flushed by our thread in a few milliseconds."""
    _flusher.push(buffer)


def _start_anew() -> None:
    global _flusher
    _flusher = _Flusher()


# Threads do not survive a fork; what waited is the parent's to write.
os.register_at_fork(after_in_child=_start_anew)
