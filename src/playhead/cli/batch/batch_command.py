"""`playhead batch`: select tapes, replay them in parallel, and report."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click

from playhead import clock, config
from playhead.cli.batch.batch_budget import Budget
from playhead.cli.batch.batch_job import Job, warm_up
from playhead.cli.batch.batch_journal import Journal
from playhead.cli.batch.batch_options import (
    COMMAND,
    PASSED,
    WithReplayOptions,
    invariant_options,
    invariants_from,
    min_pass_rate_option,
    report_options,
    write_reports,
)
from playhead.cli.batch.batch_selection import (
    Shard,
    Target,
    cores,
    fetch_all,
    select,
    shard_of,
)
from playhead.cli.batch.batch_workers import WorkerPool
from playhead.cli.common import Duration, home_to_read, overrides, store_option
from playhead.cli.remote_options import optional_remote
from playhead.cli.replaying.approval import approved_command, can_ask
from playhead.cli.run_names import find_tape
from playhead.errors import RunNotFound, TapeError
from playhead.story import Prices
from playhead.story.invariants import Invariants
from playhead.story.verdicts import Results, Verdict, cases_of, verdict_from
from playhead.tape.reader import Tape
from playhead.views.text.replay_results import BatchProgress, print_results

# Returns the verdicts that the shared store has of a batch.
Reports = Callable[[str], list[dict[str, Any]]]
RunJobs = Callable[[Iterator[Job | None]], Generator[Verdict, None, None]]


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
    # The shared store whose runs the filters select. None: the local store.
    remote: str | None = None

    @property
    def key(self) -> str:
        text = json.dumps([asdict(self), str(Path.cwd())], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def digests(self, tapes: Sequence[str]) -> dict[str, str]:
        """A digest of each part that all shards of a batch have in common, so that reports name no secret."""
        parts = {**asdict(self), "tapes": sorted(tapes)}
        del parts["shard"]
        texts = {
            name: json.dumps(part, sort_keys=True, default=str) for name, part in parts.items()
        }
        return {
            name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in texts.items()
        }


@click.command("batch", cls=WithReplayOptions)
@click.argument("selectors", metavar="SELECTOR...", nargs=-1, required=True)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of parallel replays. Default: the number of cores, or of the cluster's slots.",
)
@click.option(
    "--shard",
    type=Shard(),
    metavar="i/n",
    help="Replay only part i of n, to share the work between machines.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    help="Replay each tape this many times.",
)
@click.option(
    "--allow-unproven", is_flag=True, help="Count replays without a fence (--unfenced) as passed."
)
@click.option(
    "--on",
    "engine",
    metavar="ENGINE",
    help="Replay on a cluster: dask:tcp://HOST:PORT, ray:auto or ray:ray://HOST:PORT. Default: this machine.",
)
@optional_remote
@click.option("--fail-fast", is_flag=True, help="Stop after the first failure.")
@click.option("--resume", is_flag=True, help="Continue an interrupted batch.")
@click.option(
    "--timeout", type=Duration(), default="10m", show_default=True, help="Time limit of one replay."
)
@click.option("--dry-run", is_flag=True, help="List the selected tapes; replay nothing.")
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Stop before the live calls of the whole batch cost more than this.",
)
@min_pass_rate_option
@report_options
@invariant_options
@store_option
def command(
    *,
    selectors: tuple[str, ...],
    jobs: int | None,
    shard: tuple[int, int] | None,
    repeat: int,
    allow_unproven: bool,
    engine: str | None,
    remote: str | None,
    fail_fast: bool,
    resume: bool,
    timeout: float,
    dry_run: bool,
    budget: float | None,
    min_pass_rate: float | None,
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
    playhead batch tests/tapes/ --shard 2/4 --json shard-2.json
    playhead batch tag:golden=true --live llm --repeat 5 --min-pass-rate 0.9 --budget 2.50
    playhead batch tag:golden=true --trust --on dask:tcp://scheduler:8786
    playhead batch tag:golden=true --trust --remote s3://tapes/shop

    SELECTOR is a run, tag:K[=V], name:GLOB, status:S, since:7d, a file, a folder or a glob. All options
    of `playhead replay`, and a command after `--`, are passed to each replay. Invariants can also be
    set in the config, under [batch.invariants].

    Tapes that another person recorded need --trust, or a command after `--`. Workers of a cluster fetch tapes from the
    shared store (PLAYHEAD_REMOTE there), and keep their replays.

    Exit codes: 0 all passed, 3 diverged, 4 unusable tape, 5 invariant violated.
    """
    ctx = click.get_current_context()
    request = BatchRequest(
        selectors=selectors,
        options=ctx.meta[PASSED],
        command=ctx.meta[COMMAND],
        invariants=invariants_from(config.load(), limits),
        repeat=repeat,
        shard=shard or (1, 1),
        allow_unproven=allow_unproven,
        remote=remote,
    )
    selected = select(store, selectors, remote)
    targets = shard_of(selected, request.shard)
    if dry_run:
        click.echo("".join(f"{one.key}  {one.name}\n" for one in targets), nl=False)
        return
    if remote is not None and (engine is None or _must_ask(request)):
        fetch_all(store, targets, remote)  # workers of a cluster fetch their own
    _ask_once(request, targets)
    # Before the journal is opened: an engine that cannot be used is not an interrupted batch.
    run = (
        WorkerPool(jobs or cores(), timeout).verdicts
        if engine is None
        else _on_engine(engine, jobs, timeout)
    )
    found = _run(
        request,
        targets,
        home_to_read(store),
        run,
        Budget(budget),
        reports=_no_reports if engine is None else partial(_shared_reports, remote),
        fail_fast=fail_fast,
        resume=resume,
    )
    results = replace(
        found,
        shard=request.shard,
        request=request.digests([one.key for one in selected]),
        min_pass_rate=min_pass_rate,
    )
    write_reports(results, junit=junit, json_file=json_file, html=html)
    print_results(results)
    ctx.exit(results.exit_code)


