"""Snapshot the workspace at the start of a run: an entry per file, with its content in the pool.

Knows the order of steps: walk, compare with the last run in this folder, store new contents. A second run in
the same folder reads only files whose size, times or inode differ.
"""

from __future__ import annotations

import gc
import hashlib
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from stat import S_ISDIR
from typing import Any, NamedTuple

from playhead import clock
from playhead.errors import StoreError
from playhead.workspace.blobs.pool import Pool, PoolWriter, make_private
from playhead.workspace.capture import Capture
from playhead.workspace.chosen_files import (
    LONGEST_S,
    MOST_ENTRIES,
    MOST_NAMED,
    ChosenFiles,
    LeftOut,
    TrackedFolders,
    why_refused,
)
from playhead.workspace.git_objects import object_names
from playhead.workspace.tree_listing import FOLDER, FileEntry, encode_listing, shown

_PACKS = b".git/objects/pack/"
# A file that changed this shortly before it was read may change again within the same timestamp.
_RACY_NS = 20_000_000
_MAGIC = b"PLAYHEAD-3"
# Mode, size, mtime, inode and ctime of a file.
_NUMBERS = struct.Struct("<IQqQq")

# Inode and time of the last change of status: with size and mtime, the version of a file.
Stamp = tuple[int, int]


@dataclass(slots=True)
class WorkspaceState:
    """The known state of a workspace: its entries, and the stamps by which a change is detected."""

    selection: ChosenFiles
    capture: Capture
    entries: dict[bytes, FileEntry] = field(default_factory=dict)
    stamps: dict[bytes, Stamp] = field(default_factory=dict)
    # Inode → the paths of files with several links: a write is reported under one name only.
    links: dict[int, set[bytes]] = field(default_factory=dict)
    tree: str = ""
    # Whether `entries` differ from the listing `tree`.
    is_changed: bool = False

    @property
    def root(self) -> bytes:
        return self.selection.root


class Snapshot(NamedTuple):
    """A workspace on the tape."""

    root: str
    tree: str
    entries: int
    bytes: int
    left_out: tuple[LeftOut, ...]
    took_ns: int
    git: bool

    def as_data(self) -> dict[str, Any]:
        named = [{"path": shown(o.path), "why": o.why} for o in self.left_out[:MOST_NAMED]]
        return {
            "root": self.root,
            "tree": self.tree,
            "entries": self.entries,
            "bytes": self.bytes,
            "git": self.git,
            "left_out": named,
            "left_out_count": len(self.left_out),
            "took_ns": self.took_ns,
        }


def take_snapshot(
    root: str,
    pool: Pool,
    writer: PoolWriter,
    *,
    excluded: tuple[str, ...] = (),
    secrets: Callable[[], tuple[bytes, ...]] = tuple,
    entering: Callable[[bytes], object] | None = None,
    only: bytes | None = None,
) -> tuple[Snapshot, WorkspaceState]:
    """Take the snapshot of a folder. StoreError: it cannot be a workspace. OSError: the store is full.

    `only`: the one name in the folder that counts.
    """
    why = why_refused(root) if only is None else None
    if why is not None:
        raise StoreError(f"{root} is not recorded as a workspace: {why}.")
    # Hundreds of thousands of small objects are created, and none of them becomes garbage: the garbage collector would
    # take a third of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _taken(
            root, pool, writer, excluded=excluded, secrets=secrets, entering=entering, only=only
        )
    finally:
        if collects:
            gc.enable()


