"""Two runs as a page: figures, then the steps side by side, with differing steps unfolded. Pure.

Texts are compared line by line, in the form of `static/diff.js`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from playhead.story.comparison.compare import Comparison, Kind, Side, Step
from playhead.views.html_page import boundary_mark, fold, head, page, table, text
from playhead.views.text.safe import one_line
from playhead.views.text.words import change, shown

_AROUND = 3
# Only the beginning of very long texts: a page must open.
_MOST_TEXT = 20_000
_MOST_LINES = 400
# The texts of a step, by the names of its members, with their headings.
_TITLES = {"asked": "request", "answered": "response"}
_LOOKS = {"same": ("div", " "), "gone": ("del", "−"), "new": ("ins", "+")}


def differences(before: str, after: str) -> str:
    left, right = before[:_MOST_TEXT].split("\n"), after[:_MOST_TEXT].split("\n")
    parts: list[str] = []
    shown = 0
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, left, right).get_opcodes():
        if shown > _MOST_LINES:
            parts.append('<div class="diff-fold">… and so on</div>')
            break
        if tag == "equal":
            parts.append(_unchanged(left[i1:i2], first=i1 == 0, last=i2 == len(left)))
            continue
        parts += [_line("gone", one) for one in left[i1:i2][:_MOST_LINES]]
        parts += [_line("new", one) for one in right[j1:j2][:_MOST_LINES]]
        shown += i2 - i1 + j2 - j1
    if max(len(before), len(after)) > _MOST_TEXT:
        parts.append(f'<div class="diff-fold">Only the first {_MOST_TEXT:,} characters.</div>')
    return (
        '<div class="diff" role="region" aria-label="Differences" tabindex="0">'
        + "".join(parts)
        + "</div>"
    )


def _unchanged(lines: Sequence[str], *, first: bool, last: bool) -> str:
    """Return equal lines next to a change as they are, and the others behind a line that unfolds."""
    begin = 0 if first else _AROUND
    end = len(lines) if last else max(begin, len(lines) - _AROUND)
    if first and last:
        end = 0
    hidden = lines[begin:end]
    if not hidden:
        return "".join(_line("same", one) for one in lines)
    noun = "line" if len(hidden) == 1 else "lines"
    inside = "".join(_line("same", one) for one in hidden[:_MOST_LINES])
    folded = (
        f'<details><summary class="diff-fold">{len(hidden)} unchanged {noun}</summary>'
        f"{inside}</details>"
    )
    return (
        "".join(_line("same", one) for one in lines[:begin])
        + folded
        + "".join(_line("same", one) for one in lines[end:])
    )


def _line(kind: str, line: str) -> str:
    tag, sign = _LOOKS[kind]
    shown = text(line) or " "
    return f'<{tag} class="diff-line"><span class="diff-sign">{sign}</span><span>{shown}</span></{tag}>'


_SIGNS: dict[Kind, tuple[str, str]] = {
    "same": ("=", "the same"),
    "changed": ("≠", "changed"),
    "added": ("+", "only right"),
    "removed": ("−", "only left"),
}
_NAMES = {"duration_s": "duration", "cost_usd": "cost", "llm_calls": "LLM calls"}
# Limits the size of a page: a short part of equal texts, a longer part of different ones.
_GLIMPSE = 1_000
_MOST_TEXT = 20_000
_BRIEF = 120


def comparison_page(comparison: Comparison) -> str:
    return page(f"{comparison.left} → {comparison.right}", "Compare", _body(comparison))


def _body(comparison: Comparison) -> Iterator[str]:
    counts = {kind: sum(step.kind == kind for step in comparison.steps) for kind in _SIGNS}
    said = ", ".join(f"{number} {_SIGNS[kind][1]}" for kind, number in counts.items() if number)
    verdict = "The same trajectory" if comparison.same else "Trajectories differ"
    yield head(verdict, f'<p class="quiet">{said or "no steps"}</p>')
    headings = ("", f"{comparison.left}#", f"{comparison.right}#", "change#")
    yield table("figure-table", headings, _figures(comparison))
    yield _bar(comparison)
    yield (
        '<div class="aligned-head" aria-hidden="true"><span></span>'
        f"<strong>{text(comparison.left)}</strong><strong>{text(comparison.right)}</strong></div>"
    )
    yield '<ol class="aligned">'
    yield from (_step(at, step) for at, step in enumerate(comparison.steps, 1))
    yield "</ol>"


def _figures(comparison: Comparison) -> Iterator[list[str]]:
    for figure in comparison.figures:
        if figure.left or figure.right:
            name = _NAMES.get(figure.name, figure.name.replace("_", " "))
            left, right = shown(figure, figure.left), shown(figure, figure.right)
            yield [_quiet(name), text(left), text(right), _quiet(change(figure))]
    if comparison.result_similarity is not None:
        yield [_quiet("last answers alike"), "", "", f"{comparison.result_similarity:.0%}"]


def _quiet(shown: str) -> str:
    return f'<span class="quiet">{text(shown)}</span>'


def _bar(comparison: Comparison) -> str:
    if comparison.first_difference is None:
        return ""
    return (
        '<div class="aligned-bar">'
        '<label><input type="checkbox" id="only" autocomplete="off">only differences</label>'
        f'<a class="primary" href="#step-{comparison.first_difference + 1}">First difference</a></div>'
    )


def _step(number: int, step: Step) -> str:
    sign, word = _SIGNS[step.kind]
    alike = ""
    if step.kind == "changed" and step.similarity is not None:
        alike = _quiet(f"answers {step.similarity:.0%} alike")
    summary = (
        f'<span class="sign sign-{step.kind}" title="{word}">{sign}</span>'
        f"{_side(step.left)}{_side(step.right)}{alike}"
    )
    body = f'<div class="aligned-body">{_whole(step)}</div>'
    opened = fold(summary, body, opened=step.kind == "changed")
    return f'<li id="step-{number}" class="step-{step.kind}">{opened}</li>'


def _side(side: Side | None) -> str:
    if side is None:
        return '<span class="side none">–</span>'
    rung = f'<span class="tag">{text(side.rung)}</span>' if side.rung else ""
    return (
        f'<span class="side">{boundary_mark(side.boundary)}<span class="quiet">#{side.number} </span>'
        f"<strong>{text(one_line(side.name, _BRIEF))}</strong>"
        f'<span class="side-brief">{text(one_line(side.answered, _BRIEF))}</span>{rung}</span>'
    )


def _whole(step: Step) -> str:
    left, right = step.left, step.right
    if left is not None and right is not None:
        changed = [
            f"<h3>{title}</h3>{differences(before, after)}"
            for name, title in {"name": "name", **_TITLES}.items()
            if (before := getattr(left, name)) != (after := getattr(right, name))
        ]
        return "".join(changed) or _texts(left, _GLIMPSE)
    one = left or right
    return "" if one is None else _texts(one, _MOST_TEXT)


def _texts(side: Side, most: int) -> str:
    return "".join(
        f"<h3>{title}</h3><pre>{text(value[:most])}{'…' if len(value) > most else ''}</pre>"
        for name, title in _TITLES.items()
        if (value := getattr(side, name))
    )
