"""The results of a batch as a page: the sum first, then what failed, then all. Knows verdicts."""

from __future__ import annotations

from collections.abc import Iterator

from playhead.model.verdicts import Case, Results, Verdict
from playhead.views.html.page import fold, page, table, text
from playhead.views.text import words

_LOOKS = {
    "passed": ("✓ passed", "good"),
    "diverged": ("✗ diverged", "bad"),
    "broken": ("✗ broken", "bad"),
    "unusable": ("! unusable", "odd"),
    "error": ("! error", "odd"),
}


def results_page(results: Results) -> str:
    return page("Playhead batch", _body(results))


def _body(results: Results) -> Iterator[str]:
    sums = " · ".join(
        f'<span class="{_LOOKS[name][1]}">{number} {name}</span>'
        for name, number in results.counts.items()
        if number
    )
    yield f"<h1>{len(results.cases)} tapes: {sums or 'nothing was run'}</h1>"
    facts = [text(results.started_at), words.duration(results.took_s), text(results.host)]
    if results.not_run:
        facts.append(f"{results.not_run} not run")
    yield f'<p class="quiet">{" · ".join(one for one in facts if one)}</p>'
    yield from (_failure(case) for case in results.failing)
    yield table(
        ("tape", "verdict", "passes#", "answers#", "steps#", "tokens#", "cost#", "like#", "took#"),
        (_row(case) for case in results.cases),
    )


def _row(case: Case) -> list[str]:
    figures = case.verdicts[-1].figures
    alike = figures.get("similarity")
    tokens, steps = figures.get("tokens"), figures.get("steps")
    return [
        f"{text(case.name)}<br><code class='quiet'>{text(case.tape)}</code>",
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
    said, style = _LOOKS[case.outcome]
    flaky = ' <span class="odd">flaky</span>' if case.flaky else ""
    return f'<span class="{style}">{said}</span>{flaky}'


def _failure(case: Case) -> str:
    bad = [one for one in case.verdicts if one.outcome != "passed"]
    summary = f"{_look(case)} {text(case.name)} <code class='quiet'>{text(case.tape)}</code>"
    return fold(summary, "".join(_told(one, len(case.verdicts)) for one in bad), opened=True)


def _told(verdict: Verdict, rounds: int) -> str:
    heading = f'<p class="quiet">round {verdict.round} of {rounds}</p>' if rounds > 1 else ""
    reasons = "".join(f"<li>{text(one)}</li>" for one in verdict.why)
    more = ""
    if verdict.replay:
        command = f"playhead diff {verdict.tape} {verdict.replay}"
        more += f'<p class="quiet"><code>{text(command)}</code></p>'
    if verdict.said.strip():
        more += fold("what it printed", f"<pre>{text(verdict.said)}</pre>")
    return f"{heading}<ul>{reasons}</ul>{more}"
