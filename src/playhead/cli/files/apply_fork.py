"""`fork --apply`: show the files of a fork as a patch, then change the real ones."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from playhead.cli.files.in_place import change_files, keep_files
from playhead.story.files.file_steps import unified_patch
from playhead.views.text.file_changes import print_diff
from playhead.views.text.safe import one_line
from playhead.workspace.fork_result import ForkedFiles
from playhead.workspace.tree_listing import shown


def apply_fork(files: ForkedFiles, run: Path, *, ask: bool) -> None:
    """Show the patch on stderr, then change the files: stdout belonged to the program."""
    for change in files.changes:
        if not change.path.startswith(b".git/"):
            print_diff(unified_patch(change, files.read), stderr=True)
    repository = sum(one.path.startswith(b".git/") for one in files.changes)
    if repository:
        click.echo(f".git: {repository:,} files", err=True)
    if files.keeps_git:
        click.echo(
            "The repository (.git) is not changed, because it was used since the recording.",
            err=True,
        )
    if files.conflicts:
        named = ", ".join(one_line(shown(one), 60) for one in files.conflicts[:5])
        click.echo(
            f"Not changed, because they were edited since the recording: {named}.",
            err=True,
        )
    if not files.changes:
        click.echo(f"{files.root}: nothing to change.", err=True)
        return
    if ask and not _agrees(files.root):
        click.echo("Nothing was changed.", err=True)
        return
    kept = keep_files(run.parent.parent, files.root)
    change_files(kept, files.changes, files.read, "as the fork left them", run.name)


def _agrees(root: str) -> bool:
    if not sys.stdin.isatty():
        click.echo("There is no terminal to ask on; add --yes to apply this patch.", err=True)
        return False
    return click.confirm(f"Change {root} like this?", err=True)
