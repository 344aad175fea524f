"""Record the program's output on a terminal. Knows Python's own streams; does not know pipes.

A terminal cannot be replaced: a program reads its size, its modes and its process group. So the program keeps
it, and Python's streams report what they write to it. The stream objects stay the same; only `write` of the
text streams is replaced. Output that bypasses them (bytes to `sys.stdout.buffer`, children that are not
Python) is not recorded.
"""

from __future__ import annotations

import _thread
import io
import os
import sys

from playhead import clock, events
from playhead.host.later import Later
from playhead.host.lean import deque
from playhead.recording import chunks
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.redact import StreamCleaner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from playhead.hooks.process import output_files

    # The name of a stream, and bytes.
    _Piece = tuple[str, bytes]
else:
    # Only a program on a terminal needs it: see `playhead.host.later`.
    output_files = Later("playhead.hooks.process.output_files")

_TOGETHER_NS = 5_000_000
_LARGEST = 32 * 1024
# Pieces of up to 32 KiB.
_MOST_WAITING = 256
# For another thread that writes when the tape is about to end.
_LONGEST_WAIT_S = 30
# The unhooked C methods: a replay hooks these methods, and its time would jump instead of waiting for our thread.
_acquire, _release = _thread.LockType.acquire, _thread.LockType.release


