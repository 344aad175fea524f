"""Snapshot the workspace at the start of a run: an entry per file, with its content in the pool.

Knows the order of steps: walk, compare with the last run in this folder, store new contents. A second run in
the same folder reads only files whose size, times or inode differ.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from stat import S_ISDIR
from typing import Any, NamedTuple

from playhead import clock
from playhead.errors import StoreError
from playhead.workspace.blobs.pool import Pool, PoolWriter, make_private
from playhead.workspace.capture import Capture
from playhead.workspace.chosen_files import (
    LARGEST_IGNORED,
    LONGEST_S,
    MOST_ENTRIES,
    MOST_NAMED,
    ChosenFiles,
    LeftOut,
    TrackedFolders,
    why_refused,
)
from playhead.workspace.git_objects import object_names
from playhead.workspace.known_files import (
    FolderListings,
    KnownFiles,
    SavedFiles,
    Stamp,
    StatIndex,
)
from playhead.workspace.tree_listing import FOLDER, FileEntry, encode_listing, shown
from playhead.workspace.watch.inotify import is_silent

_PACKS = b".git/objects/pack/"
# The size of an entry.
_SIZE = itemgetter(1)


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
    # The names in each folder, for the next snapshot. None: the file system's times do not tell.
    listings: FolderListings | None = None

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
    known = StatIndex(pool.folder, folder, names).load()
    stores = tuple(os.fsencode(os.path.realpath(one)) for one in excluded)
    tracked = TrackedFolders(known.index_stamp, known.tracked)
    selection = ChosenFiles(folder, stores, tracked, only=names)
    capture = Capture(folder, writer, secrets=secrets, tracked=lambda: selection.tracked)
    state = WorkspaceState(selection, capture)
    state.listings = None if is_silent(folder) else FolderListings(known, folder)
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
        bytes=sum(map(_SIZE, state.entries.values())),
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
    walk = state.selection.walk(
        entering=entering, left_out=left_out.append, listings=state.listings
    )
    found = list(islice(walk, MOST_ENTRIES + 1))
    same = 0 if state.listings is None else state.listings.same_count
    if len(found) + same > MOST_ENTRIES:
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
    entries, stamps = state.entries, state.stamps
    if state.listings is not None:
        state.listings.take_same(entries, stamps)
        for path, inode in state.listings.linked():
            note_link(state, path, inode)
    rest: list[tuple[bytes, os.stat_result]] = []
    folders: set[bytes] = set()
    for path, status in seen:
        mode = status.st_mode
        if S_ISDIR(mode):
            entries[path] = FileEntry(mode, 0, 0, FOLDER)
            folders.add(b"%o %s" % (mode, path))
            continue
        if status.st_nlink > 1:
            note_link(state, path, status.st_ino)
        same = known.same_entry(path, status)
        if same is None:
            rest.append((path, status))
        else:
            entries[path], stamps[path] = same, (status.st_ino, status.st_ctime_ns)
    is_unchanged = not rest and len(stamps) == known.count and folders == known.modes
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
            stamps[path] = _stamp_after(state, path, status)
    return is_unchanged


def _stamp_after(state: WorkspaceState, path: bytes, status: os.stat_result) -> Stamp:
    """Return the stamp of a file that has been captured. The pool links packs, which changes their ctime: with the
    earlier stamp, the next snapshot would read them again.
    """
    if path.startswith(_PACKS):
        with suppress(OSError):
            status = os.lstat(os.path.join(state.root, path))
    return status.st_ino, status.st_ctime_ns


def note_link(state: WorkspaceState, path: bytes, inode: int) -> None:
    """Remember a file that has several names. Objects of git never change, so they are skipped."""
    if not path.startswith(b".git/objects/"):
        state.links.setdefault(inode, set()).add(path)


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


def save_known(pool: Pool, state: WorkspaceState) -> None:
    """Save the files of a workspace for the next snapshot. Best effort: without them it reads every file."""
    tracked = state.selection.tracked_folders
    try:
        tree = state.tree
        if state.is_changed:
            tree = state.capture.writer.put(encode_listing(state.entries), tree)
        index = StatIndex(pool.folder, state.root, state.selection.only)
        make_private(index.folder)
        index.save(
            SavedFiles(
                entries=state.entries,
                stamps=state.stamps,
                tree=tree,
                index_stamp=tracked.stamp,
                tracked=tracked.folders,
                listings=state.listings,
                largest=LARGEST_IGNORED,
            )
        )
    except OSError:
        return
