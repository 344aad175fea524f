"""Results of many replays on a terminal: the verdicts of a batch, and the failures of a chaos run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Self

from rich.live import Live
from rich.table import Table
from rich.text import Text

from playhead.replay.modes.chaos_trials import OUTCOMES, TrialResult
from playhead.story.verdicts import Case, Results, Verdict
from playhead.views.text import words
from playhead.views.text.console import console
from playhead.views.text.safe import one_line

_MARKS = {
    "passed": ("✓", "ok"),
    "diverged": ("✗", "failed"),
    "broken": ("✗", "failed"),
    "unusable": ("!", "interrupted"),
    "error": ("!", "interrupted"),
}
_MOST_CASES = 50
_CLEAR = "\r\x1b[K"


class BatchProgress:
    """Progress on stderr: one changing line on a terminal, otherwise one line per replay."""

    def __init__(self, total: int, done: int) -> None:
        self._total = total
        self._done = done
        self._run_now = 0
        self._failed = 0
        self._is_terminal = sys.stderr.isatty()
        self._out = console(stderr=True)

    def tell(self, verdict: Verdict, elapsed_s: float) -> None:
        self._done += 1
        self._run_now += 1
        self._failed += verdict.outcome != "passed"
        if self._is_terminal:
            sys.stderr.write(_CLEAR)
        if not self._is_terminal or verdict.outcome != "passed":
            self._out.print(
                _line(verdict, self._done, self._total), no_wrap=True, overflow="ellipsis"
            )
        if self._is_terminal:
            sys.stderr.write(self._state(elapsed_s))
            sys.stderr.flush()

    def close(self) -> None:
        if self._is_terminal:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def _state(self, elapsed_s: float) -> str:
        left_s = elapsed_s / self._run_now * (self._total - self._done)
        bad = f" · {self._failed} not passed" if self._failed else ""
        return f"{self._done} of {self._total}{bad} · {words.duration(left_s)} left"


def _line(verdict: Verdict, done: int, total: int) -> Text:
    mark, style = _MARKS[verdict.outcome]
    width = len(str(total))
    round_ = f" (round {verdict.round})" if verdict.round > 1 else ""
    line = Text.assemble(
        (f"{done:>{width}}/{total} ", "quiet"),
        (f"{mark} {verdict.outcome:<8} ", style),
        f"{one_line(verdict.tape, 44)}{round_}",
        (f"  {words.duration(verdict.took_s)}", "quiet"),
    )
    if verdict.why:
        line.append(f"  {one_line(verdict.why[0], 200)}", style="quiet")
    return line


def print_results(results: Results) -> None:
    """Print the totals, then each tape that did not pass with its reasons."""
    out = console()
    bad = results.failing
    is_bad = results.exit_code != 0
    sums = ", ".join(f"{number} {name}" for name, number in results.counts.items() if number)
    flaky = sum(case.flaky for case in results.cases)
    line = Text.assemble(
        ("✗ " if is_bad else "✓ ", "failed" if is_bad else "ok"),
        (sums or "nothing was run", "failed" if is_bad else "ok"),
        f" · {len(results.cases)} {'tape' if len(results.cases) == 1 else 'tapes'} · {words.duration(results.took_s)}",
    )
    if flaky:
        line.append(f" · {flaky} flaky", style="interrupted")
    if results.not_run:
        line.append(f" · {results.not_run} not run", style="quiet")
    out.print(line)
    for fact in results.facts:
        out.print(Text(f"  {one_line(fact, 300)}"))
    for case in bad[:_MOST_CASES]:
        _print_case(case)
    if len(bad) > _MOST_CASES:
        out.print(Text(f"and {len(bad) - _MOST_CASES} more", style="quiet"))


def _print_case(case: Case) -> None:
    out = console()
    mark, style = _MARKS[case.outcome]
    head = Text.assemble((f"\n{mark} {case.outcome} ", style), (one_line(case.name, 40), "name"))
    head.append(f"  {one_line(case.tape, 60)}", style="quiet")
    if len(case.verdicts) > 1:
        head.append(f"  passed {case.passes} of {len(case.verdicts)}", style="quiet")
    out.print(head)
    for reason in case.worst.why:
        out.print(Text(f"  {one_line(reason, 300)}"))
    if case.worst.replay:
        command = one_line(f"playhead diff {case.tape} {case.worst.replay}", 200)
        out.print(Text(f"  {command}", style="quiet"))


_STYLES = {
    "hung": "failed", "crashed": "failed", "wrong": "failed",
    "strayed": "interrupted", "recovered": "ok", "silent": "quiet",
}  # fmt: skip
_MOST_SHOWN = 30


class ChaosProgress:
    """Progress on stderr, in a line that is removed at the end."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._counts: Counter[str] = Counter()
        self._live = Live(self._line(), console=console(stderr=True), transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.stop()

    def tell(self, result: TrialResult) -> None:
        self._counts[result.outcome] += 1
        self._live.update(self._line())

    def _line(self) -> Text:
        done = sum(self._counts.values())
        return Text(
            f"{done} of {self._total} faults tried · {_counted(self._counts)}", style="quiet"
        )


def print_chaos(run: str, results: Sequence[TrialResult]) -> None:
    out = console()
    counts = Counter(one.outcome for one in results)
    broke = counts["hung"] + counts["crashed"] + counts["wrong"]
    verdict = (f"✗ broken by {broke} of {len(results)} faults", "failed")
    if not broke:
        verdict = (f"✓ not broken by any of {len(results)} faults", "ok")
        if counts["silent"] == len(results):
            verdict = ("! no fault fired", "interrupted")
    out.print(Text.assemble(verdict, f" · {run} · {_counted(counts)}"))
    shown = [one for one in results if one.outcome not in ("recovered", "silent")]
    if not shown:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="quiet")
    for heading in ("", "fault", "at", "effect"):
        table.add_column(heading)
    for one in shown[:_MOST_SHOWN]:
        table.add_row(
            Text(one.outcome, style=_STYLES[one.outcome]),
            Text(one_line(" + ".join(one.trial.specs), 40)),
            Text(one_line(f"step {one.trial.step} {one.trial.name}", 30), style="quiet"),
            Text(one_line(one.detail, 120)),
        )
    out.print(table)
    if len(shown) > _MOST_SHOWN:
        out.print(Text(f"… and {len(shown) - _MOST_SHOWN} more; --json has all", style="quiet"))


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[one]} {one}" for one in OUTCOMES if counts[one]) or "none yet"
