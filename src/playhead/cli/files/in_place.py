"""Change the files of a real folder, and keep the old files for an undo. Shared by `checkout` and `fork --apply`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

import click

from playhead import clock
from playhead.errors import PlayheadError, UsageError
from playhead.tape.manifest import read_manifest
from playhead.tape.origin import is_own
from playhead.views.text.safe import one_line
from playhead.workspace.blob_collection import note_undo, undo_root
from playhead.workspace.blobs.pool import Pool, PoolWriter
from playhead.workspace.chosen_files import LeftOut
from playhead.workspace.restore import Read, apply_effects
from playhead.workspace.snapshot import take_snapshot
from playhead.workspace.tree_listing import Change, FileEntry, Tree, decode_listing, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFiles:
    """The files of a folder before it is changed: in the pool, under the name `tree`."""

    root: str
    tree: str
    entries: Tree


def check_own(run: Path) -> None:
    """Check that the tape is the user's own: it names the folder that would be changed. UsageError: it is another
    person's.
    """
    if not is_own(run, read_manifest(run)):
        raise UsageError(
            f"Another person recorded {run.name}, so Playhead does not change the folder that its tape names. "
            "To get its files in a new folder: `playhead checkout RUN --at N DIR`."
        )


def keep_files(home: Path, root: str) -> KeptFiles:
    """Store the current files of a folder, so that `checkout --undo` can restore them."""
    pool = Pool(home)
    writer = PoolWriter(pool, f"undo-{clock.new_run_id(clock.wall_ns())}")
    Path(root).mkdir(parents=True, exist_ok=True)
    snapshot, state = take_snapshot(root, pool, writer, excluded=(str(home),))
    writer.close()
    note_undo(home, snapshot.tree, root)
    return KeptFiles(root=root, tree=snapshot.tree, entries=state.entries)


def kept_tree(home: Path, name: str) -> tuple[str | None, dict[bytes, FileEntry]]:
    """The folder and the files that `keep_files` stored under a name. UsageError: there are none."""
    try:
        return undo_root(home, name), decode_listing(Pool(home).read(name))
    except PlayheadError:
        raise UsageError(
            f"The store has no files under the name {name[:70]!r}; use the one that --in-place printed."
        ) from None


def change_files(
    kept: KeptFiles, changes: Sequence[Change], read: Read, what: str, run: str
) -> None:
    """Apply changes to the folder, and print how to undo them.

    Files that an undo could not restore stay as they are.
    """
    unkept = _unkept_paths(kept, changes)
    made = tuple(one for one in changes if not _is_at_or_below(one.path, unkept))
    undo = f"Undo: playhead checkout {run} --in-place --undo {kept.tree}"
    try:
        missing = apply_effects(kept.root, made, read)
    except OSError:
        click.echo(f"{kept.root}: stopped in the middle of {len(made):,} changes.")
        click.echo(undo)
        raise
    click.echo(f"{kept.root}: {len(made) - len(missing):,} paths changed, {what}.")
    click.echo(undo)
    print_missing(missing)
    if unkept:
        click.echo(
            "Not changed, because their content cannot be stored, so an undo could not restore it: "
            f"{_first_names(sorted(unkept))}.",
            err=True,
        )


def _unkept_paths(kept: KeptFiles, changes: Sequence[Change]) -> set[bytes]:
    """Return the files among the changes that are in the folder, and whose content `keep_files` did not store: secrets,
    large files, files that the snapshot leaves out, sockets.
    """
    found = set[bytes]()
    for change in changes:
        is_folder = change.after is not None and change.after.is_folder
        path = Path(kept.root, os.fsdecode(change.path))
        with suppress(OSError):
            mode = path.lstat().st_mode
            if S_ISDIR(mode):
                # A deleted folder stays if it has other files. A file can only take the place of an empty folder.
                if change.after is not None and not is_folder and not _has_only_kept(path, kept):
                    found.add(change.path)
            elif not _is_kept(change.path, kept):
                found.add(change.path)
    return found


def _has_only_kept(folder: Path, kept: KeptFiles) -> bool:
    below = (Path(top, name) for top, _, names in os.walk(folder) for name in names)
    return all(_is_kept(os.fsencode(one.relative_to(kept.root)), kept) for one in below)


def _is_kept(path: bytes, kept: KeptFiles) -> bool:
    entry = kept.entries.get(path)
    return entry is not None and entry.is_stored


def _is_at_or_below(path: bytes, paths: set[bytes]) -> bool:
    while path:
        if path in paths:
            return True
        path = path.rpartition(b"/")[0]
    return False


def print_missing(missing: Sequence[LeftOut]) -> None:
    if missing:
        names = _first_names([one.path for one in missing])
        click.echo(f"Not restored, because their content is not on the tape: {names}.", err=True)


def _first_names(paths: Sequence[bytes]) -> str:
    names = ", ".join(one_line(shown(one), 60) for one in paths[:5])
    return f"{names} and {len(paths) - 5:,} more" if len(paths) > 5 else names
