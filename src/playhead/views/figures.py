"""Figures of two runs in words, for a terminal and for a page. Pure."""

from __future__ import annotations

from playhead.story.compare import Figure
from playhead.views.text import words


def shown(figure: Figure, value: float | None) -> str:
    if figure.name == "duration_s":
        return words.duration(value)
    if figure.name == "cost_usd":
        return words.money(value)
    return words.count(None if value is None else int(value))


def change(figure: Figure) -> str:
    if figure.left is None or figure.right is None or figure.left == figure.right:
        return ""
    if not figure.left:
        return "new"
    return f"{(figure.right - figure.left) / figure.left:+.0%}"
