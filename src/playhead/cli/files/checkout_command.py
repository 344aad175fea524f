"""`playhead checkout`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from playhead.cli.common import store_option
from playhead.cli.files.file_runs import FileRun, open_file_run
from playhead.cli.files.in_place import (
    change_files,
    check_own,
    keep_files,
    kept_tree,
    print_missing,
)
from playhead.cli.run_names import run_argument
from playhead.errors import RunNotFound, UsageError
from playhead.story.files.file_steps import moment_after
from playhead.workspace.history import reader_of
from playhead.workspace.restore import Read, restore_tree
from playhead.workspace.tree_listing import Change, Tree, between


@click.command("checkout")
@run_argument
@click.option("--at", type=click.IntRange(min=0), metavar="N", help="The step. Default: the last.")
@click.option("--in-place", is_flag=True, help="Change the project folder itself; can be undone.")
@click.option("--undo", metavar="TREE", help="Undo --in-place. TREE is the name that it printed.")
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

    Restores bytes, modes, times, symbolic links, empty folders and .git. --in-place first stores the current
    files, and prints how to undo it.
    """
    if in_place and folder is not None:
        raise click.UsageError("--in-place restores the run's own folder; leave DIR out.")
    try:
        found = open_file_run(store, run)
    except RunNotFound as error:
        if folder is None and os.sep in run:
            raise UsageError(
                f"{error} To restore files into a new folder, name the run first: `playhead checkout last {run}`."
            ) from None
        raise
    root = next(one.root for one in found.history.starts if one.tree)
    if undo is not None:
        kept_root, stored = kept_tree(found.home, undo)
        reader = reader_of(found.history.pool, stored)
        _restore_in_place(found, kept_root or root, stored, reader, "undone")
        return
    moment = None if at is None else moment_after(found.story, at)
    tree = found.history.at(moment)
    step = found.story.totals.calls if at is None else at
    if in_place:
        _restore_in_place(found, root, tree, found.history.content, f"now as after step {step}")
        return
    target = folder or Path(f"{found.story.manifest.run}-at-{step}")
    missing = restore_tree(tree, str(target), found.history.content)
    files = sum(not entry.is_folder for entry in tree.values()) - len(missing)
    click.echo(f"{target}: {files:,} files as they were after step {step}.")
    print_missing(missing)
    if gaps := found.history.gaps_until(moment):
        click.echo(
            f"{gaps:,} earlier changes were not recorded: some files may differ from those of the run.",
            err=True,
        )


def _restore_in_place(found: FileRun, root: str, tree: Tree, then: Read, what: str) -> None:
    """Change only files that differ, after storing those that are there."""
    check_own(found.path)
    kept = keep_files(found.home, root)
    now = reader_of(found.history.pool, kept.entries)
    changes = [one for one in between(kept.entries, tree) if not _is_same_content(one, now, then)]
    change_files(kept, changes, then, what, found.story.manifest.run)


def _is_same_content(change: Change, now: Read, then: Read) -> bool:
    """Content may be known as an object of git in one tree and as a blob in the other."""
    before, after = change.before, change.after
    if before is None or after is None or not (before.is_file and after.is_file):
        return False
    is_alike = (before.mode, before.size) == (after.mode, after.size)
    if not (is_alike and before.is_stored and after.is_stored):
        return False
    return bool(before.git_object) != bool(after.git_object) and now(before) == then(after)
