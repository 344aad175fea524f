"""Write the pieces of a stream to the tape as they arrive. Knows batching; does not know what the pieces mean.

The first piece is written at once. Pieces that follow within a few milliseconds share one event (with their
boundaries and times): with 50 tiny pieces in a burst, one event each would cost more than the rest of the
recorder. A thread of ours writes the waiting pieces after those milliseconds, so that they are on the tape
when a stream stalls or the process is killed.
"""

from __future__ import annotations

import _thread
import os
import sys

from playhead import clock, events
from playhead.clock import mono_ns
from playhead.encoding.values import safe_str
from playhead.host.later import Later
from playhead.host.lean import Protocol
from playhead.host.stderr import say
from playhead.recording import points
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.redact import StreamCleaner
from playhead.redact.encoded_bodies import EncodedBodyCleaner, cleaned_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    import base64
    import threading
    from collections.abc import Iterable
    from typing import Any

    from playhead.events import Ref
    from playhead.llm import http_headers

    # A head that is clean, and the pieces of one stream that are not.
    Held = tuple[dict[str, Any], str, list["Piece"]]
else:
    base64 = Later("base64")
    http_headers = Later("playhead.llm.http_headers")
    threading = Later("threading")


Piece = tuple[bytes, int]

# Streams of whole messages, text or bytes, over a WebSocket: an empty one is a message too.
MESSAGES = frozenset({"sent", "received", "sent.bytes", "received.bytes"})

# Streams of the program's own actions: the program learns nothing from them.
ACTS = frozenset({"sent", "sent.bytes", "stdin", "signal", "closed"})

_TOGETHER_NS = 5_000_000
LARGEST_TOGETHER = 32 * 1024


def _real(name: str) -> Any:
    """Return the original from before gevent replaced it. A greenlet that waits for a system lock blocks all other
    greenlets for ever.
    """
    monkey: Any = sys.modules.get("gevent.monkey")
    return getattr(_thread, name) if monkey is None else monkey.get_original("_thread", name)


_allocate_lock = _real("allocate_lock")
_make_lock = _real("RLock")
_start_new_thread = _real("start_new_thread")
# The unhooked C method: a replay hooks the methods of locks, and our own pauses are not the program's.
_acquire = type(_allocate_lock()).acquire


