"""`playhead verify` and `playhead repair`."""

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
    run_argument,
    runs_argument,
    store_option,
)
from playhead.cli.progress_line import counted
from playhead.errors import TapeError, UsageError
from playhead.tape import store as stores
from playhead.tape.care.repair import repair
from playhead.tape.care.verify import Verification, verify
from playhead.tape.store import announce
from playhead.views.text.console import console
from playhead.views.text.maintenance import repair_lines, verification_lines

_DAMAGED = TapeError.exit_code


@click.command("verify")
@runs_argument
@click.option("--all", "everything", is_flag=True, help="Verify every run of the store.")
@json_option
@store_option
@click.pass_context
def verify_command(
    ctx: click.Context,
    *,
    runs: tuple[str, ...],
    everything: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Check tapes for damage and edits: every line, checksum, blob and count.

    Exit code 4: a tape is damaged; each problem is reported with its segment and line.

    \b
    playhead verify last
    playhead verify --all --json | jq '.[] | select(.ok | not)'
    """
    checked = [
        (path, _verified(path))
        for path in counted(_runs_to_verify(runs, store, everything=everything), "Verifying")
    ]
    if as_json:
        print_json([_verification_json(path, found) for path, found in checked])
    else:
        out = console()
        for path, found in checked:
            for line in verification_lines(path, found, only_damaged=everything):
                out.print(line, soft_wrap=True)
        if everything:
            intact = sum(_is_intact(found) for _, found in checked)
            out.print(f"{intact:,} of {len(checked):,} runs are intact.")
    if not all(_is_intact(found) for _, found in checked):
        ctx.exit(_DAMAGED)


def _runs_to_verify(
    runs: tuple[str, ...], store: Path | None, *, everything: bool
) -> Sequence[Path]:
    if everything == bool(runs):
        raise UsageError("Name the runs to check, such as `playhead verify last`, or use --all.")
    if everything:
        return list(stores.runs(home_of(store)))
    return [find_run(store, run) for run in runs]


def _verified(path: Path) -> Verification | TapeError:
    """The result, or the reason why the tape cannot be read; the remaining runs are still checked."""
    try:
        return verify(path)
    except TapeError as error:
        return error


def _is_intact(found: Verification | TapeError) -> bool:
    return isinstance(found, Verification) and found.ok


def _verification_json(path: Path, found: Verification | TapeError) -> dict[str, Any]:
    if isinstance(found, TapeError):
        return {"id": path.name, "path": str(path), "ok": False, "error": str(found)}
    members = {**dataclasses.asdict(found), "events": found.events, "cut": found.cut}
    return {"id": path.name, "path": str(path), **members}


@click.command("repair")
@run_argument
@click.option(
    "--force", is_flag=True, help="Repair a run of another machine that is still marked as running."
)
@json_option
@store_option
def repair_command(*, run: str, force: bool, as_json: bool, store: Path | None) -> None:
    """Rescue the readable part of a damaged tape. Damaged files are moved aside, never deleted.

    \b
    playhead verify last || playhead repair last
    """
    path = find_run(store, run)
    done = repair(path, force=force)
    announce(path)
    if not as_json:
        out = console()
        for line in repair_lines(path, done):
            out.print(line, soft_wrap=True)
        return
    print_json(
        {
            "id": path.name,
            "path": str(path),
            "changed": done.changed,
            "kept": done.kept,
            "lost": done.lost,
            "moved": [str(one) for one in done.moved],
            "damages": [str(one) for one in done.damages],
            "blobs_lost": done.blobs_lost,
        }
    )
