"""Text that grows at its end, wrapped into lines of a given width. Knows columns; not content."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.text import Text

from playhead.views.text.safe import clean

_WORDS = re.compile(r"[^ ]+ *| +")
_TAB = "    "
# Minimum room for words, however deep the indentation.
_MIN_ROOM = 6


class TextPage:
    """Wrapped lines. Only the last one still grows."""

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
        """Return the free columns of the last line."""
        return max(0, self.width - self.lines[-1].cell_len)

    def begin(self, prefix: Text, hang: Text | None = None) -> None:
        """Start a line with a prefix. Continuation lines start with `hang`."""
        if not self.is_at_start:
            self.lines.append(Text())
        self._is_full = False
        self._hang = hang if hang is not None else Text(" " * (prefix.cell_len + 2))
        if self._hang.cell_len > self.width // 2:
            self._hang = Text(" " * (self.width // 4))
        if prefix.cell_len > self.width - _MIN_ROOM:
            prefix.truncate(self.width - _MIN_ROOM)
        self.lines[-1].append_text(prefix)

    def write(self, text: str, style: str = "") -> None:
        """Append untrusted text: control characters are made visible, and long lines wrap between words."""
        first, *rest = clean(text).replace("\t", _TAB).split("\n")
        self._fill(first, style)
        for line in rest:
            self._wrap()
            self._fill(line, style)

    def put(self, text: Text) -> None:
        """Append a text to this line; it is truncated, not wrapped."""
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
        """Append one word with its trailing spaces."""
        if self._is_full:
            self._wrap()
        if cell_len(word.rstrip()) > self.room:
            self._make_room()
        while True:
            head = _cut(word, self.room)
            self.lines[-1].append(head, style=style)
            rest = word[len(head) :]
            if not rest.strip():
                # No room for the trailing space: the next word starts a line.
                self._is_full = bool(rest)
                return
            word = rest
            self._wrap()

    def _make_room(self) -> None:
        """Start a line, and move the beginning of a word to it that arrived in an earlier piece."""
        here = self.lines[-1]
        stem = here.plain.rpartition(" ")[2]
        if not here.plain[: len(here.plain) - len(stem)].strip():
            return  # the line is empty before the word: a new line has no more room
        if not stem:
            self._wrap()
            return
        moved = here[len(here.plain) - len(stem) :]
        here.right_crop(len(stem))
        self._wrap()
        self.lines[-1].append_text(moved)


def _cut(word: str, room: int) -> str:
    """Return the part of `word` that fits into `room` columns."""
    if cell_len(word) <= room:
        return word
    width = 0
    for taken, letter in enumerate(word):
        width += cell_len(letter)
        if width > room:
            return word[:taken]
    return word
