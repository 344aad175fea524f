"""`playhead batch`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import click

from playhead import clock, config
from playhead.cli.common import Duration, home_of, overrides, store_option
from playhead.cli.replaying.batch_one import Job, warm_up
from playhead.cli.replaying.batch_options import (
    COMMAND,
    PASSED,
    WithReplayOptions,
    invariant_options,
    invariants_from,
)
from playhead.cli.replaying.batch_runs import Crew
from playhead.cli.replaying.selectors import Shard, Target, cores, select, shard_of
from playhead.exporters.junit import junit_xml
from playhead.exporters.step_summary import step_summary
from playhead.library.journal import Journal
from playhead.story import Prices
from playhead.story.invariants import Invariants
from playhead.story.verdicts import Results, Verdict, cases_of, verdict_from
from playhead.views.html.results import results_page
from playhead.views.text.results import Progress, print_results

_FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a batch is to do: two with the same answer to this are the same batch."""

    selectors: tuple[str, ...]
    options: tuple[str, ...]
    command: tuple[str, ...]
    invariants: Invariants
    repeat: int
    shard: tuple[int, int]

    @property
    def key(self) -> str:
        told = json.dumps([asdict(self), str(Path.cwd())], sort_keys=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()[:16]


@click.command("batch", cls=WithReplayOptions)
@click.argument("selectors", metavar="SELECTOR...", nargs=-1, required=True)
@click.option("--jobs", type=click.IntRange(min=1), help="Replays side by side. Default: cores.")
@click.option("--shard", type=Shard(), metavar="i/n", help="Only part i of n: one machine each.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Each tape so many times.")
@click.option("--fail-fast", is_flag=True, help="End with the first that does not pass.")
@click.option("--resume", is_flag=True, help="Go on where this batch was interrupted.")
@click.option(
    "--timeout", type=Duration(), default="10m", show_default=True, help="For one replay."
)
@click.option("--dry-run", is_flag=True, help="Only say which tapes are meant.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write JSON.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page of one file.")
@invariant_options
@store_option
def command(
    *,
    selectors: tuple[str, ...],
    jobs: int | None,
    shard: tuple[int, int] | None,
    repeat: int,
    fail_fast: bool,
    resume: bool,
    timeout: float,
    dry_run: bool,
    junit: Path | None,
    json_file: Path | None,
    html: Path | None,
    store: Path | None,
    **told: Any,
) -> None:
    """Replay many tapes, and say of each whether it still holds.

    \b
    playhead batch tests/tapes/                         every *.tape.jsonl below
    playhead batch tag:env=ci status:ok since:7d        runs that fit all of these
    playhead batch tag:golden=true --live llm --min-similarity 0.8 --must-not-call send_mail
    playhead batch tests/tapes/ --shard 2/4 --junit results.xml

    A SELECTOR is a run, tag:K[=V], name:GLOB, status:S, since:7d, a file, a folder or a glob. All
    options of `playhead replay` are passed on, and so is what follows `--`. Invariants may stand in
    the config, too, under [batch.invariants].

    Exit codes: 0 all passed, 3 diverged, 5 an invariant broke, 4 a tape cannot be used.
    """
    ctx = click.get_current_context()
    asked = Asked(
        selectors=selectors,
        options=ctx.meta[PASSED],
        command=ctx.meta[COMMAND],
        invariants=invariants_from(config.load(), told),
        repeat=repeat,
        shard=shard or (1, 1),
    )
    targets = shard_of(select(store, selectors), asked.shard)
    if dry_run:
        click.echo("".join(f"{one.key}  {one.name}\n" for one in targets), nl=False)
        return
    results = _run(
        asked, targets, home_of(store), jobs or cores(), timeout, fail_fast=fail_fast, resume=resume
    )
    _write(results, junit=junit, json_file=json_file, html=html)
    print_results(results)
    ctx.exit(results.exit_code)


def _run(
    asked: Asked,
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
        progress = Progress(len(targets) * asked.repeat, len(found))
        try:
            with closing(Crew(lanes, timeout).verdicts(jobs)) as verdicts:
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
            click.echo("playhead: interrupted; the same command with --resume goes on.", err=True)
    cases = cases_of(found, [one.key for one in targets])
    return Results(
        cases=cases,
        started_at=started_at,
        took_s=(clock.mono_ns() - began) / 1e9,
        host=clock.host(),
        not_run=len(targets) - len(cases),
    )


def _jobs(
    asked: Asked, targets: Sequence[Target], home: Path, done: set[tuple[str, int]]
) -> Iterator[Job]:
    """Round by round: what fails in the first is known first."""
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
            )


def _earlier(journal: Journal, targets: Sequence[Target]) -> list[Verdict]:
    """What was found before the interruption, of tapes that are still meant."""
    meant = {one.key for one in targets}
    found = [verdict_from(members) for members in journal.read()]
    return [one for one in found if one.tape in meant]


def _write(
    results: Results, *, junit: Path | None, json_file: Path | None, html: Path | None
) -> None:
    if junit is not None:
        junit.write_bytes(junit_xml(results))
    if json_file is not None:
        told = json.dumps(results.as_json(), ensure_ascii=False, indent=2)
        json_file.write_text(told + "\n", encoding="utf-8", errors="backslashreplace")
    if html is not None:
        html.write_text(results_page(results), encoding="utf-8", errors="backslashreplace")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(step_summary(results))
