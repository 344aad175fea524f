"""Show two texts line by line as HTML: kept, removed and added lines. Pure; looks like `static/diff.js`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from playhead.views.html.html_page import text

_AROUND = 3
# Of the longest texts the beginning: a page must open.
_MOST_TEXT = 20_000
_MOST_LINES = 400
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
    """Those beside a change, and the others behind a line that unfolds."""
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
    told = text(line) or " "
    return (
        f'<{tag} class="diff-line"><span class="diff-sign">{sign}</span><span>{told}</span></{tag}>'
    )
