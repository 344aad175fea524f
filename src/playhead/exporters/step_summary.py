"""The results of a batch as a GitHub step summary. Knows GitHub's Markdown and its limits."""

from __future__ import annotations

from html import escape

from playhead.story.verdicts import Case, Results

_MARKS = {"passed": "✅", "diverged": "❌", "broken": "❌", "unusable": "⚠️", "error": "⚠️"}
# GitHub drops a summary of more than a mebibyte: https://docs.github.com/actions (workflow commands)
_MOST_CASES = 100
_MOST_TEXT = 300


def step_summary(results: Results) -> str:
    sums = ", ".join(f"{number} {name}" for name, number in results.counts.items() if number)
    lines = [
        f"### Playhead batch: {sums or 'nothing was run'}",
        "",
        f"{len(results.cases)} tapes in {results.took_s:.1f} s"
        + (f", {results.not_run} not run" if results.not_run else ""),
        "",
    ]
    failing = results.failing
    if failing:
        lines += ["| tape | verdict | passes | why |", "|---|---|---|---|"]
        lines += [_row(case) for case in failing[:_MOST_CASES]]
        if len(failing) > _MOST_CASES:
            lines += ["", f"and {len(failing) - _MOST_CASES} more"]
    return "\n".join(lines) + "\n"


def _row(case: Case) -> str:
    why = "<br>".join(_cell(one) for one in case.worst.why[:3])
    flaky = " (flaky)" if case.flaky else ""
    verdict = f"{_MARKS[case.outcome]} {case.outcome}{flaky}"
    named = f"{_cell(case.name)} <code>{_cell(case.tape)}</code>"
    return f"| {named} | {verdict} | {case.passes}/{len(case.verdicts)} | {why} |"


def _cell(text: str) -> str:
    """Taped text inside a table: no markup of either kind, no line of its own."""
    return escape(" ".join(text.split())[:_MOST_TEXT]).translate(_MARKUP)


_MARKUP = {ord(mark): f"&#{ord(mark)};" for mark in "\\`*_[]|~@"}
