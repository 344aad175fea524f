"""`playhead note`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from playhead.cli.common import find_run, json_option, print_json, run_argument, store_option
from playhead.library.marking import write_note
from playhead.library.rows import note_of
from playhead.tape.manifest import read_manifest
from playhead.views.text.safe import clean


@click.command("note")
@run_argument
@click.argument("text", nargs=-1)
@click.option("--remove", is_flag=True, help="Take the note away.")
@json_option
@store_option
def command(
    *, run: str, text: tuple[str, ...], remove: bool, as_json: bool, store: Path | None
) -> None:
    """Write a note on a run, also on one that goes on; without a text, show it. - is stdin.

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