class OutputBuffer:
    """Collects pieces of output for the tape: pieces within a few milliseconds share an event.

    Adding takes no lock: a signal handler that prints may interrupt it in the same thread that would hold the lock.

    Ctrl-C may interrupt the writing at any moment, and a piece must be neither lost nor written twice. So a piece stays
    in `_pieces` until `_progress` says that it was taken, and `_progress` is replaced as a whole.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._pieces: deque[_Piece] = deque()
        self._progress = _Progress()
        self._writing = _thread.allocate_lock()
        # The thread that writes. None: no thread does.
        self._writer: int | None = None
        self._last = 0

    def add(self, stream: str, piece: bytes) -> None:
        self.announce(stream, piece)
        if len(self._pieces) > _MOST_WAITING and _acquire(self._writing, timeout=1):
            # The writer is slower than the command: let the command wait, so that memory does not grow.
            _release(self._writing)
        self.tell()

    def announce(self, stream: str, piece: bytes) -> None:
        """Note a piece that is about to be printed."""
        self._pieces.append((stream, piece))

    def take_back(self, stream: str, piece: bytes) -> None:
        """Remove a piece that was not printed after all."""
        try:
            self._pieces.remove((stream, piece))
        except ValueError:
            return  # it is on the tape already

    def tell(self) -> None:
        """Note that the announced piece is printed: write it now, or soon."""
        if clock.mono_ns() - self._last >= _TOGETHER_NS:
            self.flush()
        else:
            chunks.flush_soon(self)

    def flush(self) -> None:
        """Write the waiting pieces. If another thread is writing, it writes ours as well."""
        while self._pieces:
            is_mine: list[bool] = []
            try:
                # One call of C code: Ctrl-C cannot come after the lock is taken and before `is_mine` says so.
                is_mine.extend(map(_acquire, (self._writing,), (False,)))
                if not is_mine[0]:
                    return
                self._writer = _thread.get_ident()
                self._write()
            finally:
                if is_mine and is_mine[0]:
                    self._writer = None
                    _release(self._writing)

    def close(self) -> None:
        """Write everything: the tape is about to end."""
        # A program that exits from a signal handler may have interrupted the writer in this very thread: it never ends.
        # The writer in another thread does, but to search megabytes for secrets takes long on a busy machine.
        is_interrupted = self._writer == _thread.get_ident()
        if not is_interrupted and _acquire(self._writing, timeout=_LONGEST_WAIT_S):
            try:
                self._write()
                for stream in self._progress.cleaners:
                    self._redact(stream, b"", (), last=True)
                    self._write()
            finally:
                _release(self._writing)

    def _write(self) -> None:
        self._last = clock.mono_ns()
        # A secret may have become known just before the program printed it.
        self._recorder.hear_secrets()
        while True:
            state = self._progress
            if state.data is not None:
                self._append(state, state.data)
                continue
            for piece in state.taken:
                if self._pieces and self._pieces[0] is piece:
                    self._pieces.popleft()
            taken = self._together()
            if not taken:
                return
            self._redact(taken[0][0], b"".join([piece for _, piece in taken]), taken)

    def _append(self, state: _Progress, data: dict[str, Any]) -> None:
        before = self._recorder.events
        kind = events.INPUT if data["stream"] == "stdin" else events.OUTPUT
        written = _Progress(state.cleaners, state.taken)
        try:
            self._recorder.append(NewEvent(kind, data, redacted=True))
        except BaseException:
            # Ctrl-C interrupted the write. If the event is not on the tape, the next flush writes it.
            if self._recorder.events != before:
                self._progress = written
            raise
        self._progress = written

    def _redact(
        self, stream: str, raw: bytes, taken: Sequence[_Piece], *, last: bool = False
    ) -> None:
        """Make an event of these pieces of one stream. Hold back pieces that may end inside a secret."""
        redactor = self._recorder.redactor
        cleaners = self._progress.cleaners
        size, pieces = len(raw), [(raw, 0)]
        if redactor is not None:
            known = cleaners.get(stream)
            # A program may write a secret in two parts: each stream is redacted as a whole.
            cleaner = StreamCleaner(redactor) if known is None else known.copy()
            size += cleaner.waiting
            pieces = cleaner.feed([(raw, 0)] if raw else [], last=last)
            size -= cleaner.waiting
            cleaners = {**cleaners, stream: cleaner}
        # The number of bytes that the program wrote: a placeholder has another length than its secret.
        data = {"stream": stream, "bytes": size} if size else None
        if data is not None:
            data |= chunks.as_text(b"".join([piece for piece, _ in pieces]))
        self._progress = _Progress(cleaners, taken, data)

    def _together(self) -> list[_Piece]:
        """Return the next pieces of one stream, which stay where they are."""
        taken: list[_Piece] = []
        size = 0
        for at in range(len(self._pieces)):
            try:
                piece = self._pieces[at]
            except IndexError:
                break  # another thread has taken one back
            size += len(piece[1])
            if taken and (piece[0] != taken[0][0] or size > _LARGEST):
                break
            taken.append(piece)
        return taken


class _Progress:
    """How far the writing has come. Never changed, only replaced."""

    __slots__ = ("cleaners", "data", "taken")

    def __init__(
        self,
        cleaners: dict[str, StreamCleaner] | None = None,
        taken: Sequence[_Piece] = (),
        data: dict[str, Any] | None = None,
    ) -> None:
        """`taken`: the pieces that were redacted last; they may still be among the waiting ones. `data`: the data of
        their event, which is not on the tape yet.
        """
        self.cleaners: dict[str, StreamCleaner] = cleaners or {}
        self.taken = taken
        self.data = data


class Tee:
    """Replaces `write` of those standard streams that lead to one of `terminals`."""

    def __init__(self, recorder: Recorder, terminals: tuple[int, ...]) -> None:
        self._recorder = recorder
        self._buffer = OutputBuffer(recorder)
        self._hooked = [
            stream
            for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr))
            if _device(stream) in terminals and self._hook(name, stream)
        ]
        if self._hooked:
            output_files.listen_to_terminal(self._add_of_child)
        global _tee  # noqa: PLW0603  one slot per process
        _tee = self

    def close(self) -> None:
        """Flush the streams, so that the program's output is on the terminal and on the tape, then restore them."""
        for stream in self._hooked:
            try:
                stream.flush()
            except (OSError, ValueError):
                continue  # the program closed it, which flushed it
        self.undo()

    def undo(self) -> None:
        """Restore the streams like `close`, but without printing the text that Python still buffers."""
        for stream in self._hooked:
            vars(stream).pop("write", None)
            output_files.listen_to_terminal(None)
        self._hooked = []
        self._buffer.close()

    def _add_of_child(self, stream: str, data: bytes) -> None:
        """Record the output of a taped child, which a replay has printed."""
        self._buffer.add(stream, data)

    def start_anew(self) -> None:
        """In a forked child, drop the waiting pieces: the parent writes them."""
        self._buffer = OutputBuffer(self._recorder)

    def _hook(self, name: str, stream: Any) -> bool:
        write: Callable[[str], int] = stream.write

        def tee(text: str) -> int:
            # Ctrl-C may arrive anywhere in this function, and output must be neither lost nor printed twice. Only the
            # topmost `write` is replaced, not the buffers below: our code inside io's code would let signal handlers
            # run there, where io forbids them to print.
            try:
                piece = text.encode(stream.encoding, stream.errors)
            except Exception:  # noqa: BLE001  the stream itself reports the error
                return write(text)
            self._buffer.announce(name, piece)
            try:
                written = write(text)
            except Exception:
                self._buffer.take_back(name, piece)
                raise
            self._buffer.tell()
            return written

        # Set on the instance: `print` looks `write` up by name each time, and the type of the stream, which some
        # programs check, stays io's own.
        stream.write = tee
        return True


def _device(stream: Any) -> int:
    """Return the device of one of Python's standard streams. 0: it is closed, or the program replaced it."""
    if type(stream) is not io.TextIOWrapper:
        return 0
    try:
        return os.fstat(stream.fileno()).st_rdev
    except (OSError, ValueError):
        return 0


_tee: Tee | None = None


def _start_anew() -> None:
    if _tee is not None:
        _tee.start_anew()


os.register_at_fork(after_in_child=_start_anew)