class ChunkBuffer:
    """The pieces of one call's streams that are not on the tape yet."""

    __slots__ = (
        *(
            "_call",
            "_cleaners",
            "_head",
            "encoding",
            "_is_inner",
            "_last",
            "_lock",
            "_pieces",
            "_recorder",
        ),
        *("_scheduled",),
        *("_size", "_started", "_stream", "count", "sends_body", "sent_encoding", "total"),
    )

    def __init__(
        self,
        recorder: Recorder,
        call: Ref,
        started: int,
        head: dict[str, Any] | None = None,
        *,
        is_inner: bool = False,
        encoding: str | None = None,
    ) -> None:
        """`encoding`: the content encoding of the stream `body`, if it is compressed. `is_inner`: the call is made
        within a tool, and its pieces have no place in the order. `head`: the head before a short body that arrives at
        once. It is written together with the outcome, if the outcome comes within these milliseconds.
        """
        self._recorder = recorder
        self._call = call
        self._started = started
        self._is_inner = is_inner
        # Re-entrant: a signal handler or a __del__ may close the very stream that is being written.
        self._lock = _make_lock()
        self.encoding = encoding
        self._cleaners: dict[str, StreamCleaner | EncodedBodyCleaner] = {}
        self._head = head
        self._stream = ""
        self._pieces: list[Piece] = []
        self._size = 0
        self._last = 0
        self._scheduled = head is not None
        self.count = 0
        self.total = 0
        self.sends_body = False
        # The content encoding of a request body that is sent in pieces.
        self.sent_encoding: str | None = None
        if head is not None:
            self._last = mono_ns()
            _flusher.push(self)

    def add(self, stream: str, piece: bytes) -> None:
        now = mono_ns()
        with self._lock:
            if self._pieces and self._stream != stream:
                self._write(now)
            self._stream = stream
            self._pieces.append((piece, now - self._started))
            if stream not in ACTS and not self._is_inner:
                points.note_call(self._call, now - self._started, now, self._recorder)
            self._size += len(piece)
            self.count += 1
            self.total += len(piece)
            if now - self._last >= _TOGETHER_NS or self._size >= LARGEST_TOGETHER:
                self._write(now)
            elif not self._scheduled:
                self._scheduled = True
                _flusher.push(self)

    def flush(self) -> None:
        """Write the pieces that wait for further pieces."""
        with self._lock:
            self._scheduled = False
            if self._pieces or self._head is not None:
                self._write(mono_ns())

    def end_sent(self) -> None:
        """The server answers: write a compressed request body, which is redacted as a whole, before the answer."""
        with self._lock:
            self.flush()
            cleaner = self._cleaners.get("sent")
            if isinstance(cleaner, EncodedBodyCleaner):
                del self._cleaners["sent"]
                self._tell("sent", cleaner.feed([], last=True))

    def finish(self) -> Held | None:
        """The stream has ended: write everything, also data that waits for the rest of a secret. If nothing was
        written yet except held data, return that data: it is written with the outcome.
        """
        with self._lock:
            if self._scheduled:
                self._scheduled = False
                _flusher.forget(self)
            if self._head is not None:
                held = (self._head, self._stream, self._pieces)
                self._pieces, self._head = [], None
                return held
            self.flush()
            cleaners, self._cleaners = self._cleaners, {}
            for stream, cleaner in cleaners.items():
                self._tell(stream, cleaner.feed([], last=True))
        return None

    def _write(self, now: int) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._append({"call": self._call, **head})
        pieces, self._pieces, self._size, self._last = self._pieces, [], 0, now
        self._tell(self._stream, self._cleaned(pieces))

    def _cleaned(self, pieces: list[Piece]) -> list[Piece]:
        redactor = self._recorder.redactor
        if redactor is None or self._recorder.level != "full":
            return pieces
        if self._stream in MESSAGES and not (self.sends_body and self._stream == "sent"):
            # Each message is whole.
            return [(redactor.clean_bytes(piece), when) for piece, when in pieces]
        cleaner = self._cleaners.get(self._stream)
        if cleaner is None:
            encodings = {"body": self.encoding, "sent": self.sent_encoding}
            encoding = encodings.get(self._stream)
            if encoding is None:
                cleaner = StreamCleaner(redactor)
            else:
                cleaner = EncodedBodyCleaner(redactor, encoding, http_headers.undo)
            self._cleaners[self._stream] = cleaner
        return cleaner.feed(pieces)

    def _tell(self, stream: str, pieces: list[Piece]) -> None:
        if pieces:
            self._append({"call": self._call, **_pieces_data(stream, pieces)})

    def _append(self, data: dict[str, Any]) -> None:
        self._recorder.append(NewEvent(events.CHUNK, data, '""', self._call, None, True))


def streams_of(recorder: Recorder, held: Held, encoding: str | None) -> list[dict[str, Any]]:
    """The streams of a short answer, redacted, as members of its outcome. `encoding` is its content encoding."""
    head, stream, pieces = held
    redactor = recorder.redactor
    if redactor is not None and encoding is not None and pieces:
        pieces = cleaned_pieces(redactor, encoding, pieces, http_headers.undo)
        return [head, _pieces_data(stream, pieces)]
    # Most answers hold nothing that could be a secret, and ruling that out is much quicker than a search.
    whole = pieces[0][0] if len(pieces) == 1 else b"".join([piece for piece, _ in pieces])
    if redactor is not None and redactor.suspects(whole):
        pieces = StreamCleaner(redactor).feed(pieces, last=True)
    return [head, _pieces_data(stream, pieces)] if pieces else [head]


