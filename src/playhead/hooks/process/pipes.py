"""Observe the data between the program and its children where the program reads and writes it.

No pipe is added: the descriptors are the ones that the program would have had. Knows file objects, `os.read`,
`os.write` and pseudo-terminals; does not know processes.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import select
import stat
import sys

from playhead.hooks.process.flight import Flight
from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, TypeVar

    from playhead.hooks.process import stage as process_stage

    N = TypeVar("N", int, "int | None")

    T = TypeVar("T")
    Key = Hashable
else:
    # Only a replay needs it: see `playhead.host.later`.
    process_stage = Later("playhead.hooks.process.stage")

_PTMX = (5, 2)
_LINUX: bool = sys.platform == "linux"
_SLAVE_OF_MASTER = 0x80045430 if _LINUX else 0x40807453  # TIOCGPTN, TIOCPTYGNAME

# Descriptors of which we know when they are closed: those of `Popen`'s own pipes.
_reads: dict[int, tuple[Flight, str]] = {}
_writes: dict[int, tuple[Flight, str]] = {}
# Pipes and terminals that the program made itself (trio does), identified by device and inode, because
# several descriptors may refer to one.
_raw_reads: dict[Key, tuple[Flight, str]] = {}
_raw_writes: dict[Key, tuple[Flight, str]] = {}


class Tapped(io.RawIOBase):
    """A file of `Popen`'s, with a listener. Descriptor, blocking and errors are the file's own."""

    # Set by io when an object is collected that was never closed.
    _finalizing = False

    # No __getattr__: io looks for attributes that are not there, many times for each file.

    def __init__(self, file: io.FileIO, flight: Flight, stream: str) -> None:
        self._file = file
        self._flight = flight
        self._stream = stream
        known = _writes if file.writable() else _reads
        known[file.fileno()] = (flight, stream)
        if known is _reads:
            flight.expects(stream)

    def readinto(self, buffer: Any) -> int | None:
        size = self._patiently(lambda: self._file.readinto(buffer))
        if size:
            self._flight.heard(self._stream, bytes(memoryview(buffer)[:size]))
        elif size == 0 and len(buffer):
            self._flight.ended(self._stream)
        return size

    def readall(self) -> Any:
        """Read piece by piece, so that received data is on the tape before the end of the stream."""
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._patiently(lambda: _original_read(self._file.fileno(), 65536))
            except BlockingIOError:
                return b"".join(pieces) if pieces else None
            if not piece:
                self._flight.ended(self._stream)
                return b"".join(pieces)
            self._flight.heard(self._stream, piece)
            pieces.append(piece)

    def write(self, data: Any) -> int | None:
        self._flight.check()
        return _written(self._flight, self._file.write, data)

    def close(self) -> None:
        if self.closed:
            return
        if self._finalizing:
            self._dealloc_warn(self)  # as FileIO warns of itself
        # Reported before the file is closed: a process may end as soon as it sees the end of its stdin, and another
        # thread may learn of that before this one continues.
        if not self._file.closed:
            fd = self._file.fileno()
            (_writes if self._stream == "stdin" else _reads).pop(fd, None)
            if self._flight.expected(self._stream):
                self._flight.ended(self._stream, closed=not _is_over(fd))
        try:
            self._file.close()
        finally:
            super().close()

    def _patiently(self, read: Callable[[], T]) -> T:
        """Read. If the process is taped, tell the replay that this thread waits."""
        flight, fd = self._flight, self._file.fileno()
        if flight.player is None:
            return read()
        flight.check(waits=os.get_blocking(fd) and process_stage.is_silent(fd))
        return process_stage.read_visibly(fd, read)

    def readable(self) -> bool:
        return self._file.readable()

    def writable(self) -> bool:
        return self._file.writable()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()

    @property
    def name(self) -> Any:
        return self._file.name

    @property
    def mode(self) -> str:
        return self._file.mode

    @property
    def closefd(self) -> bool:
        return self._file.closefd

    def _dealloc_warn(self, source: Any) -> None:
        self._file._dealloc_warn(source)  # type: ignore[attr-defined]  # private, as this one is

    def __repr__(self) -> str:
        return repr(self._file)


def tap(file: Any, flight: Flight, stream: str, size: int) -> Any:
    """Observe `file` as `Popen` made it; returns the object that replaces it.

    Buffered and text files stay the same objects: only their raw file is replaced, by running their
    constructor again before their first use.
    """
    buffered = getattr(file, "buffer", file)
    if isinstance(buffered, io.FileIO):
        tapped = Tapped(buffered, flight, stream)
        return tapped if buffered is file else _text_over(tapped, file)
    raw = buffered.raw
    if size <= 1:
        size = raw._blksize if raw._blksize > 1 else io.DEFAULT_BUFFER_SIZE
    buffered.__init__(Tapped(raw, flight, stream), size)
    return file


def _text_over(tapped: Tapped, text: io.TextIOWrapper) -> io.TextIOWrapper:
    encoding, errors = text.encoding, text.errors
    text.detach()
    return io.TextIOWrapper(tapped, encoding, errors, write_through=True)


def expect(fd: int, flight: Flight, stream: str) -> None:
    """Observe a pipe or terminal that the program made. `fd` is the child's end."""
    key = _key_of_child(fd)
    if key is None:
        return
    if stream != "stdin" and _raw_reads.get(key, (None,))[0] is not flight:
        # One pipe or terminal for both streams: the bytes cannot be separated, and count for the first
        # stream.
        _raw_reads[key] = (flight, stream)
        flight.expects(stream)
    if stream == "stdin" or type(key) is str:  # a terminal goes both ways
        _expect_writes(key, flight)


