"""Choose the runs to delete, and delete them. Knows ages, counts and sizes; does not know commands.

A run is renamed out of the list in one step and deleted afterwards: an interrupted prune never leaves half a
run behind, only a folder that the next prune deletes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from playhead import clock
from playhead.errors import StoreError
from playhead.library.catalogue import Entry, entry_at
from playhead.library.run_rows import is_golden
from playhead.redact.vault_notes import forget_vault
from playhead.workspace.blob_collection import pack_size

_TRASH = ".trash-"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """The rules that select runs to delete. `keep`: this many of the newest runs stay, whatever the other rules
    say; as the only rule, all others are deleted. None: the rule is not set.
    """

    older_than_ns: int | None = None
    keep: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A run and its size on disk."""

    entry: Entry
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """A run that may be deleted, and the rule that selected it."""

    entry: Entry
    bytes: int
    why: str


def plan(runs: Sequence[Sized], rules: RetentionRules, now_ns: int) -> list[Doomed]:
    """Return which of `runs` (newest first) may be deleted, oldest first. Pure."""
    total = sum(one.bytes for one in runs)
    going: list[Doomed] = []
    for place, one in reversed(list(enumerate(runs))):
        if is_safe(one.entry) or place < (rules.keep or 0):
            continue
        why = _why(one.entry, rules, total, now_ns)
        if why is not None:
            going.append(Doomed(entry=one.entry, bytes=one.bytes, why=why))
            total -= one.bytes
    return going


def is_safe(entry: Entry) -> bool:
    """Return whether pruning must leave this run alone: it is in progress, marked to keep, or golden."""
    return entry.status == "running" or entry.manifest.keep or is_golden(entry.manifest)


def _why(entry: Entry, rules: RetentionRules, total: int, now_ns: int) -> str | None:
    if rules.older_than_ns is not None and now_ns - _moment(entry) > rules.older_than_ns:
        return "too old"
    if rules.max_bytes is not None and total > rules.max_bytes:
        return "too much"
    alone = rules.older_than_ns is None and rules.max_bytes is None
    return "too many" if alone and rules.keep is not None else None


def _moment(entry: Entry) -> int:
    """Return when the run began. If its manifest does not say so, return when its folder was last changed."""
    if entry.manifest.started_ns:
        return entry.manifest.started_ns
    try:
        return entry.path.stat().st_mtime_ns
    except OSError:
        return clock.wall_ns()


def weighed(found: Iterable[Entry], *, needed: bool) -> list[Sized]:
    """`needed`: sizes are required; computing them reads the status of every file of every run."""
    return [Sized(entry=one, bytes=run_size(one.path) if needed else 0) for one in found]


def run_size(run: Path) -> int:
    """Return the bytes of a run: its tape, and the file contents that this run stored first."""
    return size_of(run) + pack_size(run.parent.parent, run.name)


def size_of(run: Path) -> int:
    """Return the bytes of all files below a folder. Files that are deleted meanwhile count as 0."""
    total = 0
    folders = [str(run)]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                for one in found:
                    if one.is_dir(follow_symlinks=False):
                        folders.append(one.path)
                    else:
                        total += one.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


def remove(home: Path, going: Iterable[Doomed]) -> Iterator[Doomed]:
    """Delete these runs, and yield each that is deleted. A run stays if it was started or marked to keep since
    the plan was made.
    """
    return remove_all(home, (one for one in going if not is_safe(entry_at(one.entry.path))))


def remove_all(home: Path, going: Iterable[Doomed]) -> Iterator[Doomed]:
    """Delete these runs without further checks, and yield each that is deleted."""
    trash = home / f"{_TRASH}{clock.stamp(clock.wall_ns())}-{clock.pid()}"
    trash.mkdir(mode=0o700, exist_ok=True)
    try:
        for one in going:
            moved = trash / one.entry.id
            try:
                one.entry.path.rename(moved)
            except FileNotFoundError:
                continue  # another process was faster
            except OSError as error:
                why = error.strerror or str(error)
                raise StoreError(f"{one.entry.path} cannot be deleted ({why}).") from error
            forget_vault(str(one.entry.path))
            _empty(moved)
            yield one
    finally:
        _empty(trash)


def clear_rubbish(home: Path) -> int:
    """Delete the remains of an interrupted prune. Return the number of bytes."""
    freed = 0
    for trash in home.glob(f"{_TRASH}*"):
        if not _is_in_use(trash):
            freed += size_of(trash)
            _empty(trash)
    return freed


def _is_in_use(trash: Path) -> bool:
    """Return whether another prune is running: its folder has its pid in the name."""
    pid = trash.name.rpartition("-")[2]
    return pid.isdigit() and clock.process_birth(int(pid)) is not None


def _empty(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(
            f"{folder} cannot be removed ({why}); the next prune tries again."
        ) from error
