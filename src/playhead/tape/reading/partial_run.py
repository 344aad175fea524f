"""Runs of which this disk has only a part, because the rest is in a shared store. Knows byte ranges and a map of the
ranges that are here; does not know where the others come from.

    HOME/partial/RUN.json    marks the run RUN of the store HOME as partial; only the source reads its content
    HOME/partial/RUN.map     one byte per block of the sealed file: 1 if the block is here
    HOME/runs/RUN/           small files, complete; the sealed file with its full length, and holes in it

The mark is beside the run and not inside it, because another person may have made the files of a run.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from playhead.errors import StoreError, TapeDamaged
from playhead.host.private_files import open_regular, read_regular

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO, Protocol

    from playhead.tape.sealed.seal_index import SealIndex

    class RangeSource(Protocol):
        """Fetches the missing parts of one run. Each method raises RemoteError if it cannot."""

        def fetch_range(self, name: str, start: int, stop: int) -> bytes:
            """Return these bytes of a file of the run."""

        def fetch_file(self, name: str) -> bool:
            """Fetch a file into the folder of the run. False: the run has no such file."""

        def fetch_contents(self) -> None:
            """Fetch the contents of the run's workspace into its store."""

    Connect = Callable[[Path], RangeSource]

FOLDER = "partial"
# Small enough to fetch one event quickly; one byte of the map for each.
BLOCK = 256 * 1024
# A reader that continues at the same position gets more bytes with each request.
_LONGEST_FETCH = 16 * BLOCK
# The part of a tape that a first view reads, compressed; and the payloads of its events.
_FIRST_VIEW = 2 * 1024 * 1024
FIRST_BLOBS = 2 * 1024 * 1024
_SIZES = re.compile(rb'"\$blob":"[0-9a-f]{64}","size":(\d{1,12})')

_connect: Connect | None = None


def connect_with(connect: Connect) -> None:
    """Set the function that connects a partial run to its source. A process without one cannot read missing parts."""
    global _connect  # noqa: PLW0603  tapes are opened by path everywhere, so the source cannot be passed along
    _connect = connect


def mark_of(run: Path) -> Path:
    return run.parent.parent / FOLDER / f"{run.name}.json"


def map_of(run: Path) -> Path:
    return run.parent.parent / FOLDER / f"{run.name}.map"


def is_partial(run: Path) -> bool:
    return mark_of(run).exists()


def source_of(run: Path) -> RangeSource:
    if _connect is None:
        raise StoreError(
            f"Only a part of run {run.name} is on this disk. `playhead pull {run.name}` fetches the rest."
        )
    return _connect(run)


def fetch_blob(run: Path, digest: str) -> bool:
    """Fetch a payload that is missing here. False: the run is whole, or has no such payload."""
    return is_partial(run) and source_of(run).fetch_file(f"blobs/{digest[:2]}/{digest}")


def fetch_contents(run: Path) -> None:
    """Fetch the files of the run's workspace if they are not here."""
    if is_partial(run):
        source_of(run).fetch_contents()


def first_events(index: SealIndex, most: int) -> int:
    """Return the number of events for a first view: at most `most`, in a few megabytes of the sealed file."""
    events = size = 0
    for frame in index.frames:
        size += frame.size
        if events and size > _FIRST_VIEW:
            break
        events += frame.rows
    return max(1, min(most, events))


def spilled_bytes(line: bytes) -> int:
    """Return the size of the payloads that a line refers to."""
    return sum(int(size) for size in _SIZES.findall(line))


def open_sealed(path: Path) -> BinaryIO:
    """Open a sealed file for reading; missing parts of a partial one are fetched when they are read."""
    run = path.parent
    fd = open_regular(path)
    if not is_partial(run):
        return open(fd, "rb")
    return io.BufferedReader(_PartialFile(fd, path, source_of(run)), BLOCK)


class _PartialFile(io.RawIOBase):
    """A file with holes. Processes may read and fill it at the same time: they write the same bytes."""

    def __init__(self, fd: int, path: Path, source: RangeSource) -> None:
        super().__init__()
        self._fd = fd
        self._path = path
        self._source = source
        self._size = os.fstat(fd).st_size
        self._at = 0
        self._here = self._read_map()
        # The end of the last fetch and its number of bytes: a fetch that continues there asks for twice as many.
        self._fetched: tuple[int, int] = (0, 0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        stop = min(self._size, self._at + min(len(buffer), BLOCK))
        if self._at >= stop:
            return 0
        for block in range(self._at // BLOCK, (stop - 1) // BLOCK + 1):
            if not self._here[block]:
                self._fetch(block)
        raw = os.pread(self._fd, stop - self._at, self._at)
        buffer[: len(raw)] = raw
        self._at += len(raw)
        return len(raw)

    def close(self) -> None:
        if not self.closed:
            os.close(self._fd)
        super().close()

    def _read_map(self) -> bytearray:
        blocks = -(-self._size // BLOCK)
        try:
            return bytearray(read_regular(map_of(self._path.parent), blocks).ljust(blocks, b"\0"))
        except FileNotFoundError:
            return bytearray(blocks)

    def _fetch(self, block: int) -> None:
        ended, last = self._fetched
        wanted = min(2 * last, _LONGEST_FETCH) if ended == block * BLOCK else BLOCK
        end = block + 1
        while end < len(self._here) and not self._here[end] and (end - block) * BLOCK < wanted:
            end += 1
        start, stop = block * BLOCK, min(end * BLOCK, self._size)
        raw = self._source.fetch_range(self._path.name, start, stop)
        if len(raw) != stop - start:
            raise TapeDamaged(
                f"The shared store returned {len(raw)} bytes of {self._path.name}, not {stop - start}."
            )
        self._keep(start, raw)
        _write_at(map_of(self._path.parent), block, b"\1" * (end - block))
        self._here[block:end] = b"\1" * (end - block)
        self._fetched = (stop, stop - start)

    def _keep(self, start: int, raw: bytes) -> None:
        """Write fetched bytes to the file, and then mark them in the map: a kill in between costs one fetch."""
        _write_at(self._path, start, raw)


def _write_at(path: Path, start: int, raw: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(raw)
        while view:
            written = os.pwrite(fd, view, start)
            if not written:
                raise OSError(errno.EIO, "nothing was written", str(path))
            view, start = view[written:], start + written
    finally:
        os.close(fd)
