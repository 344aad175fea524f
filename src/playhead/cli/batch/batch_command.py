"""`playhead batch`, and the journal that lets an interrupted batch resume."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import click

from playhead import clock, config
from playhead.cli.batch.batch_job import Job, warm_up
from playhead.cli.batch.batch_options import (
    COMMAND,
    PASSED,
    WithReplayOptions,
    invariant_options,
    invariants_from,
)
from playhead.cli.batch.batch_selection import Shard, Target, cores, select, shard_of
from playhead.cli.batch.batch_workers import WorkerPool
from playhead.cli.common import Duration, home_to_read, overrides, store_option
from playhead.cli.replaying.approval import approved_command, can_ask
from playhead.cli.run_names import find_tape
from playhead.errors import StoreError, TapeError, UsageError
from playhead.exporters.batch_reports import junit_xml, step_summary
from playhead.host.private_files import write_export
from playhead.story import Prices
from playhead.story.invariants import Invariants
from playhead.story.verdicts import Results, Verdict, cases_of, verdict_from
from playhead.tape.reader import Tape
from playhead.tape.store import open_store
from playhead.views.html_page import results_page
from playhead.views.text.replay_results import BatchProgress, print_results

_FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """The request of a batch. Its key identifies the journal that --resume continues."""

    selectors: tuple[str, ...]
    options: tuple[str, ...]
    command: tuple[str, ...]
    invariants: Invariants
    repeat: int
    shard: tuple[int, int]
    allow_unproven: bool = False

    @property
    def key(self) -> str:
        text = json.dumps([asdict(self), str(Path.cwd())], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@click.command("batch", cls=WithReplayOptions)
@click.argument("selectors", metavar="SELECTOR...", nargs=-1, required=True)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Number of parallel replays. Default: the number of cores.",
)
@click.option(
    "--shard",
    type=Shard(),
    metavar="i/n",
    help="Replay only part i of n, to share the work between machines.",
)
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, help="Replay each tape this many times."
)
@click.option(
    "--allow-unproven", is_flag=True, help="Count replays without a fence (--unfenced) as passed."
)
@click.option("--fail-fast", is_flag=True, help="Stop after the first failure.")
@click.option("--resume", is_flag=True, help="Continue an interrupted batch.")
@click.option(
    "--timeout", type=Duration(), default="10m", show_default=True, help="Time limit of one replay."
)
@click.option("--dry-run", is_flag=True, help="List the selected tapes; replay nothing.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write JSON.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a single HTML file.")
@invariant_options
@store_option
def command(
    *,
    selectors: tuple[str, ...],
    jobs: int | None,
    shard: tuple[int, int] | None,
    repeat: int,
    allow_unproven: bool,
    fail_fast: bool,
    resume: bool,
    timeout: float,
    dry_run: bool,
    junit: Path | None,
    json_file: Path | None,
    html: Path | None,
    store: Path | None,
    **limits: Any,
) -> None:
    """Replay many tapes and judge each of them.

    \b
    playhead batch tests/tapes/                         every *.tape.jsonl below
    playhead batch tag:env=ci status:ok since:7d        runs that match all of these
    playhead batch tag:golden=true --live llm --min-similarity 0.8 --must-not-call send_mail
    playhead batch tests/tapes/ --shard 2/4 --junit results.xml

    SELECTOR is a run, tag:K[=V], name:GLOB, status:S, since:7d, a file, a folder or a glob. All options
    of `playhead replay`, and a command after `--`, are passed to each replay. Invariants can also be
    set in the config, under [batch.invariants].

    Tapes that another person recorded need --trust, or a command after `--`.

    Exit codes: 0 all passed, 3 diverged, 4 unusable tape, 5 invariant violated.
    """
    ctx = click.get_current_context()
    asked = BatchRequest(
        selectors=selectors,
        options=ctx.meta[PASSED],
        command=ctx.meta[COMMAND],
        invariants=invariants_from(config.load(), limits),
        repeat=repeat,
        shard=shard or (1, 1),
        allow_unproven=allow_unproven,
    )
    targets = shard_of(select(store, selectors), asked.shard)
    if dry_run:
        click.echo("".join(f"{one.key}  {one.name}\n" for one in targets), nl=False)
        return
    _ask_once(asked, targets)
    results = _run(
        asked,
        targets,
        home_to_read(store),
        jobs or cores(),
        timeout,
        fail_fast=fail_fast,
        resume=resume,
    )
    _write(results, junit=junit, json_file=json_file, html=html)
    print_results(results)
    ctx.exit(results.exit_code)


def _ask_once(asked: BatchRequest, targets: Sequence[Target]) -> None:
    """Ask here for tapes that another person recorded: the replays run without a terminal.

    Without a terminal here, each of these replays refuses, and the batch counts it as unusable.
    """
    if asked.command or "--trust" in asked.options or not can_ask():
        return
    for target in targets:
        path = find_tape(None, str(target.path))
        try:
            approved_command(path, Tape(path), ())
        except TapeError:
            continue  # its replay reports the reason


def _run(
    asked: BatchRequest,
    targets: Sequence[Target],
    home: Path,
    lanes: int,
    timeout: float,
    *,
    fail_fast: bool,
    resume: bool,
) -> Results:
    began, started_at = clock.mono_ns(), clock.iso(clock.wall_ns())
    journal = Journal(home, asked.key)
    over = False
    try:
        found = _earlier(journal, targets) if resume else []
        if not found:
            journal.clear()
        jobs = _jobs(asked, targets, home, {(one.tape, one.round) for one in found})
        progress = BatchProgress(len(targets) * asked.repeat, len(found))
        try:
            with closing(WorkerPool(lanes, timeout).verdicts(jobs)) as verdicts:
                for verdict in verdicts:
                    journal.write(verdict.as_json())
                    found.append(verdict)
                    progress.tell(verdict, (clock.mono_ns() - began) / 1e9)
                    if fail_fast and verdict.outcome != "passed":
                        break
        finally:
            progress.close()
        over = True
    finally:
        journal.close(over=over)
        if not over:
            click.echo(
                "playhead: interrupted; run the same command with --resume to continue.", err=True
            )
    cases = cases_of(found, [one.key for one in targets])
    return Results(
        cases=cases,
        started_at=started_at,
        took_s=(clock.mono_ns() - began) / 1e9,
        host=clock.host(),
        not_run=len(targets) - len(cases),
    )


def _jobs(
    asked: BatchRequest, targets: Sequence[Target], home: Path, done: set[tuple[str, int]]
) -> Iterator[Job]:
    """Round by round, so that every tape has a first result early."""
    prices = Prices(overrides=overrides())
    warm_up(prices)
    for number, target in product(range(1, asked.repeat + 1), targets):
        if (target.key, number) not in done:
            yield Job(
                target=target,
                round=number,
                home=home,
                options=asked.options,
                command=asked.command,
                invariants=asked.invariants,
                prices=prices,
                allow_unproven=asked.allow_unproven,
            )


def _earlier(journal: Journal, targets: Sequence[Target]) -> list[Verdict]:
    """Verdicts from before the interruption, for tapes that are still selected."""
    meant = {one.key for one in targets}
    found = [verdict_from(members) for members in journal.read()]
    return [one for one in found if one.tape in meant]


def _write(
    results: Results, *, junit: Path | None, json_file: Path | None, html: Path | None
) -> None:
    if junit is not None:
        junit.write_bytes(junit_xml(results))
    if json_file is not None:
        text = json.dumps(results.as_json(), ensure_ascii=False, indent=2)
        write_export(json_file, text + "\n")
    if html is not None:
        write_export(html, results_page(results))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(step_summary(results))


_FOLDER = "batches"


class Journal:
    """Verdicts of a batch so far, as JSON lines; locked while open, deleted when the batch is done."""

    def __init__(self, home: Path, key: str) -> None:
        folder = open_store(home) / _FOLDER
        self.path = folder / f"{key}.jsonl"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written ({error.strerror}).") from error
        try:
            # lockf belongs to the process: replays that outlive a killed batch do not hold the lock.
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise UsageError(
                "This batch is already running. Wait for it to end, or stop it."
            ) from None

    def read(self) -> list[dict[str, Any]]:
        """Every complete line; a line that a crash has torn is cut off."""
        raw = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        found: list[dict[str, Any]] = []
        good = 0
        for line in raw.splitlines(keepends=True):
            try:
                members = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                members = None
            if not isinstance(members, dict):
                break
            found.append(members)
            good += len(line)
        os.ftruncate(self._fd, good)
        os.lseek(self._fd, good, os.SEEK_SET)
        return found

    def clear(self) -> None:
        os.ftruncate(self._fd, 0)
        os.lseek(self._fd, 0, os.SEEK_SET)

    def write(self, members: Mapping[str, Any]) -> None:
        line = json.dumps(members, ensure_ascii=True, separators=(",", ":")) + "\n"
        rest = line.encode()
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        os.fsync(self._fd)

    def close(self, *, over: bool) -> None:
        """`over`: there is nothing to resume."""
        if over:
            self.path.unlink(missing_ok=True)
        os.close(self._fd)
