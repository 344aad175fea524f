"""`playhead replay`, and how a replay or a fork reports its result."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from playhead import config
from playhead.cli.common import store_option
from playhead.cli.replaying.approval import (
    approved_command,
    environment_choice,
    environment_options,
    option_with_real_effects,
    trust_option,
)
from playhead.cli.replaying.replay_arguments import (
    fault_options,
    mixed_options,
    options_from,
    plain,
    plan_of,
)
from playhead.cli.run_names import RunThenCommand, find_tape, run_argument
from playhead.errors import TapeNotReplayable, UsageError
from playhead.launch.replaying.replay_run import Replayed, check_tape, replay_command
from playhead.launch.request_runs import request_of_server
from playhead.replay.modes.replay_options import ReplayOptions
from playhead.replay.report.verdict import Report
from playhead.tape.reader import Tape
from playhead.tape.store import can_be_id
from playhead.views.text.safe import clean_json

# Exit code of each verdict.
EXIT_CODES = {"identical": 0, "changed": 0, "diverged": 3, "unproven": 6}


@click.command(
    cls=RunThenCommand,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": True},
)
@run_argument
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report to a JSON file.",
)
@click.option("--pace", is_flag=True, help="Keep the original timing.")
@click.option(
    "--order",
    type=click.Choice(["strict", "calls"]),
    default="strict",
    help="Keep the order of concurrent work (strict, the default), or only that of each call.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1),
    default=5.0,
    metavar="SECONDS",
    help="End a replay that makes no progress for this long. Default: 5.",
)
@click.option(
    "--request",
    type=click.IntRange(min=1),
    metavar="N",
    help="For a recorded HTTP server: send only its N-th request.",
)
@click.option(
    "--no-proxy",
    is_flag=True,
    help="Do not route non-Python programs through the proxy.",
)
@click.option(
    "--unfenced",
    is_flag=True,
    help="Run without the kernel fence. The verdict is then never `identical`.",
)
@click.option("--quiet", "-q", is_flag=True, help="Do not print the report.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, on stderr.")
@click.option(
    "--in-place", is_flag=True, help="Use the current project files, not the recorded ones."
)
@trust_option
@environment_options
@mixed_options
@fault_options
@store_option
@click.argument("command_line", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
def command(
    run: str, report_file: Path | None, pace: bool, order: str, timeout_s: float, request: int | None,
    no_proxy: bool, unfenced: bool, quiet: bool, as_json: bool, in_place: bool, trusted: bool,
    store: Path | None, command_line: tuple[str, ...], **asked: Any,
) -> None:  # fmt: skip
    """Re-run the agent with every answer taken from the tape: offline, free and fast.

    \b
    playhead replay last                      the recorded command
    playhead replay last --report r.json      write a report for scripts
    playhead replay last -- python agent2.py  other code against the same tape
    playhead replay last --live llm           a live model, taped tools
    playhead replay last --fault llm:3=529    inject a failure
    playhead replay last --request 7          one request to a recorded server

    If another user recorded the tape, Playhead shows its command and asks before it runs it; without a
    terminal it needs --trust, or your own command after --.

    --request starts the server and sends one of the recorded requests. It compares the answer and the
    calls of that request; not the output, the files and the state of the run. `playhead show` has the numbers.

    The program finds the files of the recording; the real ones stay untouched.
    Nothing is sent and nothing is executed, except what --live names. The program's stdout and stderr
    pass through; the report goes to stderr. Exit codes: 0 identical, or recovered from every fault;
    3 diverged; 4 the tape cannot be replayed; 6 unproven, because no fence was available. With live
    calls: 0 the same, or changed; 3 if calls were blocked, or with --expect same. 2 if a fault never fired.
    """
    settings = config.load()
    path, request = _server_run(find_tape(store, run), request)
    tape = plain(check_tape(path))
    wishes = options_from(settings, asked, request=request)
    if request is not None:
        _check_request(tape, request)
    if asked["dry_run"]:
        _print_forecast(tape, wishes)
        return
    plan = plan_of(tape, settings, wishes, pace=pace, order=order, timeout_s=timeout_s)
    effects = option_with_real_effects(asked, unfenced=unfenced)
    approval = approved_command(path, tape, command_line, trusted=trusted, real_effects=effects)
    environment = environment_choice(approval, asked)
    with store_for(store, persist=not asked["no_persist"]) as home:
        replayed = replay_command(
            tape, approval.words, settings, plan, store=home, proxy=not no_proxy, fenced=not unfenced,
            in_place=in_place, pool=path.parent.parent, environment=environment,
            meanwhile=None if quiet or as_json else load_report,
        )  # fmt: skip
        report_end(tape, replayed, report_file=report_file, as_json=as_json, quiet=quiet)
    sys.exit(exit_code_of(replayed, wishes, expect=asked["expect"]))


def _server_run(path: Path, request: int | None) -> tuple[Path, int | None]:
    """The run to replay, and its request. A run of one request (`record --run-per`) needs that of its server."""
    found = request_of_server(Tape(path).manifest)
    if found is None:
        return path, request
    if request not in (None, found[1]):
        raise UsageError(
            f"{path.name} has request {found[1]} only. Use `playhead replay {found[0]}`."
        )
    server = path.parent / found[0]
    if not can_be_id(found[0]) or not server.is_dir():
        raise TapeNotReplayable(
            f"{path.name} has request {found[1]} of {found[0]}. A replay needs that run, which is not in this store."
        )
    return server, found[1]


def _check_request(tape: Tape, number: int) -> None:
    """Raise UsageError if the run has no such request, before anything starts."""
    from playhead.replay.matching.taped import load

    load(tape, request=number)


def _print_forecast(tape: Tape, wishes: ReplayOptions) -> None:
    from playhead.replay.matching.taped import load
    from playhead.replay.report.forecast import forecast
    from playhead.views.text.report import print_forecast

    print_forecast(forecast(load(tape, request=wishes.request), wishes.policy))


def load_report() -> None:
    """Import the report while the command runs: rich takes 30 ms to load."""
    import playhead.views.text.report  # noqa: F401  loaded for later


@contextmanager
def store_for(store: Path | None, *, persist: bool) -> Iterator[Path | None]:
    """The store of the new run; without `persist` a temporary one."""
    if persist:
        yield store
        return
    folder = Path(tempfile.mkdtemp(prefix="playhead-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report_end(
    original: Tape, replayed: Replayed, *, report_file: Path | None, as_json: bool, quiet: bool
) -> None:
    """Write the report to the file and to stderr; stdout belongs to the program."""
    report = replayed.report
    if report_file is not None:
        members = json.dumps(report.as_json(), ensure_ascii=False, indent=2, default=str)
        # Names of files need not be text.
        report_file.write_text(clean_json(members, terminal=False) + "\n", encoding="utf-8")
    if as_json:
        line = json.dumps(report.as_json(), ensure_ascii=False, default=str) + "\n"
        os.write(2, line.encode("utf-8", "backslashreplace"))
    elif not quiet:
        from playhead.views.text.report import print_report

        print_report(report)
        if report.live or report.forked_at is not None:
            _compare(original, Tape(replayed.recorded.run.path))


def _compare(left: Tape, right: Tape) -> None:
    """Compare only if something was live: the story and its comparison take a tenth of a second to load."""
    from playhead.story import Prices, tell
    from playhead.story.comparison.compare import compare
    from playhead.views.text.comparison_text import print_comparison

    prices = Prices(overrides=config.load().sections.get("prices", {}))
    print_comparison(compare(tell(left, prices=prices), tell(right, prices=prices)), stderr=True)


def unfired(report: Report, wishes: ReplayOptions) -> list[str]:
    """Return the faults that never fired, without those that fire at random."""
    fired = {one.get("fault") for one in report.faults}
    return [spec for spec in wishes.faults if spec not in fired and not spec.endswith("%")]


def exit_code_of(replayed: Replayed, wishes: ReplayOptions, *, expect: str = "any") -> int:
    report: Report = replayed.report
    if never := unfired(report, wishes):
        raise UsageError(f"{', '.join(never)}: no fault fired. {_calls_there(report)}")
    is_cut_short = report.blocked or any(one.get("kind") == "missed" for one in report.divergences)
    if report.verdict == "changed" and report.recovered is None:
        return 3 if expect == "same" or is_cut_short else 0
    unusable = TapeNotReplayable.exit_code
    if replayed.recorded.ended.code == unusable and report.verdict != "identical":
        return unusable
    if report.recovered is not None:
        return 0 if report.recovered else 3
    return EXIT_CODES[report.verdict]


def _calls_there(report: Report) -> str:
    """Count the calls of each kind that the replay made: the calls that a fault could have hit."""
    counts = {
        boundary: sum(count for rung, count in row.items() if rung != "unused")
        for boundary, row in report.coverage.items()
    }
    named = [f"{n} {name} call{'' if n == 1 else 's'}" for name, n in counts.items() if n]
    return f"The run made {', '.join(named) or 'no calls'}."