def _pieces_data(stream: str, pieces: list[Piece]) -> dict[str, Any]:
    if len(pieces) == 1:  # most answers have one piece
        ((raw, when),) = pieces
        sizes, at_ns = [len(raw)], [when]
    else:
        raw = b"".join([piece for piece, _ in pieces])
        sizes, at_ns = [len(piece) for piece, _ in pieces], [when for _, when in pieces]
    try:
        return {"stream": stream, "text": raw.decode(), "sizes": sizes, "at_ns": at_ns}
    except UnicodeDecodeError:
        return {"stream": stream, **as_text(raw), "sizes": sizes, "at_ns": at_ns}


def as_text(raw: bytes) -> dict[str, str]:
    """Return `{"text": …}` for UTF-8, `{"b64": …}` for anything else: readable if possible."""
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
    """A buffer that holds data back for a moment."""

    def flush(self) -> None: ...


class _Flusher:
    """One daemon thread, started with the first piece that waits.

    Started below `threading`, so that it has no lane: it comes and goes with timing, and would
    make the numbering of the host's own threads a race.
    """

    def __init__(self) -> None:
        # A dict, because it keeps the order and removes an entry quickly: most buffers are empty when their time comes.
        self._waiting: dict[Flushed, None] = {}
        self._wake = _allocate_lock()
        self._wake.acquire()
        # Held while the thread should run; releasing it ends the thread at once.
        self._goes_on = _allocate_lock()
        self._goes_on.acquire()
        self._ended = _allocate_lock()
        self._ended.acquire()
        self._running = False

    def push(self, buffer: Flushed) -> None:
        self._waiting[buffer] = None
        if not self._running:
            # The thread that loads `threading` first becomes its main thread, and that must not be the one
            # started here.
            threading.main_thread()
            self._running = True
            _start_new_thread(self._run, ())
        if self._wake.locked():
            try:
                self._wake.release()
            except RuntimeError:
                return  # another thread has woken it already

    def forget(self, buffer: Flushed) -> None:
        """Forget a buffer that is complete. Keeping thousands of them for those milliseconds would cost more than their
        contents.
        """
        self._waiting.pop(buffer, None)

    def stop(self) -> Iterable[Flushed]:
        """Stop the thread and return, after it has ended, the buffers that were pushed meanwhile."""
        if self._running:
            threads = clock.threads()
            self._goes_on.release()
            if self._wake.locked():
                self._wake.release()
            _acquire(self._ended, True, 1)
            # The thread has done its last action, but the system may not have noticed yet.
            patience = mono_ns() + 5_000_000
            while threads > 1 and clock.threads() >= threads and mono_ns() < patience:
                clock.sleep(0.000_05)
        return self._waiting

    def _run(self) -> None:
        leaves = False
        while not leaves:
            self._wake.acquire()
            leaves = _acquire(self._goes_on, True, _TOGETHER_NS / 1e9)
            for one in list(self._waiting):
                self._waiting.pop(one, None)
                try:
                    one.flush()
                except Exception as error:  # noqa: BLE001  (the others must not wait for ever)
                    say(f"part of a stream could not be recorded ({safe_str(error)}).")
        self._ended.release()


_flusher = _Flusher()


def flush_soon(buffer: Flushed) -> None:
    """Have `buffer` flushed by our thread in a few milliseconds."""
    _flusher.push(buffer)


def _start_anew() -> None:
    global _flusher  # noqa: PLW0603  (one thread a process)
    _flusher = _Flusher()


def _leave() -> None:
    """Stop the flusher's thread before a fork: from 3.12 on Python warns a program that forks while it has threads, and
    this thread is ours, not the program's.
    """
    global _flusher
    old, _flusher = _flusher, _Flusher()
    for one in old.stop():
        _flusher.push(one)


# Threads do not survive a fork, and the parent writes the buffers that wait.
os.register_at_fork(before=_leave, after_in_child=_start_anew)
