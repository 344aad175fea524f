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
    from collections.abc import Callable
    from typing import Any

    from playhead.hooks.process import output_files
else:
    # Only a program on a terminal needs it: see `playhead.host.later`.
    output_files = Later("playhead.hooks.process.output_files")

_TOGETHER_NS = 5_000_000
_LARGEST = 32 * 1024
# Pieces of up to 32 KiB.
_MOST_WAITING = 256


class OutputBuffer:
    """Collects pieces of output for the tape: pieces within a few milliseconds share an event.

    Adding takes no lock: a signal handler that prints may interrupt it in the same thread that would hold the lock.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._pieces: deque[tuple[str, bytes]] = deque()
        # Data of events that are redacted but not on the tape yet.
        self._ready: deque[dict[str, Any]] = deque()
        # A program may write a secret in two parts: each stream is redacted as a whole.
        self._cleaners: dict[str, StreamCleaner] = {}
        self._writing = _thread.allocate_lock()
        self._last = 0

    def add(self, stream: str, piece: bytes) -> None:
        self.announce(stream, piece)
        if len(self._pieces) > _MOST_WAITING and self._writing.acquire(timeout=1):
            # The writer is slower than the command: let the command wait, so that memory does not grow.
            self._writing.release()
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
        while self._pieces and self._writing.acquire(blocking=False):
            try:
                self._write()
            finally:
                self._writing.release()

    def close(self) -> None:
        """Write everything: the tape is about to end."""
        # Give up after a second without progress: a program that exits from a signal handler may have interrupted this
        # very writer. A writer that makes progress may need longer for megabytes on a busy machine.
        waiting = len(self._pieces) + 1
        while not (is_ours := self._writing.acquire(timeout=1)) and len(self._pieces) < waiting:
            waiting = len(self._pieces)
        if is_ours:
            try:
                self._write()
                for stream, cleaner in self._cleaners.items():
                    self._prepare(stream, cleaner.waiting, cleaner.feed([], last=True))
                self._write()
            finally:
                self._writing.release()

    def _write(self) -> None:
        self._last = clock.mono_ns()
        # A secret may have become known just before the program printed it.
        self._recorder.hear_secrets()
        while self._ready or self._pieces:
            if not self._ready:
                self._redact(self._together())
                continue
            data = self._ready.popleft()
            before = self._recorder.events
            kind = events.INPUT if data["stream"] == "stdin" else events.OUTPUT
            try:
                self._recorder.append(NewEvent(kind, data, redacted=True))
            except BaseException:
                # Ctrl-C interrupted the write: the remaining pieces wait for the next flush.
                if self._recorder.events == before:
                    self._ready.appendleft(data)
                raise

    def _redact(self, taken: list[tuple[str, bytes]]) -> None:
        """Make an event of these pieces of one stream. Hold back pieces that may end inside a secret."""
        stream = taken[0][0]
        raw = b"".join([piece for _, piece in taken])
        redactor = self._recorder.redactor
        if redactor is None:
            self._prepare(stream, len(raw), [(raw, 0)])
            return
        cleaner = self._cleaners.get(stream)
        if cleaner is None:
            cleaner = self._cleaners[stream] = StreamCleaner(redactor)
        size = cleaner.waiting + len(raw)
        try:
            pieces = cleaner.feed([(raw, 0)])
        except BaseException:
            self._pieces.extendleft(reversed(taken))
            raise
        self._prepare(stream, size - cleaner.waiting, pieces)

    def _prepare(self, stream: str, size: int, pieces: list[tuple[bytes, int]]) -> None:
        """`size` is the number of bytes that the program wrote: a placeholder has another length than its secret."""
        if size:
            clean = b"".join([piece for piece, _ in pieces])
            self._ready.append({"stream": stream, "bytes": size, **chunks.as_text(clean)})

    def _together(self) -> list[tuple[str, bytes]]:
        """Take the next pieces of one stream."""
        taken = [self._pieces.popleft()]
        size = len(taken[0][1])
        while self._pieces and self._pieces[0][0] == taken[0][0]:
            size += len(self._pieces[0][1])
            if size > _LARGEST:
                break
            taken.append(self._pieces.popleft())
        return taken


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
