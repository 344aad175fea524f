"""Single calls, turns and changed files of runs as plain rows. Knows stories and workspaces; not DuckDB.

The catalogue has only sums of calls, so these rows come from the tapes. A tape is read once: an export keeps the rows
of runs that have not changed since the export before it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import date, datetime
from pathlib import Path
from typing import Any

from playhead.analytics.catalogue_tables import NULL, RunToRead, moment_of
from playhead.errors import PlayheadError
from playhead.library.run_rows import plain, whole
from playhead.story import CallItem, Prices, Story, TurnItem, tell
from playhead.story.files.file_steps import file_steps
from playhead.story.totals import usages
from playhead.tape.reader import Tape
from playhead.workspace.history import read_history

# The tables, with the types of their columns, as DuckDB names them.
TAPE_TABLES: Mapping[str, dict[str, str]] = {
    "single_calls": {
        "run": "VARCHAR",
        "day": "DATE",
        "number": "BIGINT",
        "boundary": "VARCHAR",
        "name": "VARCHAR",
        "model": "VARCHAR",
        "lane": "VARCHAR",
        "started": "TIMESTAMP",
        "duration_s": "DOUBLE",
        "outcome": "VARCHAR",
        "error": "VARCHAR",
        "input_tokens": "BIGINT",
        "output_tokens": "BIGINT",
        "cost_usd": "DOUBLE",
    },
    "turns": {
        "run": "VARCHAR",
        "day": "DATE",
        "name": "VARCHAR",
        "lane": "VARCHAR",
        "started": "TIMESTAMP",
        "duration_s": "DOUBLE",
        "outcome": "VARCHAR",
        "error": "VARCHAR",
        "decision": "VARCHAR",
        "last_seam": "VARCHAR",
    },
    "files": {
        "run": "VARCHAR",
        "day": "DATE",
        "path": "VARCHAR",
        "change": "VARCHAR",
        "call": "BIGINT",
        "size": "BIGINT",
    },
}
_LONGEST = 2_000

Row = tuple[Any, ...]
TapeRows = Mapping[str, Iterable[Row]]


def tape_rows(run: RunToRead, path: Path, prices: Prices) -> TapeRows:
    """Return the rows of one run for each table. No rows: the tape cannot be read, or is not on this disk."""
    day = moment_of(run.started_ns).date()
    try:
        tape = Tape(path)
        if tape.is_partial:
            return {}
        story = tell(tape, prices=prices)
        files = list(_files(run.id, day, story, path)) if story.file_events else []
    except PlayheadError:
        return {}
    items = story.items.values()
    return {
        "single_calls": [_call(run.id, day, one) for one in items if isinstance(one, CallItem)],
        "turns": [_turn(run.id, day, one) for one in items if isinstance(one, TurnItem)],
        "files": files,
    }


def write_tape_csvs(
    runs: Iterable[RunToRead], rows_of: Callable[[RunToRead], TapeRows], folder: Path
) -> dict[str, Path]:
    """Write the rows of these runs for DuckDB's loader: a file for each table."""
    paths = {name: folder / f"{name}.csv" for name in TAPE_TABLES}
    with ExitStack() as stack:
        writers = {
            name: csv.writer(
                stack.enter_context(path.open("w", newline="", encoding="utf-8", errors="replace"))
            )
            for name, path in paths.items()
        }
        for run in runs:
            for name, rows in rows_of(run).items():
                for row in rows:
                    writers[name].writerow([NULL if one is None else one for one in row])
    return paths


def _call(run: str, day: date, call: CallItem) -> Row:
    used = list(usages(call))
    models = (
        (one.response.model if one.response else None) or one.request.model for one in call.llm
    )
    return (
        run,
        day,
        call.number,
        call.boundary,
        _text(call.name),
        _text(next((one for one in models if one), None)),
        _text(call.lane),
        _time(call.wall),
        _seconds(call.took_ns),
        call.how,
        None if call.failure is None else _text(call.failure.type),
        _sum(one.input_tokens for one in used),
        _sum(one.output_tokens for one in used),
        None if call.cost is None else float(call.cost.usd),
    )


def _turn(run: str, day: date, turn: TurnItem) -> Row:
    return (
        run,
        day,
        _text(turn.name),
        _text(turn.lane),
        _time(turn.wall),
        _seconds(turn.took_ns),
        turn.how,
        None if turn.failure is None else _text(turn.failure.type),
        _text(turn.decision),
        _text(turn.last_seam),
    )


def _files(run: str, day: date, story: Story, path: Path) -> Iterator[Row]:
    history = read_history(Tape(path), path.parent.parent)
    for step in file_steps(story, history):
        for change in step.effect.changes:
            name = _text(change.path.decode("utf-8", "replace"))
            size = None if change.after is None else change.after.size
            yield (run, day, name, change.how, step.number or None, whole(size))


def _text(value: Any) -> str | None:
    """Return a text in a form that the loader accepts: the tape may be another person's."""
    return plain(value)[:_LONGEST] if isinstance(value, str) else None


def _time(wall_ns: int) -> datetime:
    return moment_of(wall_ns).replace(tzinfo=None)


def _seconds(took_ns: int | None) -> float | None:
    return took_ns / 1e9 if isinstance(took_ns, int) else None


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [one for one in numbers if one is not None]
    return whole(sum(known)) if known else None
