"""`playhead checkout`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead import clock
from playhead.cli.common import run_argument, store_option
from playhead.cli.files.file_runs import FileRun, open_file_run
from playhead.errors import PlayheadError, UsageError
from playhead.story.file_steps import moment_after
from playhead.views.text.safe import one_line
from playhead.workspace.blob_collection import note_undo
from playhead.workspace.blobs.pool import PoolWriter
from playhead.workspace.history import reader_of
from playhead.workspace.limits import LeftOut
from playhead.workspace.restore import Read, apply_effects, restore_tree
from playhead.workspace.snapshot import take_snapshot
from playhead.workspace.tree_listing import Change, FileEntry, between, decode_listing, shown


@click.command("checkout")
@run_argument
@click.option("--at", type=click.IntRange(min=0), metavar="N", help="The step. Default: the last.")
@click.option("--in-place", is_flag=True, help="Change the project folder itself; can be undone.")
@click.option("--undo", metavar="TREE", help="Undo --in-place: the name that it printed.")
@store_option
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def command(
    *,
    run: str,
    at: int | None,
    in_place: bool,
    undo: str | None,
    store: Path | None,
    folder: Path | None,
) -> None:
    """Restore the files of a run as they were after step N.

    \b
    playhead checkout last --at 12 /tmp/before   into a new folder
    playhead checkout last --at 12               into ./RUN-at-12
    playhead checkout last --at 12 --in-place    in the project folder itself

    Bytes, modes, times, symbolic links, empty folders and .git come back. --in-place stores the files
    that are there first, and prints how to undo it.
    """
    if in_place and folder is not None:
        raise click.UsageError("--in-place restores the run's own folder; leave DIR out.")
    found = open_file_run(store, run)
    if undo is not None:
        stored = _stored_tree(found, undo)
        _restore_in_place(found, stored, reader_of(found.history.pool, stored), "undone")
        return
    moment = None if at is None else moment_after(found.story, at)
    tree = found.history.at(moment)
    step = found.story.totals.calls if at is None else at
    if in_place:
        _restore_in_place(found, tree, found.history.content, f"at step {step}")
        return
    target = folder or Path(f"{found.story.manifest.run}-at-{step}")
    missing = restore_tree(tree, str(target), found.history.content)
    files = sum(not entry.is_folder for entry in tree.values()) - len(missing)
    click.echo(f"{target}: {files:,} files as they were after step {step}.")
    _say_missing(missing)


def _stored_tree(found: FileRun, name: str) -> dict[bytes, FileEntry]:
    try:
        return decode_listing(found.history.pool.read(name))
    except PlayheadError:
        raise UsageError(
            f"The store has no files under the name {name[:70]!r}; use the one that --in-place printed."
        ) from None


def _is_same_content(change: Change, now: Read, then: Read) -> bool:
    """Content may be known as an object of git in one tree and as a blob in the other."""
    before, after = change.before, change.after
    if before is None or after is None or not (before.is_file and after.is_file):
        return False
    is_alike = (before.mode, before.size) == (after.mode, after.size)
    if not (is_alike and before.is_stored and after.is_stored):
        return False
    return bool(before.git_object) != bool(after.git_object) and now(before) == then(after)


def _restore_in_place(
    found: FileRun, tree: dict[bytes, FileEntry], reader: Read, what: str
) -> None:
    """Change only files that differ, after storing those that are there."""
    start = next(one for one in found.history.starts if one.tree)
    home = found.path.parent.parent
    writer = PoolWriter(found.history.pool, f"undo-{clock.new_run_id(clock.wall_ns())}")
    Path(start.root).mkdir(parents=True, exist_ok=True)
    snapshot, state = take_snapshot(start.root, found.history.pool, writer, excluded=(str(home),))
    writer.close()
    note_undo(home, snapshot.tree)
    now, then = reader_of(found.history.pool, state.entries), reader
    changes = tuple(
        one for one in between(state.entries, tree) if not _is_same_content(one, now, then)
    )
    missing = apply_effects(start.root, changes, then)
    click.echo(f"{start.root}: {len(changes):,} paths changed, {what}.")
    run = found.story.manifest.run
    click.echo(f"Undo: playhead checkout {run} --in-place --undo {snapshot.tree}")
    _say_missing(missing)


def _say_missing(missing: list[LeftOut]) -> None:
    if missing:
        names = ", ".join(one_line(shown(one.path), 60) for one in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        click.echo(
            f"Not restored, because their content is not on the tape: {names}{more}.", err=True
        )
