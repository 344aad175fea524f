"""Delete contents that no run of a store needs any more. Knows packs and histories; does not know why runs were
deleted.

Careful rather than thorough: with a run in progress, or a tape that cannot be read, nothing is deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from playhead import clock
from playhead.errors import PlayheadError
from playhead.tape.manifest import status_of
from playhead.tape.reader import Tape
from playhead.workspace.blobs import packs
from playhead.workspace.blobs.packs import Record
from playhead.workspace.blobs.pool import Pool
from playhead.workspace.history import FileHistory, read_history
from playhead.workspace.tree_listing import FileEntry, decode_listing

# Trees of `checkout --in-place`: this folder has one file for each, named after the tree.
UNDO = "undo"
_UNDO_KEPT_NS = 30 * 24 * 3600 * 10**9


def collect(home: Path) -> int:
    """Delete unneeded contents. Return the number of freed bytes."""
    folder = home / "blobs"
    if not folder.is_dir():
        return 0
    try:
        needed = _needed(home)
    except (PlayheadError, OSError):
        return 0
    if needed is None:
        return 0
    found = [(path, list(packs.read_records(str(path)))) for path in folder.glob("packs/*.pack")]
    _add_bases(needed, (record for _, records in found for record in records))
    freed = sum(_shrink(path, records, needed) for path, records in found)
    for path in folder.glob("[0-9a-f][0-9a-f]/*"):
        if path.name not in needed:
            freed += path.stat().st_size
            path.unlink()
    if freed:
        # Both are derived from the packs, and name contents that are deleted.
        for path in (*folder.glob("index.db*"), *folder.glob("workspaces/*.index")):
            path.unlink(missing_ok=True)
    return freed


def note_undo(home: Path, tree: str, root: str = "") -> None:
    """Keep the contents of a tree of the folder `root` for a while, although no run has them."""
    folder = home / "blobs" / UNDO
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / tree).touch(mode=0o600)
    (folder / tree).write_bytes(os.fsencode(root))


def undo_root(home: Path, tree: str) -> str | None:
    """Return the folder whose files were kept under that name. None: the name is not known any more."""
    if "/" in tree:
        return None
    try:
        return os.fsdecode((home / "blobs" / UNDO / tree).read_bytes()) or None
    except OSError:
        return None


def contents_of(history: FileHistory) -> set[str]:
    """Return all contents that a run names."""
    needed: set[str] = set()
    for start in history.starts:
        if start.tree:
            needed.add(start.tree)
            _add(needed, history.start(start.number).values())
    for effect in history.effects:
        for change in effect.changes:
            _add(needed, (one for one in (change.before, change.after) if one is not None))
    return needed


def copy_records(
    home: Path, needed: set[str], target: Path, *, without: AbstractSet[str] = frozenset()
) -> set[str]:
    """Write a pack of these contents of a store, and of the bases of their deltas. Return its contents.

    `without`: contents that the reader of the pack has already.
    """
    found = [
        (path, list(packs.read_records(str(path))))
        for path in sorted((home / "blobs").glob("packs/*.pack"))
    ]
    wanted = set(needed)
    _add_bases(wanted, (record for _, records in found for record in records))
    wanted -= without
    copied: set[str] = set()
    with target.open("wb") as new:
        target.chmod(0o600)
        new.write(packs.MAGIC)
        for path, records in found:
            chosen = [one for one in records if one.digest.hex() in wanted]
            _copy(path, chosen, new)
            these = {one.digest.hex() for one in chosen}
            wanted -= these
            copied |= these
    return copied


def _copy(source: Path, records: Iterable[Record], target: BinaryIO) -> None:
    with source.open("rb") as old:
        for one in records:
            old.seek(one.offset)
            target.write(old.read(one.end - one.offset))


def pool_size(home: Path) -> int:
    """Return the bytes that the contents of a store take on the disk."""
    folder = home / "blobs"
    found = (*folder.glob("packs/*.pack"), *folder.glob("[0-9a-f][0-9a-f]/*"))
    return sum(path.stat().st_size for path in found)


def pack_size(home: Path, run: str) -> int:
    """Return the size of the contents that this run stored first; large files, which runs share, do not count."""
    try:
        return (home / "blobs" / "packs" / f"{run}.pack").stat().st_size
    except OSError:
        return 0


def _needed(home: Path) -> set[str] | None:
    """Return all contents that a run names. None: a run is in progress, and adds to them."""
    needed: set[str] = set()
    pool = Pool(home)
    for run in (home / "runs").iterdir():
        tape = Tape(run)
        if status_of(tape.manifest) == "running":
            return None
        needed |= contents_of(read_history(tape, home))
    for path in (home / "blobs" / UNDO).glob("*"):
        if clock.wall_ns() - path.stat().st_mtime_ns > _UNDO_KEPT_NS:
            path.unlink(missing_ok=True)
            continue
        with suppress(PlayheadError):
            _add(needed, decode_listing(pool.read(path.name)).values())
            needed.add(path.name)
    return needed


def _add(needed: set[str], entries: Iterable[FileEntry]) -> None:
    needed.update(one.id for one in entries if one.is_file)


def _add_bases(needed: set[str], records: Iterable[Record]) -> None:
    """Add the base of each needed delta."""
    bases = {one.digest.hex(): one.base.hex() for one in records if one.kind == packs.DELTA}
    waiting = [bases[one] for one in needed & bases.keys()]
    while waiting:
        one = waiting.pop()
        if one not in needed:
            needed.add(one)
            if one in bases:
                waiting.append(bases[one])


def _shrink(path: Path, records: list[Record], needed: set[str]) -> int:
    """Delete a pack without needed contents; rewrite one if less than half of it is needed."""
    size = path.stat().st_size
    kept = [one for one in records if one.digest.hex() in needed]
    if not kept:
        path.unlink()
        return size
    if sum(one.end - one.offset for one in kept) * 2 > size:
        return 0
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as new:
        part.chmod(0o600)
        new.write(packs.MAGIC)
        _copy(path, kept, new)
    part.replace(path)
    return size - path.stat().st_size
