"""The blobs of a store: content by its SHA-256, stored once whichever run had it first.

    blobs/packs/RUN.pack   small blobs, appended by the run that met them first
    blobs/ab/abcd…         large files, one each
    blobs/index.db         where each blob of the packs is; derived from them

Knows files and hashes; not paths, trees or runs. A reader finds every blob of a killed run: packs
that the index does not cover yet are scanned.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from playhead.errors import TapeDamaged
from playhead.host.private_files import file_of
from playhead.workspace.blobs import packs
from playhead.workspace.blobs.packs import Record, apply_delta, encode_delta
from playhead.workspace.blobs.stable_read import copy_file, hash_file

# A larger file is copied without compression, which would take longer than a user waits.
LARGE = 8 * 1024 * 1024
# Below this size a delta is not smaller than the content.
_DELTA_FROM = 4096
# Reading a blob must not follow an endless chain of bases.
_DEEPEST = 24
_CACHED = 48 * 1024 * 1024


def make_private(folder: str) -> None:
    """Create a folder that only its owner may read, and the folders above it likewise.

    `os.makedirs` gives its mode to the last folder alone; those above it get the mode of the umask.
    """
    above = os.path.dirname(folder)
    if above and not os.path.isdir(above):
        make_private(above)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)


def is_digest(name: str) -> bool:
    """Return whether a name from a tape can be that of a blob. Others may be paths to any file of the user."""
    return len(name) == 64 and all(one in "0123456789abcdef" for one in name)


class Pool:
    """All blobs of a store, for reading; `writer` adds to them."""

    def __init__(self, home: Path | str) -> None:
        self.folder = os.path.join(home, "blobs")
        self._index = BlobIndex(self.folder)
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._cached = 0

    def __contains__(self, digest: str) -> bool:
        return os.path.exists(self.loose(digest)) or self._index.find(digest) is not None

    def loose(self, digest: str) -> str:
        """Return the path that a large blob has, or would have."""
        if not is_digest(digest):
            raise TapeDamaged(f"A blob is named {digest[:80]!r}; expected 64 hexadecimal digits.")
        return os.path.join(self.folder, digest[:2], digest)

    def read(self, digest: str) -> bytes:
        """Return the content. TapeDamaged: the store does not have it, or its bytes do not match."""
        if (cached := self._cache.get(digest)) is not None:
            self._cache.move_to_end(digest)
            return cached
        content = self._read(digest)
        if hashlib.sha256(content).hexdigest() != digest:
            raise TapeDamaged(f"Blob {digest} has been altered: its content has another hash.")
        self.remember(digest, content)
        return content

    def read_part(self, digest: str, offset: int, length: int) -> bytes:
        """Return some bytes of a blob: packs of a repository may be larger than memory."""
        with suppress(FileNotFoundError), file_of(self.loose(digest)) as file:
            file.seek(offset)
            return file.read(length)
        return self.read(digest)[offset : offset + length]

    def remember(self, digest: str, content: bytes) -> None:
        """Cache a content: the next version of the file is stored as a delta against it."""
        if len(content) > _CACHED // 4 or digest in self._cache:
            return
        self._cache[digest] = content
        self._cached += len(content)
        while self._cached > _CACHED:
            self._cached -= len(self._cache.popitem(last=False)[1])

    def depth(self, digest: str) -> int | None:
        """Return how many bases must be read first. None: no pack has the blob."""
        found = self._index.find(digest)
        return None if found is None else packs.read_record(*found)[0].depth

    def _read(self, digest: str) -> bytes:
        with suppress(FileNotFoundError), file_of(self.loose(digest)) as file:
            return file.read()
        chain: list[bytes] = []
        wanted, content = digest, None
        while content is None:
            found = self._index.find(wanted)
            if found is None:
                raise TapeDamaged(f"Blob {wanted} is missing from {self.folder}.")
            record, payload = packs.read_record(*found)
            if record.kind != packs.DELTA:
                content = payload
                continue
            chain.append(payload)
            wanted = record.base.hex()
            if len(chain) > 4 * _DEEPEST:
                raise TapeDamaged(f"Blob {digest} is a delta without an end.")
        try:
            for delta in reversed(chain):
                content = apply_delta(content, delta)
        except ValueError as error:
            raise TapeDamaged(f"Blob {digest} cannot be rebuilt ({error}).") from None
        return content

    def note(self, path: str, record: Record) -> None:
        self._index.note(path, record)

    def save_index(self) -> None:
        self._index.save()


class PoolWriter:
    """Adds the blobs of one run. Thread-safe. OSError: the blob was not stored."""

    def __init__(self, pool: Pool, run_id: str) -> None:
        self.pool = pool
        self._path = os.path.join(pool.folder, "packs", f"{run_id}.pack")
        self._pack: packs.PackWriter | None = None
        self._depths: dict[str, int] = {}
        self._lock = threading.Lock()
        self.stored = 0

    def put(self, content: bytes, base: str | None = None) -> str:
        """Store content; as a delta against the blob `base` if that is smaller."""
        raw = hashlib.sha256(content)
        digest = raw.hexdigest()
        with self._lock:
            if digest in self._depths or digest in self.pool:
                return digest
            delta = self._delta(content, base)
            if self._pack is None:
                make_private(os.path.dirname(self._path))
                self._pack = packs.PackWriter(self._path)
            record = self._pack.add(raw.digest(), content, delta)
            self._depths[digest] = record.depth
            self.pool.note(self._path, record)
            self.stored += record.stored
        if len(content) >= _DELTA_FROM:
            self.pool.remember(digest, content)
        return digest

    def put_file(self, fd: int, *, link: str | None = None) -> str:
        """Store a large file. `link`: the path of a file that never changes, so that it can be linked."""
        if link is not None:
            digest = hash_file(fd)
            with suppress(OSError):  # another file system: copy it
                self._link(link, self.pool.loose(digest))
                return digest
        make_private(self.pool.folder)
        part = os.path.join(self.pool.folder, f"{os.getpid()}-{threading.get_ident()}.part")
        try:
            copy_file(fd, part)
            # Hash the copy: the file itself may change meanwhile, and a blob must match its name.
            copied = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
            try:
                digest = hash_file(copied)
            finally:
                os.close(copied)
            target = self.pool.loose(digest)
            make_private(os.path.dirname(target))
            os.replace(part, target)
        except OSError:
            with suppress(OSError):
                os.unlink(part)
            raise
        self.stored += os.path.getsize(target)
        return digest

    @staticmethod
    def _link(source: str, target: str) -> None:
        make_private(os.path.dirname(target))
        with suppress(FileExistsError):
            os.link(source, target)

    def close(self) -> None:
        with self._lock:
            if self._pack is not None:
                self._pack.close()
                self._pack = None
            self.pool.save_index()

    def _delta(self, content: bytes, base: str | None) -> tuple[bytes, bytes, int] | None:
        if base is None or len(content) < _DELTA_FROM or len(base) != 64:
            return None
        try:
            depth = self._depths.get(base)
            depth = self.pool.depth(base) if depth is None else depth
            if depth is None or depth >= _DEEPEST:
                return None
            return bytes.fromhex(base), encode_delta(self.pool.read(base), content), depth + 1
        except TapeDamaged:
            return None


class BlobIndex:
    """The place of each blob in the packs. A cache: if it is damaged, the packs are scanned."""

    def __init__(self, folder: str) -> None:
        self._packs = os.path.join(folder, "packs")
        self._path = os.path.join(folder, "index.db")
        self._found: dict[str, tuple[str, int]] = {}
        self._new: list[tuple[str, str, int, int]] = []
        self._database: sqlite3.Connection | None = None
        self._opened = False
        self._scanned = False

    def find(self, digest: str) -> tuple[str, int] | None:
        """Return the path of the pack, and the offset in it."""
        self._open()
        if (found := self._found.get(digest)) is not None:
            return found
        if self._database is None:
            return None
        try:
            rows = "SELECT pack, offset FROM blob WHERE digest = ?"
            row = self._database.execute(rows, (digest,)).fetchone()
        except sqlite3.Error:
            return None
        if row is None:
            return None
        path = os.path.join(self._packs, row[0])
        return (path, row[1]) if os.path.exists(path) else None

    def note(self, path: str, record: Record) -> None:
        digest = record.digest.hex()
        self._found[digest] = (path, record.offset)
        self._new.append((digest, os.path.basename(path), record.offset, record.end))

    def save(self) -> None:
        """Best effort: unsaved entries are found by scanning."""
        if not self._new:
            return
        self._open()
        if self._database is None:
            self._connect()  # the folder did not exist yet
        if self._database is None:
            return
        try:
            with self._database:
                self._database.executemany(
                    "INSERT OR IGNORE INTO blob VALUES (?, ?, ?)", [one[:3] for one in self._new]
                )
                ends = {pack: end for _, pack, _, end in self._new}
                self._database.executemany(
                    "INSERT OR REPLACE INTO pack VALUES (?, ?)", sorted(ends.items())
                )
            self._new.clear()
        except sqlite3.Error:
            return

    def _open(self) -> None:
        if self._opened:
            return
        self._opened = True
        covered: dict[str, int] = {}
        if os.path.isdir(os.path.dirname(self._path)):
            covered = self._connect()
        try:
            names = sorted(os.listdir(self._packs))
        except OSError:
            names = []
        for name in names:
            path = os.path.join(self._packs, name)
            start = covered.get(name, 0)
            if name.endswith(".pack") and os.path.getsize(path) > max(start, len(packs.MAGIC)):
                for record in packs.read_records(path, start):
                    self._found[record.digest.hex()] = (path, record.offset)

    def _connect(self) -> dict[str, int]:
        try:
            database = sqlite3.connect(self._path, timeout=0.5, check_same_thread=False)
            os.chmod(self._path, 0o600)
            database.executescript(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
                "CREATE TABLE IF NOT EXISTS blob "
                "(digest TEXT PRIMARY KEY, pack TEXT, offset INTEGER) WITHOUT ROWID;"
                "CREATE TABLE IF NOT EXISTS pack (name TEXT PRIMARY KEY, end INTEGER);"
            )
            covered = dict(database.execute("SELECT name, end FROM pack").fetchall())
        except (sqlite3.Error, OSError):
            return {}
        self._database = database
        return covered
