"""One job of a batch: replay a tape with `playhead replay`, then judge it. Knows the report and the
invariants; not the other jobs.

Runs in a child process, forked from one that has imported everything.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.cli.batch.batch_selection import Target
from playhead.cli.run_names import find_tape
from playhead.errors import PlayheadError
from playhead.llm import Usage
from playhead.story import Prices, Story, tell
from playhead.story.comparison.compare import result_of, results_alike, sides_of
from playhead.story.invariants import Broken, Invariants, check
from playhead.story.prices import cost_of
from playhead.story.totals import spent
from playhead.story.verdicts import Outcome, Verdict
from playhead.tape.format import decoder
from playhead.tape.reader import Tape

_FROM_EXIT: dict[int, Outcome] = {0: "passed", 3: "diverged", 4: "unusable", 6: "diverged"}
_UNPROVEN = 6
# How much of the end of the output is kept: enough for a traceback.
_MOST_SAID = 8_000
_MOST_REASONS = 5
STDOUT, STDERR = "stdout", "stderr"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The work of one child. `home` is the store of the replays."""

    target: Target
    round: int
    home: Path
    options: tuple[str, ...]
    command: tuple[str, ...]
    invariants: Invariants
    prices: Prices
    # A replay without a fence counts as passed.
    allow_unproven: bool = False
    # The execution of the batch that this job belongs to. Empty: its verdict is not stored.
    batch: str = ""


def warm_up(prices: Prices) -> None:
    """Import the verb and load the prices (half a second) once, before the children are forked."""
    for module in ("cli.replaying.replay_command", "launch.closing", "launch.guest.python_argv"):
        import_module(f"playhead.{module}")
    decoder()
    usage = Usage(input_tokens=1, output_tokens=1)
    when = datetime.fromtimestamp(clock.wall_ns() / 1e9, timezone.utc)
    cost_of("anthropic.messages", "claude-sonnet-4-5", usage, when, prices.overrides)


def replay_one(job: Job, scratch: Path) -> Verdict:
    """Runs in a child. Its output and temporary files go to `scratch`, which is deleted later."""
    tempfile.tempdir = str(scratch)
    _redirect(scratch)
    began = clock.mono_ns()
    report_file = scratch / "report.json"
    code = _replay(job, report_file)
    took_s = (clock.mono_ns() - began) / 1e9
    report = _report(report_file)
    outcome = _FROM_EXIT.get(code, "error")
    if code == _UNPROVEN and job.allow_unproven:
        outcome = "passed"
    if outcome == "error" or (report is None and outcome != "unusable"):
        return _failed(job, "error", f"playhead replay exited with {code}", scratch, took_s)
    if report is None:
        return _failed(job, outcome, "", scratch, took_s)
    return _judged(job, outcome, report, scratch, took_s)


def _redirect(scratch: Path) -> None:
    """Redirect to two files: a shared stdout and stderr would be recorded as one stream."""
    for fd, path, mode in (
        (0, os.devnull, os.O_RDONLY),
        (1, str(scratch / STDOUT), os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, str(scratch / STDERR), os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        opened = os.open(path, mode, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(0, "r", closefd=False),
        os.fdopen(1, "w", closefd=False),
        os.fdopen(2, "w", closefd=False),
    )


def _replay(job: Job, report_file: Path) -> int:
    """Run the verb through the entry point of the console script."""
    from playhead.cli import main

    words = ["replay", str(job.target.path), "--report", str(report_file), "--quiet"]
    words += ["--store", str(job.home), *job.options]
    sys.argv = ["playhead", *words, *(["--", *job.command] if job.command else [])]
    try:
        main()
    except SystemExit as left:
        code = left.code
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 0


def _report(path: Path) -> dict[str, Any] | None:
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) else None


def _failed(job: Job, outcome: Outcome, why: str, scratch: Path, took_s: float) -> Verdict:
    said = tail_of(scratch)
    last = said.strip().splitlines()[-1:] or [why]
    reasons = [why, *last] if why and last != [why] else last
    return Verdict(
        tape=job.target.key,
        name=job.target.name,
        outcome=outcome,
        round=job.round,
        why=tuple(one.removeprefix("playhead: ") for one in reasons if one),
        took_s=took_s,
        said=said,
    )


def _judged(
    job: Job, outcome: Outcome, report: dict[str, Any], scratch: Path, took_s: float
) -> Verdict:
    replay = str(report.get("replay", ""))
    try:
        original = Tape(find_tape(None, str(job.target.path)))
        then = tell(original, prices=job.prices)
        now = tell(Tape(job.home / "runs" / replay), prices=job.prices, original=original)
    except PlayheadError as error:
        return _failed(job, "error", f"the replay's tape cannot be read: {error}", scratch, took_s)
    broken = check(now, then, job.invariants)
    if broken and outcome == "passed":
        outcome = "broken"
    sides = sides_of(now)
    answer = result_of(sides)
    return Verdict(
        tape=job.target.key,
        name=job.target.name,
        outcome=outcome,
        round=job.round,
        replay=replay,
        why=_why(outcome, report, broken),
        broken=tuple(broken),
        took_s=took_s,
        figures=_figures(now, len(sides), results_alike(sides_of(then), sides)),
        answer=None if answer is None else hashlib.sha256(answer.encode()).hexdigest()[:12],
        said="" if outcome == "passed" else tail_of(scratch),
    )


def _figures(story: Story, steps: int, similarity: float | None) -> dict[str, float | None]:
    usd, unpriced = spent(story.items.values())
    return {
        "steps": steps,
        "llm_calls": story.totals.llm_calls,
        "tool_calls": story.totals.tool_calls,
        "tokens": story.totals.tokens,
        "cost_usd": story.totals.cost_usd,
        "spent_usd": float(usd),
        "unpriced": unpriced,
        "similarity": similarity,
    }


def _why(outcome: Outcome, report: dict[str, Any], broken: list[Broken]) -> tuple[str, ...]:
    reasons = [str(one) for one in broken]
    if outcome == "diverged" and report.get("verdict") == "unproven":
        reasons.append("unproven: the replay ran without a fence (--allow-unproven)")
    elif outcome == "diverged":
        found = [one for one in report.get("divergences") or () if isinstance(one, dict)]
        reasons += [_divergence(one) for one in found[:_MOST_REASONS]]
        reasons += [
            f"{one.get('boundary')} {one.get('name')} was blocked: {one.get('effect')}"
            for one in (report.get("blocked") or ())[:_MOST_REASONS]
        ]
        if len(found) > _MOST_REASONS:
            reasons.append(f"{len(found) - _MOST_REASONS} more divergences")
    return tuple(reasons)


def _divergence(one: dict[str, Any]) -> str:
    if one.get("detail"):
        return f"{one.get('kind')}: {one['detail']}"
    what = {"unused": "not repeated", "missed": "not on the tape"}.get(str(one.get("kind")))
    place = f" at {one['at']}" if one.get("at") else ""
    said = f"step {one.get('step', '?')}: {one.get('boundary')} {one.get('name')}{place}"
    nearest = one.get("nearest")
    differences = nearest.get("differences") if isinstance(nearest, dict) else None
    path = f", differs in {differences[0].get('path')}" if differences else ""
    return f"{said} {what or one.get('kind')}{path}"


def tail_of(scratch: Path) -> str:
    """The end of the output, errors last."""
    return _end(scratch / STDOUT) + _end(scratch / STDERR)


def _end(log: Path) -> str:
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_SAID))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
