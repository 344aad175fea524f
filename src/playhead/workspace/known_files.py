"""The files of a workspace as the last run in it left them: a cache, so that the next snapshot reads only what changed.

Knows the status of files and folders; reads no content. A file with the same mode, size, times and inode has the same
content. A folder's mtime and ctime change when a name in it is added, removed or renamed, so a folder with the same
status has the same names: it is not listed again, but each file in it is still examined.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from stat import S_ISDIR
from typing import NamedTuple

from playhead import clock
from playhead.host import native_core
from playhead.workspace.tree_listing import FileEntry

_MAGIC = b"PLAYHEAD-5"
# A file or folder that changed this shortly before it was read may have changed again within the same timestamp.
RACY_NS = 20_000_000

# Mode, size, mtime, inode and ctime.
StatRow = tuple[int, int, int, int, int]
_ROW = struct.Struct("<IQqQq")
# The row of a folder, and the numbers of paths in its group and of those that are examined one by one.
_FOLDER = struct.Struct(f"{_ROW.size}sII")
# Inode and time of the last change of status: with size and mtime, the version of a file.
Stamp = tuple[int, int]

# The results of `compare_status`.
SAME, LINKED, DIFFERS = 0, 1, 2


def stat_row(status: os.stat_result) -> StatRow:
    return (
        status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns
    )  # fmt: skip


def compare_status(start: bytes, paths: bytes, rows: bytes) -> bytes:
    """Compare files with their known status. Return a flag per path; `LINKED` is a file with several names.

    `start` is put before each path, and each path ends with NUL. The native core has a twin of this function.
    """
    flags = bytearray()
    for path, row in zip(paths.split(b"\0")[:-1], _ROW.iter_unpack(rows), strict=True):
        flag = DIFFERS
        with suppress(OSError):
            status = os.lstat(start + path)
            if stat_row(status) == row:
                is_linked = status.st_nlink > 1 and not S_ISDIR(status.st_mode)
                flag = LINKED if is_linked else SAME
        flags.append(flag)
    return bytes(flags)


class KnownFolder(NamedTuple):
    """A folder whose names are known. Its files from `first` to `end` are compared together, those in `single` and
    its folders one by one.
    """

    row: bytes
    first: int
    end: int
    single: list[bytes]


@dataclass(frozen=True)
class KnownFiles:
    """The files as the last run in this folder saw them at its end. The lists have the same order."""

    paths: list[bytes] = field(default_factory=list)
    rows: list[StatRow] = field(default_factory=list)
    entries: list[FileEntry] = field(default_factory=list)
    # `rows` as they are in the cache.
    packed: bytes = b""
    # The listing of that moment. It may have more files than `paths`: those whose content is not stored.
    tree: str | None = None
    # The version of git's index, and the folders with tracked files in it.
    index_stamp: bytes = b""
    tracked: frozenset[bytes] = frozenset()
    # Modes and paths of folders, and the number of files in the listing.
    modes: frozenset[bytes] = frozenset()
    count: int = -1
    folders: dict[bytes, KnownFolder] = field(default_factory=dict)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {path: place for place, path in enumerate(self.paths)}

    def entry(self, path: bytes) -> FileEntry | None:
        place = self._places.get(path)
        return None if place is None else self.entries[place]

    def same_entry(self, path: bytes, status: os.stat_result) -> FileEntry | None:
        """Return the entry of a file that has not changed."""
        place = self._places.get(path)
        if place is None or self.rows[place] != stat_row(status):
            return None
        return self.entries[place]


class FolderListings:
    """Finds the files that need not be looked at in this run, and notes the folders that were listed for the next."""

    __slots__ = ("_began", "_compare", "_folders", "_known", "_linked", "_same", "_start")

    def __init__(self, known: KnownFiles, root: bytes) -> None:
        self._known = known
        self._start = root + b"/"
        core = native_core.load()
        self._compare = compare_status if core is None else core.compare_status
        self._began = clock.wall_ns()
        # Folder → its row and the number of its names.
        self._folders = {
            path: (one.row, one.end - one.first + len(one.single))
            for path, one in known.folders.items()
        }
        # Files that are the same: from one place to another in the lists of `known`.
        self._same: list[tuple[int, int]] = []
        self._linked: list[int] = []

    def to_examine(self, folder: bytes, *, is_each: bool) -> list[bytes] | None:
        """Return the paths in a folder that may have changed. None: its names are not known.

        `is_each`: examine every file, even the unchanged ones.
        """
        known = self._known.folders.get(folder)
        if known is None:
            return None
        _, first, end, single = known
        if is_each:
            is_same = self._compare(self._start, folder + b"\0", known.row) == b"\0"
            return [*self._known.paths[first:end], *single] if is_same else None
        paths = b"\0".join((folder, *self._known.paths[first:end], b""))
        rows = known.row + self._known.packed[first * _ROW.size : end * _ROW.size]
        flags = self._compare(self._start, paths, rows)
        if flags[0] != SAME:
            return None
        if not flags.strip(b"\0"):
            self._same.append((first, end))
            return single
        changed = list(single)
        for place, flag in enumerate(flags[1:], first):
            if flag == DIFFERS:
                changed.append(self._known.paths[place])
                continue
            self._same.append((place, place + 1))
            if flag == LINKED:
                self._linked.append(place)
        return changed

    def note(self, folder: bytes, status: os.stat_result, count: int) -> None:
        """Note that a folder was listed. `status` is from before it was listed."""
        if max(status.st_mtime_ns, status.st_ctime_ns) < self._began - RACY_NS:
            self._folders[folder] = _ROW.pack(*stat_row(status)), count
        else:
            self._folders.pop(folder, None)

    @property
    def same_count(self) -> int:
        return sum(end - first for first, end in self._same)

    def take_same(self, entries: dict[bytes, FileEntry], stamps: dict[bytes, Stamp]) -> None:
        """Add the files that are the same."""
        known = self._known
        for first, end in self._same:
            paths = known.paths[first:end]
            entries.update(zip(paths, known.entries[first:end], strict=True))
            stamps.update(zip(paths, [row[3:] for row in known.rows[first:end]], strict=True))

    def linked(self) -> Iterable[tuple[bytes, int]]:
        """Return path and inode of the unchanged files that have several names."""
        return ((self._known.paths[place], self._known.rows[place][3]) for place in self._linked)

    def whole(self, grouped: dict[bytes, list[bytes]]) -> dict[bytes, bytes]:
        """Return folder → row of the folders that have nothing but these paths. In the others something was left
        out, which must be found again.
        """
        return {
            folder: row
            for folder, (row, count) in self._folders.items()
            if count and len(grouped.get(folder, ())) == count
        }


class StatIndex:
    """The cache of one workspace: a file in the store."""

    def __init__(self, store: str, root: bytes, only: frozenset[bytes] | None = None) -> None:
        whole = root if only is None else b"\0".join((root, *sorted(only)))
        name = hashlib.sha256(whole).hexdigest()[:32]
        self.folder = os.path.join(store, "workspaces")
        self._path = os.path.join(self.folder, f"{name}.index")

    def load(self) -> KnownFiles:
        """Load the cache. It is stored in columns instead of records: 50,000 files are decoded in a tenth of the
        time.
        """
        try:
            with open(self._path, "rb") as file:
                head, _, rest = file.read().partition(b"\0")
            magic, crc, tree, index_stamp, count, *sizes = head.split(b" ")
            if magic != _MAGIC or crc != _crc(rest):
                return KnownFiles()
            return _decoded(
                rest, [int(one) for one in sizes], tree.decode(), index_stamp, int(count)
            )
        except (OSError, ValueError, struct.error):
            return KnownFiles()

    def save(self, new: SavedFiles) -> None:
        """Save the cache. OSError: the store is full."""
        columns = new.columns()
        rest = b"".join(columns)
        numbers = (new.count, *map(len, columns))
        head = (
            _MAGIC,
            _crc(rest),
            new.tree.encode(),
            new.index_stamp,
            *(b"%d" % n for n in numbers),
        )
        part = f"{self._path}.{os.getpid()}.part"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(b" ".join(head) + b"\0" + rest)
        os.replace(part, self._path)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFiles:
    """The files at the end of a run, for the cache."""

    entries: dict[bytes, FileEntry]
    stamps: dict[bytes, Stamp]
    tree: str
    index_stamp: bytes
    tracked: frozenset[bytes]
    listings: FolderListings | None
    # Larger files are always examined one by one: rules that have changed since may leave them out.
    largest: int

    @property
    def count(self) -> int:
        return sum(not one.is_folder for one in self.entries.values())

    def columns(self) -> list[bytes]:
        entries, stamps, largest = self.entries, self.stamps, self.largest
        racy_from = clock.wall_ns() - RACY_NS
        grouped: dict[bytes, list[bytes]] = {}
        for path, entry in entries.items():
            stamp = stamps.get(path)
            is_kept = stamp is not None and stamp[1] < racy_from and entry.is_stored
            if is_kept or entry.is_folder:
                grouped.setdefault(path.rpartition(b"/")[0], []).append(path)
        whole = {} if self.listings is None else self.listings.whole(grouped)
        paths: list[bytes] = []
        single: list[bytes] = []
        rows: list[bytes] = []
        for folder, row in whole.items():
            found = grouped.pop(folder)
            group = [path for path in found if path in stamps and entries[path].size <= largest]
            rest = [path for path in found if path not in stamps or entries[path].size > largest]
            paths += group
            single += rest
            rows.append(_FOLDER.pack(row, len(group), len(rest)))
        paths += [path for path in chain(single, *grouped.values()) if path in stamps]
        kept = [entries[path] for path in paths]
        numbers = [
            _ROW.pack(entry.mode, entry.size, entry.mtime_ns, *stamps[path])
            for path, entry in zip(paths, kept, strict=True)
        ]
        modes = [b"%o %s" % (one.mode, path) for path, one in entries.items() if one.is_folder]
        lists = ((one.id.encode() for one in kept), paths, whole, single, self.tracked, modes)
        return [b"".join(numbers), b"".join(rows), *map(_joined, lists)]


def _decoded(
    rest: bytes, sizes: list[int], tree: str, index_stamp: bytes, count: int
) -> KnownFiles:
    """ValueError, struct.error: it is damaged."""
    columns, at = list[bytes](), 0
    for size in sizes:
        columns.append(rest[at : at + size])
        at += size
    packed, folder_rows, *lists = columns
    ids, paths, names, single, tracked, modes = (one.split(b"\0")[:-1] for one in lists)
    rows: list[StatRow] = list(_ROW.iter_unpack(packed))
    # `tuple.__new__`, because the constructor of a named tuple takes twice as long.
    new = tuple.__new__
    entries = [
        new(FileEntry, (row[0], row[1], row[2], name.decode()))
        for row, name in zip(rows, ids, strict=True)
    ]
    if len(paths) != len(rows):
        raise ValueError("the columns have different lengths")
    folders: dict[bytes, KnownFolder] = {}
    first = at = 0
    for name, (row, files, others) in zip(names, _FOLDER.iter_unpack(folder_rows), strict=True):
        folders[name] = KnownFolder(row, first, first + files, single[at : at + others])
        first, at = first + files, at + others
    return KnownFiles(
        paths=paths,
        rows=rows,
        entries=entries,
        packed=packed,
        tree=tree,
        index_stamp=index_stamp,
        tracked=frozenset(tracked),
        modes=frozenset(modes),
        count=count,
        folders=folders,
    )


def _joined(names: Iterable[bytes]) -> bytes:
    """Each name ends with NUL, so that an empty list and a list of one empty name differ."""
    return b"\0".join((*names, b""))


def _crc(data: bytes) -> bytes:
    return b"%08x" % zlib.crc32(data)
