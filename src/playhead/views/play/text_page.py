"""Text that grows at its end, wrapped into lines of a given width. Knows columns; not content."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.text import Text

from playhead.views.text.safe import clean

_WORDS = re.compile(r"[^ ]+ *| +")
_TAB = "    "
# What is left for words, however far they are moved in.
_NARROWEST = 6


class TextPage:
    """`lines` as they would stand on paper; only the last one is still written on."""

    def __init__(self, width: int) -> None:
        self.width = max(20, width)
        self.lines: list[Text] = [Text()]
        self._hang = Text()
        self._is_full = False

    @property
    def is_at_start(self) -> bool:
        return not self.lines[-1].plain

    @property
    def room(self) -> int:
        """Columns left on the last line."""
        return max(0, self.width - self.lines[-1].cell_len)

    def begin(self, prefix: Text, hang: Text | None = None) -> None:
        """A new line with a prefix; what does not fit goes on below it, after `hang`."""
        if not self.is_at_start:
            self.lines.append(Text())
        self._is_full = False
        self._hang = hang if hang is not None else Text(" " * (prefix.cell_len + 2))
        if self._hang.cell_len > self.width // 2:
            self._hang = Text(" " * (self.width // 4))
        if prefix.cell_len > self.width - _NARROWEST:
            prefix.truncate(self.width - _NARROWEST)
        self.lines[-1].append_text(prefix)

    def write(self, text: str, style: str = "") -> None:
        """Somebody else's text: cleaned, and broken between words where it does not fit."""
        first, *rest = clean(text).replace("\t", _TAB).split("\n")
        self._fill(first, style)
        for line in rest:
            self._wrap()
            self._fill(line, style)

    def put(self, text: Text) -> None:
        """Our own words, on this line alone."""
        if text.cell_len > self.room:
            text.truncate(self.room, overflow="ellipsis")
        self.lines[-1].append_text(text)

    def _wrap(self) -> None:
        self.lines.append(self._hang.copy())
        self._is_full = False

    def _fill(self, line: str, style: str) -> None:
        if not self._is_full and cell_len(line) <= self.room:
            self.lines[-1].append(line, style=style)
            return
        for word in _WORDS.findall(line):
            self._place(word, style)

    def _place(self, word: str, style: str) -> None:
        """One word with the spaces after it."""
        if self._is_full:
            self._wrap()
        if cell_len(word.rstrip()) > self.room:
            self._make_room()
        while True:
            head = _cut(word, self.room)
            self.lines[-1].append(head, style=style)
            rest = word[len(head) :]
            if not rest.strip():
                # The space that ends this word has no room: the next word begins a line.
                self._is_full = bool(rest)
                return
            word = rest
            self._wrap()

    def _make_room(self) -> None:
        """A new line, and onto it the beginning of a word that came in an earlier piece."""
        here = self.lines[-1]
        stem = here.plain.rpartition(" ")[2]
        if not here.plain[: len(here.plain) - len(stem)].strip():
            return  # nothing else is on this line: a new one would have no more room
        if not stem:
            self._wrap()
            return
        moved = here[len(here.plain) - len(stem) :]
        here.right_crop(len(stem))
        self._wrap()
        self.lines[-1].append_text(moved)


def _cut(word: str, room: int) -> str:
    """As much of `word` as fits into `room` columns."""
    if cell_len(word) <= room:
        return word
    width = 0
    for taken, letter in enumerate(word):
        width += cell_len(letter)
        if width > room:
            return word[:taken]
    return word