def expect_master(fd: int, flight: Flight) -> None:
    """Observe a terminal whose other end the child has. `fd` is the program's end."""
    key = _key_of_host(fd)
    if key is not None:
        _raw_reads[key] = (flight, "stdout")
        flight.expects("stdout")
        _expect_writes(key, flight)


def _expect_writes(key: Key, flight: Flight) -> None:
    _raw_writes[key] = (flight, "stdin")

    def forget(flight: Flight) -> None:
        known = _raw_writes.get(key)
        if known is not None and known[0] is flight:
            del _raw_writes[key]

    flight.at_exit(forget)


def _key_of_child(fd: int) -> Key | None:
    try:
        what = os.fstat(fd)
        if stat.S_ISFIFO(what.st_mode):
            return (what.st_dev, what.st_ino)
        return os.ttyname(fd) if stat.S_ISCHR(what.st_mode) and os.isatty(fd) else None
    except OSError:
        return None


def _key_of_host(fd: int) -> Key | None:
    try:
        what = os.fstat(fd)
        if stat.S_ISFIFO(what.st_mode):
            return (what.st_dev, what.st_ino)
        if not stat.S_ISCHR(what.st_mode):
            return None
        if _LINUX:
            if (os.major(what.st_rdev), os.minor(what.st_rdev)) != _PTMX:
                return None
            number = fcntl.ioctl(fd, _SLAVE_OF_MASTER, b"\0" * 4)
            return f"/dev/pts/{int.from_bytes(number, sys.byteorder)}"
        return fcntl.ioctl(fd, _SLAVE_OF_MASTER, b"\0" * 128).partition(b"\0")[0].decode()
    except OSError:
        return None


def _is_over(fd: int) -> bool:
    """Return whether the other end is closed. The program then did not decide to close: asyncio, for example, closes a
    child's stdin because the child has exited.
    """
    end = select.poll()
    end.register(fd, 0)
    return bool(end.poll(0))


def _access(fd: int) -> int:
    try:
        return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return -1


class Reading:
    """Replaces `os.read`. Not a function: like a builtin, it must not become a method in the body of a class."""

    def __init__(self, original: Callable[[int, int], bytes]) -> None:
        self._original = original

    def __call__(self, fd: int, length: int, /) -> bytes:
        try:
            data = self._read(fd, length)
        except OSError as error:
            # Linux reports the end of a terminal with this error when all other users have closed it.
            if error.errno == errno.EIO and _raw_reads:
                _saw(fd, b"")
            raise
        if (fd in _reads or _raw_reads) and (data or length):
            _saw(fd, data)
        return data

    def _read(self, fd: int, length: int) -> bytes:
        known = _known_reader(fd) if _reads or _raw_reads else None
        if known is None or known[0].player is None:
            return self._original(fd, length)
        try:
            return process_stage.read_visibly(fd, lambda: self._original(fd, length))
        except BlockingIOError:
            # The pipe stays open while the stage's thread polls it, also after the player has closed it.
            if known[0].player.has_ended(known[1]):
                return b""
            raise


class Writing:
    """Replaces `os.write`."""

    def __init__(self, original: Callable[[int, Any], int]) -> None:
        self._original = original

    def __call__(self, fd: int, data: Any, /) -> int:
        if fd in _writes or _raw_writes:
            known = _writes.get(fd) or _raw_writes.get(_key_of_host(fd))
            if known is not None:
                return _written(known[0], lambda data: self._original(fd, data), data)
        return self._original(fd, data)


class Closing:
    """Replaces `os.close`, which is the only place where the close of a pipe that the program made can be seen."""

    def __init__(self, original: Callable[[int], None]) -> None:
        self._original = original

    def __call__(self, fd: int) -> None:
        read, written = _reads.pop(fd, None), _writes.pop(fd, None)
        if _raw_reads or _raw_writes:
            key, access = _key_of_host(fd), _access(fd)
            # Both ends of a pipe have the same key. Closing our copy of the child's end closes no stream.
            if access != os.O_WRONLY:
                read = _raw_reads.pop(key, read)
            if access != os.O_RDONLY:
                written = _raw_writes.pop(key, written)
        for known in (read, written):
            if known is not None:
                known[0].ended(known[1], closed=not _is_over(fd))
        self._original(fd)


def _written(flight: Flight, write: Callable[[Any], N], data: Any) -> N:
    """Let the program write to its child, report the data, and return the result of `write`."""
    counts = flight.begin_write()
    seen = b""
    try:
        size = write(data)
        seen = bytes(memoryview(data).cast("B")[:size]) if size else b""
        return size
    finally:
        flight.wrote(seen, counts=counts)


def reader_of(fd: Any) -> tuple[Flight, str] | None:
    """Return the process and the stream that a descriptor of `Popen` reads from."""
    return _reads.get(fd) if type(fd) is int else None


def _known_reader(fd: int) -> tuple[Flight, str] | None:
    return _reads.get(fd) or (_raw_reads.get(_key_of_host(fd)) if _raw_reads else None)


def _saw(fd: int, data: bytes) -> None:
    known = _reads.get(fd)
    if known is None:
        key = _key_of_host(fd)
        known = _raw_reads.get(key)
        if known is not None and not data:
            _raw_reads.pop(key, None)
    if known is None:
        return
    if data:
        known[0].heard(known[1], data)
    else:
        known[0].ended(known[1])


def _forget_all() -> None:
    for known in (_reads, _writes, _raw_reads, _raw_writes):
        for flight, _ in list(known.values()):
            flight.mute()
        known.clear()


_original_read = os.read
os.register_at_fork(after_in_child=_forget_all)
