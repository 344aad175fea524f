"""Change the files of a real folder, and keep the old files for an undo. Shared by `checkout` and `fork --apply`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
            f"{run.name} was recorded elsewhere, so its files are not put into a folder that it names. "
            "To see them: `playhead checkout RUN --at N DIR`."
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
    """Apply changes to the folder, and print how to undo them."""
    missing = apply_effects(kept.root, tuple(changes), read)
    click.echo(f"{kept.root}: {len(changes):,} paths changed, {what}.")
    click.echo(f"Undo: playhead checkout {run} --in-place --undo {kept.tree}")
    print_missing(missing)


def print_missing(missing: Sequence[LeftOut]) -> None:
    if missing:
        names = ", ".join(one_line(shown(one.path), 60) for one in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        click.echo(
            f"Not restored, because their content is not on the tape: {names}{more}.", err=True
        )