def _taken(
    root: str,
    pool: Pool,
    writer: PoolWriter,
    *,
    excluded: tuple[str, ...],
    secrets: Callable[[], tuple[bytes, ...]],
    entering: Callable[[bytes], object] | None,
    only: bytes | None,
) -> tuple[Snapshot, WorkspaceState]:
    started = clock.mono_ns()
    folder = os.fsencode(os.path.realpath(root))
    names = None if only is None else frozenset((only,))
    known = StatIndex(pool, folder, names).load()
    stores = tuple(os.fsencode(os.path.realpath(one)) for one in excluded)
    selection = ChosenFiles(folder, stores, known.tracked, only=names)
    capture = Capture(folder, writer, secrets=secrets, tracked=lambda: selection.tracked)
    state = WorkspaceState(selection, capture)
    seen = _seen(state, entering)
    is_unchanged = _capture_all(state, seen, known, started)
    # Listing 50,000 files takes a sixth of the time of a snapshot.
    if is_unchanged and known.tree is not None and known.tree in pool:
        state.tree = known.tree
    else:
        state.tree = writer.put(encode_listing(state.entries), known.tree)
    left_out = tuple(sorted(capture.left_out, key=lambda one: one.path))
    capture.left_out = []
    snapshot = Snapshot(
        root=os.fsdecode(folder),
        tree=state.tree,
        entries=len(state.entries),
        bytes=sum(entry.size for entry in state.entries.values()),
        left_out=left_out,
        took_ns=clock.mono_ns() - started,
        git=selection.has_index,
    )
    return snapshot, state


def capture_known(state: WorkspaceState) -> None:
    """Store the few files that a selection names."""
    for path, status in state.selection.walk():
        entry = state.capture.entry(path, status, None)
        if entry is not None:
            state.entries[path] = entry
            state.stamps[path] = (status.st_ino, status.st_ctime_ns)
    state.tree = state.capture.writer.put(encode_listing(state.entries))


def _seen(
    state: WorkspaceState, entering: Callable[[bytes], object] | None
) -> list[tuple[bytes, os.stat_result]]:
    left_out = state.capture.left_out
    walk = state.selection.walk(entering=entering, left_out=left_out.append)
    found = list(islice(walk, MOST_ENTRIES + 1))
    if len(found) > MOST_ENTRIES:
        raise StoreError(
            f"{os.fsdecode(state.root)} is not recorded as a workspace: it has more than "
            f"{MOST_ENTRIES:,} files."
        )
    return found


def _capture_all(
    state: WorkspaceState, seen: list[tuple[bytes, os.stat_result]], known: KnownFiles, started: int
) -> bool:
    """Capture all files. Return whether everything is as the last run left it.

    The repository's own files come first: afterwards it is known which objects can be restored.
    """
    latest = started + int(LONGEST_S * 1e9)
    entries, stamps, files = state.entries, state.stamps, known.files
    rest: list[tuple[bytes, os.stat_result]] = []
    folders: set[bytes] = set()
    for path, status in seen:
        mode = status.st_mode
        if S_ISDIR(mode):
            entries[path] = FileEntry(mode, 0, 0, FOLDER)
            folders.add(b"%o %s" % (mode, path))
            continue
        if status.st_nlink > 1:
            note_link(state, path, status)
        old = files.get(path)
        if old is not None:
            row, name = old
            size, mtime = status.st_size, status.st_mtime_ns
            # One comparison of tuples: this loop runs for every file of the workspace.
            if (mode, size, mtime, status.st_ino, status.st_ctime_ns) == row:
                entries[path], stamps[path] = FileEntry(mode, size, mtime, name), row[3:]
                continue
        rest.append((path, status))
    is_unchanged = not rest and len(stamps) == known.count and folders == known.folders
    rest.sort(key=lambda one: (not one[0].startswith(b".git/"), one[0]))
    is_ready = False
    for path, status in rest:
        if not is_ready and not path.startswith(b".git/"):
            _find_objects(state)
            is_ready = True
        if clock.mono_ns() > latest:
            state.capture.left_out.append(LeftOut(path, "took too long"))
            continue
        old_entry = known.entry(path)
        entry_now = state.capture.entry(path, status, old_entry)
        if entry_now is not None:
            entries[path] = entry_now
            stamps[path] = (status.st_ino, status.st_ctime_ns)
    return is_unchanged


def note_link(state: WorkspaceState, path: bytes, status: os.stat_result) -> None:
    """Remember a file that has several names. Objects of git never change, so they are skipped."""
    if not path.startswith(b".git/objects/"):
        state.links.setdefault(status.st_ino, set()).add(path)


def _find_objects(state: WorkspaceState) -> None:
    """Collect the names of all objects whose pack or file is in the snapshot."""
    found = state.capture.objects
    read = state.capture.writer.pool.read
    for path, entry in state.entries.items():
        if not path.startswith(b".git/objects/") or not entry.is_stored:
            continue
        if path.startswith(_PACKS):
            if path.endswith(b".idx") and path[:-4] + b".pack" in state.entries:
                found |= object_names(read(entry.id))
        elif len(path) == 54:
            try:
                found.add(bytes.fromhex(path[13:15].decode() + path[16:].decode()))
            except ValueError:
                continue


