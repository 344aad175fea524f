"""`playhead tag`, `note`, `comment`, `rename` and `keep`: what people add to a run after it was recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from playhead.cli.common import json_option, print_json, store_option
from playhead.cli.run_names import find_run, named_run_argument, run_argument
from playhead.host.user_name import user_name
from playhead.library.annotate import (
    change_tags_by_words,
    comment,
    keep_run,
    remove_comment,
    rename_run,
    write_note,
)
from playhead.library.run_rows import comments_of, note_of
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
    """Add tags to a run, finished or not; without tags, print the tags that it has.

    \b
    playhead tag last reviewed env=prod
    playhead tag last --remove reviewed
    playhead list --tag reviewed

    A tag without a value gets the value true.
    """
    path = find_run(store, run)
    now = change_tags_by_words(path, tags, remove, by=user_name())
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
    """Attach a note to a run, finished or not; without TEXT, print the note. `-` reads stdin.

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
        write_note(path, "" if remove else said, by=user_name())
    note = note_of(read_manifest(path))
    if as_json:
        print_json({"id": path.name, "note": note})
    else:
        click.echo(clean(note) if note else f"{path.name} has no note.")


@click.command("comment")
@named_run_argument
@click.argument("text", nargs=-1)
@click.option("--remove", metavar="ID", help="Remove the comment with this id.")
@json_option
@store_option
def comment_command(
    *, run: str, text: tuple[str, ...], remove: str | None, as_json: bool, store: Path | None
) -> None:
    """Comment on a run, with your name and the time; without text, print its comments. `-` reads stdin.

    \b
    playhead comment last "The mail bounced, and the agent retried it."
    playhead comment last
    playhead comment last --remove 4f1c09aa7e21

    `playhead push` shares the comments of all people.
    """
    path = find_run(store, run)
    said = " ".join(text)
    if said == "-":
        said = sys.stdin.read()
    if remove is not None:
        remove_comment(path, remove)
    if text:
        comment(path, said, by=user_name())
    found = comments_of(read_manifest(path))
    if as_json:
        print_json({"id": path.name, "comments": found})
        return
    for one in found:
        click.echo(
            f"{one_line(one['by'], 80)}  {one_line(one['at'], 40)}  {one_line(one['id'], 40)}"
        )
        for line in clean(one["text"]).splitlines():
            click.echo(f"  {line}")
    if not found:
        click.echo(f"{path.name} has no comments.")


@click.command("rename")
@named_run_argument
@click.argument("name")
@json_option
@store_option
def rename_command(*, run: str, name: str, as_json: bool, store: Path | None) -> None:
    """Rename a run. Its id does not change.

    \b
    playhead rename last refund-twice
    """
    path = find_run(store, run)
    rename_run(path, name, by=user_name())
    named = read_manifest(path).name
    if as_json:
        print_json({"id": path.name, "name": named})
    else:
        click.echo(f"{path.name} is now named {one_line(named, 60)}.")


@click.command("keep")
@run_argument
@click.option("--undo", is_flag=True, help="Allow pruning again.")
@json_option
@store_option
def keep_command(*, run: str, undo: bool, as_json: bool, store: Path | None) -> None:
    """Protect a run from `playhead prune` and `playhead clean`.

    \b
    playhead keep last
    playhead keep 20261115-0711 --undo
    """
    path = find_run(store, run)
    keep_run(path, not undo, by=user_name())
    if as_json:
        print_json({"id": path.name, "keep": not undo})
    else:
        click.echo(f"{path.name} {'can be pruned again' if undo else 'is kept'}.")