def _must_ask(request: BatchRequest) -> bool:
    return not request.command and "--trust" not in request.options and can_ask()


def _ask_once(request: BatchRequest, targets: Sequence[Target]) -> None:
    """Ask here for tapes that another person recorded: the replays run without a terminal.

    Without a terminal here, each of these replays refuses, and the batch counts it as unusable.
    """
    if not _must_ask(request):
        return
    for target in targets:
        try:
            path = find_tape(None, str(target.path))
            approved_command(path, Tape(path), ())
        except (TapeError, RunNotFound):
            continue  # its replay reports the reason


def _run(
    request: BatchRequest,
    targets: Sequence[Target],
    home: Path,
    run: RunJobs,
    budget: Budget,
    *,
    reports: Reports,
    fail_fast: bool,
    resume: bool,
) -> Results:
    began, started_at = clock.mono_ns(), clock.iso(clock.wall_ns())
    journal = Journal(home, request.key)
    over = False
    try:
        found = _earlier(journal, targets, reports) if resume else []
        if not found and not journal.batch:
            journal.begin(f"{request.key}-{clock.urandom(4).hex()}")
        for one in found:
            budget.book(one)
        done = {(one.tape, one.round) for one in found}
        jobs = budget.limit(_jobs(request, targets, home, done, journal.batch))
        progress = BatchProgress(len(targets) * request.repeat, len(found))
        try:
            with closing(run(jobs)) as verdicts:
                for verdict in verdicts:
                    if (verdict.tape, verdict.round) in done:
                        continue  # an engine ran the job twice
                    done.add((verdict.tape, verdict.round))
                    journal.write(verdict.as_json())
                    found.append(verdict)
                    budget.book(verdict, in_flight=True)
                    progress.tell(verdict, (clock.mono_ns() - began) / 1e9)
                    if fail_fast and verdict.outcome != "passed":
                        break
        finally:
            progress.close()
        over = budget.stopped is None
    finally:
        journal.close(over=over)
        if not over:
            reason = (
                budget.stopped or "interrupted; run the same command with --resume to continue."
            )
            click.echo(f"playhead: {reason}", err=True)
    cases = cases_of(found, [one.key for one in targets])
    return Results(
        cases=cases,
        started_at=started_at,
        took_s=(clock.mono_ns() - began) / 1e9,
        host=clock.host(),
        not_run=len(targets) - len(cases),
        stopped=budget.stopped,
    )


def _on_engine(engine: str, lanes: int | None, timeout: float) -> RunJobs:
    from playhead.cli.batch.batch_engines import EnginePool

    return EnginePool(engine, lanes, timeout).verdicts


def _no_reports(_: str) -> list[dict[str, Any]]:
    return []


def _shared_reports(remote: str | None, batch: str) -> list[dict[str, Any]]:
    """Verdicts that workers of a cluster wrote to the shared store."""
    if not (remote or config.load().remote):
        return []
    from playhead.cli.shared_store import shared_store
    from playhead.remote.job_verdicts import reports_of

    return reports_of(shared_store(remote or None), batch)


def _jobs(
    request: BatchRequest,
    targets: Sequence[Target],
    home: Path,
    done: set[tuple[str, int]],
    batch: str,
) -> Iterator[Job]:
    """Yield jobs round by round, so that every tape has a first result early."""
    prices = Prices(overrides=overrides())
    warm_up(prices)
    for number, target in product(range(1, request.repeat + 1), targets):
        if (target.key, number) not in done:
            yield Job(
                target=target,
                round=number,
                home=home,
                options=request.options,
                command=request.command,
                invariants=request.invariants,
                prices=prices,
                allow_unproven=request.allow_unproven,
                batch=batch,
            )


def _earlier(journal: Journal, targets: Sequence[Target], reports: Reports) -> list[Verdict]:
    """Verdicts from before the interruption, and those that workers finished since, for tapes that are still
    selected.
    """
    meant = {one.key for one in targets}
    found: dict[tuple[str, int], Verdict] = {}
    for one in map(verdict_from, journal.read()):
        if one.tape in meant:
            found[one.tape, one.round] = one
    for members in reports(journal.batch) if journal.batch else ():
        one = verdict_from(members)
        if one.tape in meant and (one.tape, one.round) not in found:
            found[one.tape, one.round] = one
            journal.write(members)
    return list(found.values())
