"""The results of a batch as a page: totals first, then failures, then all cases. Knows verdicts."""

from __future__ import annotations

from collections.abc import Iterator

from playhead.story.verdicts import Case, Outcome, Results, Verdict
from playhead.views.html.html_page import fold, head, page, table, text
from playhead.views.text import words

_SIGNS: dict[Outcome, str] = {
    "passed": "✓",
    "diverged": "≠",
    "broken": "✗",
    "unusable": "!",
    "error": "!",
}
_HEADINGS = (
    *("tape", "verdict", "passes#", "answers#?", "steps#?", "tokens#?", "cost#?", "alike#?"),
    "took#",
)


def results_page(results: Results) -> str:
    return page("Batch", "Batch", _body(results))


def _body(results: Results) -> Iterator[str]:
    sums = "".join(
        _outcome(name, f"{number} {name}") for name, number in results.counts.items() if number
    )
    facts = [text(results.started_at), words.duration(results.took_s), text(results.host)]
    if results.not_run:
        facts.append(f"{results.not_run} not run")
    yield head(
        f"{len(results.cases)} {'tape' if len(results.cases) == 1 else 'tapes'}",
        f'<p class="outcomes">{sums or "nothing was run"}</p>',
        f'<p class="quiet">{" · ".join(one for one in facts if one)}</p>',
    )
    if results.failing:
        yield "<h2>What does not hold</h2>"
        yield from (_failing(case) for case in results.failing)
    yield "<h2>All</h2>"
    yield table("run-table batch-table", _HEADINGS, (_row(case) for case in results.cases))


def _outcome(outcome: Outcome, said: str) -> str:
    return f'<span class="outcome outcome-{outcome}">{_SIGNS[outcome]} {said}</span>'


def _row(case: Case) -> list[str]:
    figures = case.verdicts[-1].figures
    alike = figures.get("similarity")
    tokens, steps = figures.get("tokens"), figures.get("steps")
    named = f"<strong>{text(case.name)}</strong>"
    return [
        f'<div class="run-cell">{named}<div class="quiet small">{text(case.tape)}</div></div>',
        _look(case),
        f"{case.passes}/{len(case.verdicts)}",
        str(case.answers or "–"),
        words.count(None if steps is None else int(steps)),
        words.count(None if tokens is None else int(tokens)),
        words.money(figures.get("cost_usd")),
        "–" if alike is None else f"{alike:.0%}",
        words.duration(case.took_s),
    ]


def _look(case: Case) -> str:
    flaky = '<span class="tag odd">flaky</span>' if case.flaky else ""
    return _outcome(case.outcome, case.outcome) + flaky


def _failing(case: Case) -> str:
    bad = [one for one in case.verdicts if one.outcome != "passed"]
    summary = f'{_look(case)}<strong>{text(case.name)}</strong><span class="quiet">{text(case.tape)}</span>'
    told = "".join(_told(one, len(case.verdicts)) for one in bad)
    return fold(summary, told, look="divergence", opened=True)


def _told(verdict: Verdict, rounds: int) -> str:
    heading = f'<p class="quiet">round {verdict.round} of {rounds}</p>' if rounds > 1 else ""
    reasons = "".join(f"<li>{text(one)}</li>" for one in verdict.why)
    more = ""
    if verdict.replay:
        command = f"playhead diff {verdict.tape} {verdict.replay}"
        more += f"<p><code>{text(command)}</code></p>"
    if verdict.said.strip():
        more += fold("what it printed", f'<pre class="terminal">{text(verdict.said)}</pre>')
    return f"{heading}{f'<ul>{reasons}</ul>' if reasons else ''}{more}"
