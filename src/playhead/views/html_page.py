"""The frame of a script-free HTML page, for CI servers that forbid scripts, and the results of a batch as such a page.

Uses the style sheets of the viewer. Text from tapes is always escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from playhead.events import BOUNDARIES
from playhead.story.verdicts import Case, Outcome, Results, Verdict
from playhead.views.text import words
from playhead.views.text.safe import clean
from playhead.views.web.viewer_files import digest, styles

# The viewer fills a window and scrolls inside it; a report is as long as its content, also on paper.
_OWN = """
html, body, #app { height: auto; min-height: 100%; }
.page { overflow: visible; }
.aligned-body > * + * { margin-top: 6px; }
.page:has(#only:checked) .step-same { display: none; }
summary.diff-fold { text-align: center; cursor: pointer; list-style: none; }
li:target { outline: 2px solid var(--accent); outline-offset: -1px; }
@media print {
  .aligned-bar { display: none; }
  .diff, .terminal { max-height: none; }
  details:not([open]) { break-inside: avoid; }
}
"""
_STYLES = ("base.css", "detail.css", "pages.css")
_ICON = (
    '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">'
    '<path d="M2.5 5v6M5.5 3v10M8.5 6v4M11.5 4v8M14 7v2"/></svg>'
)


def page(title: str, kind: str, body: Iterable[str]) -> str:
    """Return a whole page; `body` is HTML. Its policy forbids scripts and downloads, whatever a tape contains."""
    style = f"{styles(_STYLES)}{_OWN}"
    policy = f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)} · Playhead</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app">\n<a class="skip-link" href="#main">To the content</a>\n'
        f'<div class="topbar" role="banner"><span class="brand">{_ICON}<span>Playhead</span></span>'
        f'<span class="nav">{kind}</span></div>\n<main class="page" id="main">\n'
        + "\n".join(body)
        + "\n</main>\n</div>\n</body>\n</html>\n"
    )


def text(taped: object) -> str:
    """Escape untrusted text: no markup, no characters that hide or reorder text."""
    return escape(clean(str(taped)), quote=True)


def head(title: str, *parts: str) -> str:
    """Return the head of a page. All arguments are HTML already."""
    return f'<div class="page-head"><h1>{title}</h1>{"".join(parts)}</div>'


def table(look: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table. A heading that ends in `#` is a column of numbers; one that ends in `?` is hidden on a narrow
    screen. Cells are HTML already.
    """
    names = list(headings)
    marks = [_mark(name) for name in names]
    top = "".join(
        f'<th scope="col"{mark}>{text(name.rstrip("?#"))}</th>'
        for name, mark in zip(names, marks, strict=True)
    )
    lines = (
        "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row, marks, strict=True))
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    head_of = f"<thead><tr>{top}</tr></thead>"
    return f'<div class="wide"><table class="{look}">\n{head_of}\n<tbody>\n{body}</tbody>\n</table></div>'


def _mark(name: str) -> str:
    looks = [*(["n"] if "#" in name[-2:] else []), *(["extra"] if "?" in name[-2:] else [])]
    return f' class="{" ".join(looks)}"' if looks else ""


def fold(summary: str, body: str, *, look: str = "", opened: bool = False) -> str:
    """Return a block that unfolds. Both arguments are HTML already."""
    named = f' class="{look}"' if look else ""
    return (
        f"<details{named}{' open' if opened else ''}><summary>{summary}</summary>{body}</details>"
    )


def boundary_mark(boundary: str) -> str:
    """Return the coloured dot of a boundary; an unknown one has the dot of a note."""
    known = boundary if boundary in BOUNDARIES else "note"
    return f'<span class="mark mark-{"tool" if known == "mcp" else known}"></span>'


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
        *(f"<p>{text(fact)}</p>" for fact in results.facts),
    )
    if results.failing:
        yield "<h2>Tapes that did not pass</h2>"
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
    rows = "".join(_verdict_row(one, len(case.verdicts)) for one in bad)
    return fold(summary, rows, look="divergence", opened=True)


def _verdict_row(verdict: Verdict, rounds: int) -> str:
    heading = f'<p class="quiet">round {verdict.round} of {rounds}</p>' if rounds > 1 else ""
    reasons = "".join(f"<li>{text(one)}</li>" for one in verdict.why)
    more = ""
    if verdict.replay:
        command = f"playhead diff {verdict.tape} {verdict.replay}"
        more += f"<p><code>{text(command)}</code></p>"
    if verdict.said.strip():
        more += fold("what it printed", f'<pre class="terminal">{text(verdict.said)}</pre>')
    return f"{heading}{f'<ul>{reasons}</ul>' if reasons else ''}{more}"
