"""`playhead verify`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from playhead.cli.common import (
    find_run,
    home_of,
    json_option,
    print_json,
    runs_argument,
    store_option,
)
from playhead.cli.progress import counted
from playhead.errors import TapeError, UsageError
from playhead.tape import store as stores
from playhead.tape.care.verify import Verification, verify
from playhead.views.text.console import console
from playhead.views.text.health import verification_lines

# This tape cannot be used: the exit code of TapeError.
_DAMAGED = TapeError.exit_code


@click.command("verify")
@runs_argument
@click.option("--all", "everything", is_flag=True, help="Every run of the store.")
@json_option
@store_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    runs: tuple[str, ...],
    everything: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Check tapes for damage and edits: every line, checksum, blob and count.

    Exit code 4 when something is wrong; where it is wrong is named by segment and line.

    \b
    playhead verify last
    playhead verify --all --json | jq '.[] | select(.ok | not)'
    """
    checked = [
        (path, _verified(path))
        for path in counted(_asked(runs, store, everything=everything), "Verifying")
    ]
    if as_json:
        print_json([_json(path, found) for path, found in checked])
    else:
        out = console()
        for path, found in checked:
            for line in verification_lines(path, found, only_damaged=everything):
                out.print(line, soft_wrap=True)
        if everything:
            whole = sum(_is_whole(found) for _, found in checked)
            out.print(f"{whole:,} of {len(checked):,} runs are whole.")
    if not all(_is_whole(found) for _, found in checked):
        ctx.exit(_DAMAGED)


def _asked(runs: tuple[str, ...], store: Path | None, *, everything: bool) -> Sequence[Path]:
    if everything == bool(runs):
        raise UsageError("Name the runs to check, such as `playhead verify last`, or say --all.")
    if everything:
        return list(stores.runs(home_of(store)))
    return [find_run(store, run) for run in runs]


def _verified(path: Path) -> Verification | TapeError:
    """What was found; of a tape that cannot be read at all, why. The others are checked as well."""
    try:
        return verify(path)
    except TapeError as error:
        return error


def _is_whole(found: Verification | TapeError) -> bool:
    return isinstance(found, Verification) and found.ok


def _json(path: Path, found: Verification | TapeError) -> dict[str, Any]:
    if isinstance(found, TapeError):
        return {"id": path.name, "path": str(path), "ok": False, "error": str(found)}
    told = {**dataclasses.asdict(found), "events": found.events, "cut": found.cut}
    return {"id": path.name, "path": str(path), **told}
