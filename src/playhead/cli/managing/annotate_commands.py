"""`playhead tag`, `note`, `rename` and `keep`: what people add to a run after it was recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from playhead.cli.common import json_option, print_json, store_option
from playhead.cli.run_names import find_run, named_run_argument, run_argument
from playhead.errors import UsageError
from playhead.library.annotate import change_tags, keep_run, rename_run, write_note
from playhead.library.run_rows import note_of
from playhead.tape.manifest import read_manifest
from playhead.views.text.safe import clean, one_line


@click.command("tag")
@named_run_argument
@click.argument("tags", metavar="[K[=V]]...", nargs=-1)
@click.option("--remove", multiple=True, metavar="K", help="Remove this tag.")
@json_option
@store_option
def tag_command(
    *, run: str, tags: tuple[str, ...], remove: tuple[str, ...], as_json: bool, store: Path | None
) -> None:
    """Add tags to a run, finished or not; without tags, print its tags.

    \b
    playhead tag last reviewed env=prod
    playhead tag last --remove reviewed
    playhead list --tag reviewed

    A tag without a value gets the value true.
    """
    path = find_run(store, run)
    there = read_manifest(path).tags
    for key in remove:
        if key not in there:
            names = ", ".join(one_line(one) for one in there) or "none"
            raise UsageError(f"{path.name} has no tag {key!r}. Its tags: {names}.")
    said: dict[str, str | None] = dict.fromkeys(remove)
    for one in tags:
        key, equals, value = one.partition("=")
        said[key] = value if equals else "true"
    now = change_tags(path, said) if said else dict(read_manifest(path).tags)
    if as_json:
        print_json(now)
    elif now:
        for key, value in now.items():
            click.echo(f"{one_line(key)}={one_line(value)}")
    else:
        click.echo(f"{path.name} has no tags.")


@click.command("note")
@named_run_argument
@click.argument("text", nargs=-1)
@click.option("--remove", is_flag=True, help="Remove the note.")
@json_option
@store_option
def note_command(
    *, run: str, text: tuple[str, ...], remove: bool, as_json: bool, store: Path | None
) -> None:
    """Attach a note to a run, finished or not; without text, print it. `-` reads stdin.

    \b
    playhead note last "Refunds twice when the mail bounces. See ticket 77."
    git log -1 | playhead note last -
    playhead note last
    """
    path = find_run(store, run)
    said = " ".join(text)
    if said == "-":
        said = sys.stdin.read().strip()
    if text or remove:
        write_note(path, "" if remove else said)
    note = note_of(read_manifest(path))
    if as_json:
        print_json({"id": path.name, "note": note})
    else:
        click.echo(clean(note) if note else f"{path.name} has no note.")


@click.command("rename")
@named_run_argument
@click.argument("name")
@store_option
def rename_command(*, run: str, name: str, store: Path | None) -> None:
    """Rename a run. Its id does not change.

    \b
    playhead rename last refund-twice
    """
    path = find_run(store, run)
    rename_run(path, name)
    click.echo(f"{path.name} is now named {one_line(read_manifest(path).name, 60)}.")


@click.command("keep")
@run_argument
@click.option("--undo", is_flag=True, help="Allow pruning again.")
@store_option
def keep_command(*, run: str, undo: bool, store: Path | None) -> None:
    """Protect a run from `playhead prune` and `playhead clean`.

    \b
    playhead keep last
    playhead keep 20261115-0711 --undo
    """
    path = find_run(store, run)
    keep_run(path, not undo)
    click.echo(f"{path.name} {'can be pruned again' if undo else 'is kept'}.")
