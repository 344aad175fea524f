"""What stands in a list: lines that fit a width, made when they are first seen. Knows rich's text; not
the widget that shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rich.text import Text

from playhead.views.text.safe import clean


class Rows(Protocol):
    """`fit` before anything else, and whenever the width changes."""

    def fit(self, width: int) -> None:
        """Lines are to be so wide from now on."""

    def __len__(self) -> int: ...

    def text(self, at: int) -> Text:
        """One line; longer than the width it is cut."""


class Made:
    """Lines that are made all at once for a width: a page of details, a table."""

    def __init__(self, make: Callable[[int], Sequence[Text]]) -> None:
        self._make = make
        self._width = -1
        self._lines: Sequence[Text] = ()

    def fit(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lines = self._make(width)

    def __len__(self) -> int:
        return len(self._lines)

    def text(self, at: int) -> Text:
        return self._lines[at]


NOTHING = Made(lambda _: ())


def folded(text: str, width: int, *, style: str = "", indent: str = "") -> list[Text]:
    """Somebody else's text, cleaned, in lines of at most `width` columns."""
    room = max(8, width - len(indent))
    lines: list[Text] = []
    for line in clean(text).replace("\t", "    ").split("\n"):
        at = Text(line, style=style)
        pieces = at.divide(_cuts(line, room)) if at.cell_len > room else [at]
        lines += [Text.assemble(indent, piece) for piece in pieces]
    return lines


def _cuts(line: str, room: int) -> list[int]:
    """Between words where that is possible. Wide characters count as two, to be safe."""
    cuts: list[int] = []
    start = 0
    step = room if line.isascii() else max(1, room // 2)
    while len(line) - start > step:
        space = line.rfind(" ", start + step // 2, start + step)
        start = space + 1 if space >= 0 else start + step
        cuts.append(start)
    return cuts
