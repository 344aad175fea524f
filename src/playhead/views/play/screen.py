"""A page that grows above a bar that stays. Knows cursor movement; not what is written.

The last row is taken out of what scrolls, so the page goes on into the terminal's own history and
the bar is only written where it changes. Every change is one write: nothing flickers.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from playhead.views.play.terminal import RESET, Terminal
from playhead.views.play.text_page import TextPage

# Not drawn until it is whole, by terminals that know of it; ignored by the others.
_TOGETHER, _DONE = "\x1b[?2026h", "\x1b[?2026l"
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_HIDE = "\x1b[?25l"


class Screen:
    """`open` before, `close` after; in between `follow` a page, `draw` others, set the `bar`."""

    def __init__(self, terminal: Terminal, console: Console) -> None:
        self._terminal = terminal
        self._console = console
        self.width, self.height = terminal.size()
        self._bar = ""
        # How much of the page is on the screen: its finished lines, and the unfinished one.
        self._finished = 0
        self._unfinished = ""

    def open(self) -> None:
        # Setting the region moves the cursor home; and it must not stand on the bar's row.
        region = f"\n\x1b[A{_SAVE}\x1b[1;{max(1, self.height - 1)}r{_RESTORE}"
        self._write(_HIDE + region)

    def close(self) -> None:
        bar = f"{_SAVE}\x1b[{self.height};1H\x1b[2K{_RESTORE}"
        line = "" if not self._unfinished else "\r\n"
        self._write(f"{RESET}{bar}{line}")

    def refit(self) -> bool:
        """Whether the terminal has another size than before, or was used by somebody else; then
        all must be drawn again.
        """
        size = self._terminal.size()
        if size == (self.width, self.height) and not self._terminal.was_left():
            return False
        self.width, self.height = size
        self._bar = ""
        self._write(f"{_HIDE}\x1b[1;{max(1, self.height - 1)}r\x1b[H\x1b[J")
        return True

    def follow(self, page: TextPage) -> None:
        """Write what has been added to the page since it was last followed or drawn."""
        written = []
        for at in range(self._finished, len(page.lines)):
            line = page.lines[at]
            if at == self._finished:
                written.append(self._grown(line))
            else:
                written.append("\r\n" + self._styled(line))
        self._finished = len(page.lines) - 1
        self._unfinished = page.lines[-1].plain
        if any(written):
            self._write("".join(written))

    def draw(self, page: TextPage) -> None:
        """The end of the page, as much as fits, in place of whatever is there."""
        rows = max(1, self.height - 1)
        shown = page.lines[-rows:]
        self._write("\x1b[H\x1b[J" + "\r\n".join(self._styled(line) for line in shown))
        self._bar = ""
        self._finished = len(page.lines) - 1
        self._unfinished = page.lines[-1].plain

    def draw_lines(self, lines: Sequence[Text]) -> None:
        """Something else than the page; `draw` brings it back."""
        self._write("\x1b[H\x1b[J" + "\r\n".join(self._styled(line) for line in lines))
        self._bar = ""

    def set_bar(self, bar: Text) -> None:
        shown = self._styled(bar)
        if shown != self._bar:
            self._bar = shown
            self._write(f"{_SAVE}\x1b[{self.height};1H{shown}\x1b[K{_RESTORE}")

    def _grown(self, line: Text) -> str:
        """What to write where a part of the line stands already."""
        if line.plain == self._unfinished:
            return ""
        if line.plain.startswith(self._unfinished):
            return self._styled(line[len(self._unfinished) :] if self._unfinished else line)
        return "\r\x1b[K" + self._styled(line)  # a word has moved down to the next line

    def _styled(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()

    def _write(self, text: str) -> None:
        self._terminal.write(f"{_TOGETHER}{text}{_DONE}")