# Mode, size, mtime, inode and ctime.
StatRow = tuple[int, int, int, int, int]


@dataclass(slots=True)
class KnownFiles:
    """The files as the last run in this folder saw them at its end."""

    # Path → its numbers, and the name of its content.
    files: dict[bytes, tuple[StatRow, str]] = field(default_factory=dict)
    # The listing of that moment. It may have more files than `files`: those whose content is not stored.
    tree: str | None = None
    tracked: TrackedFolders | None = None
    # Modes and paths of folders, and the number of files in the listing.
    folders: set[bytes] = field(default_factory=set)
    count: int = -1

    def entry(self, path: bytes) -> FileEntry | None:
        found = self.files.get(path)
        return None if found is None else FileEntry(*found[0][:3], found[1])


class StatIndex:
    """A cache of entries with their stamps, one file per workspace, in the store."""

    def __init__(self, pool: Pool, root: bytes, only: frozenset[bytes] | None = None) -> None:
        whole = root if only is None else b"\0".join((root, *sorted(only)))
        name = hashlib.sha256(whole).hexdigest()[:32]
        self._folder = os.path.join(pool.folder, "workspaces")
        self._path = os.path.join(self._folder, f"{name}.index")

    def load(self) -> KnownFiles:
        """Load the cache. It is stored in columns instead of records: 50,000 files are decoded in a tenth of the
        time.
        """
        try:
            with open(self._path, "rb") as file:
                head, _, rest = file.read().partition(b"\0")
            magic, tree, count, whole, stamp, crc = head.split(b" ")
            if magic != _MAGIC or crc != _crc(rest):
                return KnownFiles()
            size = int(count) * _NUMBERS.size
            rows = _NUMBERS.iter_unpack(rest[:size])
            names, paths, tracked, folders = rest[size:].split(b"\0\0")
            pairs = zip(rows, names.decode().split(" "), strict=False)
            files = dict(zip(paths.split(b"\0"), pairs, strict=False))
        except (OSError, ValueError, struct.error):
            return KnownFiles()
        return KnownFiles(
            files=files,
            tree=tree.decode(),
            tracked=TrackedFolders(stamp, frozenset(tracked.split(b"\0")) - {b""}),
            folders=set(folders.split(b"\0")) - {b""},
            count=int(whole),
        )

    def save(self, state: WorkspaceState) -> None:
        """Save the cache. Best effort: without it the next snapshot reads every file."""
        stamps = state.stamps
        racy_from = clock.wall_ns() - _RACY_NS
        kept = [
            (path, entry, stamps[path])
            for path, entry in state.entries.items()
            if path in stamps and stamps[path][1] < racy_from and entry.is_stored
        ]
        numbers = b"".join(
            _NUMBERS.pack(entry.mode, entry.size, entry.mtime_ns, *stamp)
            for _, entry, stamp in kept
        )
        names = " ".join(entry.id for _, entry, _ in kept).encode()
        tracked = state.selection.tracked_folders
        paths = b"\0".join(path for path, _, _ in kept)
        folders = [
            b"%o %s" % (entry.mode, path)
            for path, entry in state.entries.items()
            if entry.is_folder
        ]
        lists = (names, paths, b"\0".join(tracked.folders), b"\0".join(folders))
        rest = numbers + b"\0\0".join(lists)
        whole = len(state.entries) - len(folders)
        part = f"{self._path}.{os.getpid()}.part"
        try:
            tree = state.tree
            if state.is_changed:
                tree = state.capture.writer.put(encode_listing(state.entries), tree)
            counts = (b"%d" % len(kept), b"%d" % whole)
            head = (_MAGIC, tree.encode(), *counts, tracked.stamp, _crc(rest))
            make_private(self._folder)
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(b" ".join(head) + b"\0" + rest)
            os.replace(part, self._path)
        except OSError:
            return


def _crc(data: bytes) -> bytes:
    return b"%08x" % zlib.crc32(data)
