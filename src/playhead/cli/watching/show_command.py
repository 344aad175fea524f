"""`playhead show`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from playhead.cli.common import json_option, overrides, print_json, store_option
from playhead.cli.run_names import find_tape, run_argument
from playhead.errors import UsageError
from playhead.events import Event
from playhead.exporters.files_json import call_files_json
from playhead.story import CallItem, Prices, Story, tell
from playhead.story.files.file_steps import files_of_call
from playhead.story.story_json import call_json, story_json
from playhead.tape.reader import Tape
from playhead.views.text.call import print_call
from playhead.views.text.event_line import print_event
from playhead.views.text.file_changes import print_call_files
from playhead.views.text.story import print_story
from playhead.workspace.history import read_history

# For the first view of a run in a shared store.
_FIRST_EVENTS = 4_000


@click.command("show")
@run_argument
@click.option("--call", "number", type=int, metavar="N", help="Show call N in full.")
@click.option("--event", "event", metavar="N", help="Show event N of the tape in full.")
@click.option("--output", "-o", is_flag=True, help="Include the program's output.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    help="Maximum number of lines; 0 for all.",
)
@click.option(
    "--full",
    "-v",
    is_flag=True,
    help="Do not shorten the program's own events; with --call, texts, diffs and messages.",
)
@json_option
@store_option
def command(
    *,
    run: str,
    number: int | None,
    event: str | None,
    output: bool,
    limit: int,
    full: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Show a run: its outcome, then the conversation as a tree.

    \b
    playhead show last              the newest run of this project
    playhead show last --call 12    request, answer, timing, causes and file diffs of call 12
    playhead show last --event 40   one event with all its data
    playhead show last --json | jq .totals
    """
    # Only the tree of a run has a first view; the other forms need all events.
    in_part = number is None and event is None and not (as_json or output or full)
    path = find_tape(store, run, whole=not in_part)
    tape = Tape(path)
    if event is not None:
        found = _event(tape, event)
        if as_json:
            print_json({k: v for k, v in dataclasses.asdict(found).items() if v is not None})
        else:
            print_event(found)
        return
    first = _FIRST_EVENTS if tape.is_partial else None
    story = tell(tape, prices=Prices(overrides=overrides()), first=first)
    if number is not None:
        call = _call(story, number)
        history = read_history(tape, path.parent.parent)
        files = files_of_call(story, history, call)
        if as_json:
            print_json({**call_json(story, call), "files": call_files_json(history, files)})
        else:
            print_call(story, call, full=full)
            print_call_files(history, files, full=full)
    elif as_json:
        print_json(story_json(story))
    else:
        print_story(story, output=output, full=full, limit=limit)
        if not story.whole:
            click.echo(
                f"These are the first {story.totals.events:,} of {story.manifest.events:,} events; the rest is in "
                f"the shared store. `playhead pull {path.name}` fetches the run, `show --full` shows all of it."
            )


def _event(tape: Tape, wanted: str) -> Event:
    """Find an event by its number, or by its name `SEGMENT:NUMBER` if several processes wrote the tape."""
    last = -1
    for event in tape.events():
        if wanted in (event.ref, str(event.seq)):
            return tape.whole(event)
        last = max(last, event.seq)
    raise UsageError(
        f"Run {tape.manifest.run} has no event {wanted}: its events are 0 to {last}, "
        "or SEGMENT:NUMBER as `playhead events` lists them."
    )


def _call(story: Story, number: int) -> CallItem:
    call = story.call(number)
    if call is None:
        there = story.totals.calls
        known = f"its calls are 1 to {there}" if there else "it has none"
        raise UsageError(f"Run {story.manifest.run} has no call {number}: {known}.")
    return call
