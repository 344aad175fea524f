"""Two runs as a page: figures, then the steps, those that differ unfolded. Knows comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from itertools import groupby

from playhead.model.compare import Comparison, Side, Step
from playhead.views.figures import change, shown
from playhead.views.html.page import fold, page, table, text
from playhead.views.text.safe import one_line

_MARKS = {
    "same": ("=", "quiet"),
    "changed": ("~", "odd"),
    "added": ("+", "good"),
    "removed": ("−", "bad"),
}
# What is the same is told shortly, and of the longest texts the beginning: a page must open.
_MOST_TEXT = 20_000
_MOST_LINES = 400


def comparison_page(comparison: Comparison) -> str:
    return page(f"{comparison.left} → {comparison.right}", _body(comparison))


def _body(comparison: Comparison) -> Iterator[str]:
    counts = {kind: sum(step.kind == kind for step in comparison.steps) for kind in _MARKS}
    said = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    verdict = "same trajectory" if comparison.same else "trajectories differ"
    yield f'<h1 class="{"good" if comparison.same else "odd"}">{verdict}</h1>'
    yield f'<p class="quiet">{text(said or "no steps")}</p>'
    yield table(
        ("", f"{comparison.left}#", f"{comparison.right}#", "change#"), _figures(comparison)
    )
    numbered = list(enumerate(comparison.steps, 1))
    for same, group in groupby(numbered, key=lambda pair: pair[1].kind == "same"):
        steps = list(group)
        if same:
            yield _folded(steps)
        else:
            yield from (_different(number, step) for number, step in steps)


def _figures(comparison: Comparison) -> Iterator[list[str]]:
    for figure in comparison.figures:
        if figure.left or figure.right:
            name = text(figure.name.replace("_", " "))
            left, right = shown(figure, figure.left), shown(figure, figure.right)
            yield [name, text(left), text(right), text(change(figure))]
    if comparison.result_similarity is not None:
        yield ["result similarity", "", "", f"{comparison.result_similarity:.0%}"]


def _folded(steps: list[tuple[int, Step]]) -> str:
    first, last = steps[0][0], steps[-1][0]
    span = f"step {first}" if first == last else f"steps {first} to {last}"
    rows = "".join(f"<li>{_heading(number, step)}</li>" for number, step in steps)
    return fold(f'<span class="quiet">= {span}: the same</span>', f"<ul>{rows}</ul>")


def _heading(number: int, step: Step) -> str:
    mark, style = _MARKS[step.kind]
    side = step.right or step.left
    if side is None:
        return ""
    named = f'<span class="{style}">{mark} {number}</span> {text(side.boundary)}'
    told = f"{named} <strong>{text(one_line(side.name, 120))}</strong>"
    if step.kind == "changed" and step.similarity is not None:
        told += f' <span class="quiet">answers {step.similarity:.0%} alike</span>'
    return told + (f' <span class="quiet">{text(side.rung)}</span>' if side.rung else "")


def _different(number: int, step: Step) -> str:
    heading = _heading(number, step)
    if step.left is not None and step.right is not None:
        parts = [_texts(name, step.left, step.right) for name in ("name", "asked", "answered")]
        return fold(heading, "".join(parts), opened=True)
    side = step.right or step.left
    if side is None:
        return ""
    body = "".join(
        f'<p class="quiet">{name}</p><pre>{text(getattr(side, name)[:_MOST_TEXT])}</pre>'
        for name in ("asked", "answered")
    )
    return fold(heading, body)


def _texts(name: str, left: Side, right: Side) -> str:
    before, after = getattr(left, name)[:_MOST_TEXT], getattr(right, name)[:_MOST_TEXT]
    if before == after:
        return ""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    told = "".join(_line(line) for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        told += f"… {len(lines) - _MOST_LINES} more lines"
    return f'<p class="quiet">{name}</p><pre>{told}</pre>'


def _line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{text(line)}</{tag}>" if tag else f"{text(line)}\n"
