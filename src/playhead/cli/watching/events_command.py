"""`playhead events`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import click

from playhead.cli.common import store_option
from playhead.cli.run_names import find_tape, run_argument
from playhead.events import BOUNDARIES, Event
from playhead.story.event_filter import EventFilter, EventSelection, parse_range
from playhead.tape.reader import Tape
from playhead.tape.reading.follow import follow_rows
from playhead.tape.reading.seek import roots
from playhead.tape.reading.segment_rows import Row
from playhead.views.text.console import console, print_line, width_of
from playhead.views.text.event_line import event_line
from playhead.views.text.safe import clean_json

Printer = Callable[[Event, bytes], None]


@click.command("events")
@run_argument
@click.option(
    "--kind", "kinds", multiple=True, metavar="GLOB", help="Only these kinds: call, 'turn.*'."
)
@click.option(
    "--boundary",
    "boundaries",
    multiple=True,
    type=click.Choice(BOUNDARIES),
    help="Only calls of this boundary, with their chunks and outcomes.",
)
@click.option("--lane", "lanes", multiple=True, metavar="GLOB", help="Only these lanes: 'main/2*'.")
@click.option(
    "--who", multiple=True, metavar="GLOB", help="Only events of these agents or components."
)
@click.option(
    "--seq", metavar="A..B", help="Only these events: 10..20, 10.., 17, or SEGMENT:10..20."
)
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    help="Maximum number of events; 0 for all.",
)
@click.option("--follow", "-f", is_flag=True, help="Wait for new events while the run continues.")
@click.option("--pretty", is_flag=True, help="Print one readable line per event.")
@click.option("--json", is_flag=True, help="Print JSON lines (the default).")
@store_option
def command(
    *,
    run: str,
    kinds: tuple[str, ...],
    boundaries: tuple[str, ...],
    lanes: tuple[str, ...],
    who: tuple[str, ...],
    seq: str | None,
    limit: int,
    follow: bool,
    pretty: bool,
    json: bool,
    store: Path | None,
) -> None:
    """Print the events of a run as JSON lines, all processes merged.

    \b
    playhead events last --kind 'turn.*' | jq .data
    playhead events last --boundary llm --seq 40..80
    playhead events last --follow --pretty
    """
    if pretty and json:
        raise click.UsageError("--pretty and --json cannot be combined.")
    tape = Tape(find_tape(store, run))
    wanted = EventFilter(
        kinds=kinds,
        boundaries=frozenset(boundaries),
        lanes=lanes,
        who=who,
        seqs=None if seq is None else parse_range(seq),
    )
    rows = follow_rows(tape) if follow else tape.rows()
    show = _pretty(tape) if pretty else _raw(flush=follow)
    for event, _, raw in islice(_selected(tape, rows, wanted), limit or None):
        show(event, raw)
    sys.stdout.flush()
    for damage in tape.damage:
        click.echo(f"playhead: damaged: {clean_json(str(damage), terminal=True)}", err=True)


def _selected(tape: Tape, rows: Iterator[Row], wanted: EventFilter) -> Iterator[Row]:
    own = frozenset(segment.name for segment in roots(tape.segments()))
    selection = EventSelection(wanted, own)
    return (row for row in rows if selection.takes(row[0]))


def _raw(*, flush: bool) -> Printer:
    """Print the original bytes into a pipe; escape control characters on a terminal."""
    if sys.stdout.isatty():
        return lambda _, raw: click.echo(clean_json(raw.decode("utf-8", "replace"), terminal=True))
    out = sys.stdout.buffer

    def write(_: Event, raw: bytes) -> None:
        out.write(raw + b"\n")
        if flush:
            out.flush()

    return write


def _pretty(tape: Tape) -> Printer:
    out = console()
    width = width_of(out)
    began = min((segment.mono for segment in tape.segments()), default=0)

    def write(event: Event, _: bytes) -> None:
        print_line(out, event_line(event, began, width))

    return write
