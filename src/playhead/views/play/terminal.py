"""A real terminal: raw keys, its size, and a screen with a growing page above a fixed bar. Does not know runs.

The last row is excluded from scrolling, so the page scrolls into the terminal's own history and the bar is
written only when it changes. Every change is one write, so nothing flickers.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.text import Text

from playhead.views.play.text_page import TextPage

# Make all rows scroll again and show the cursor. Setting the region moves the cursor, so it is saved.
RESET = "\x1b7\x1b[r\x1b8\x1b[?25h"


class Terminal(Protocol):
    """The operations that a playback needs; tests implement them without a screen."""

    def size(self) -> tuple[int, int]:
        """Return columns and rows."""

    def write(self, text: str) -> None:
        """Write the whole text in one go."""

    def keys(self, timeout_s: float) -> list[str]:
        """Wait for keys, at most this long. Return as soon as one was pressed."""

    def was_suspended(self) -> bool:
        """Return whether the process was suspended since the last call: the screen was overwritten."""


class TtyTerminal:
    """Standard input and output of this process, as a context manager. The terminal's modes are restored at exit."""

    def __init__(self) -> None:
        self._in = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._out = sys.stdout.fileno()
        self._modes: list[Any] = []
        self._previous_handlers: dict[signal.Signals, Any] = {}
        self._suspended = False

    def __enter__(self) -> Self:
        sys.stdout.flush()
        if self._in is not None:
            self._modes = termios.tcgetattr(self._in)
            tty.setcbreak(self._in, termios.TCSADRAIN)
        for number, handler in ((signal.SIGTSTP, self._suspend), (signal.SIGCONT, self._continue)):
            self._previous_handlers[number] = signal.signal(number, handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        self._restore_modes()

    def _restore_modes(self) -> None:
        if self._in is not None:
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._modes)

    def _suspend(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: restore the terminal for the shell, then stop."""
        self._restore_modes()
        self.write(RESET)
        signal.raise_signal(signal.SIGSTOP)

    def _continue(self, number: int, frame: FrameType | None) -> None:
        """After `fg`: the shell has changed the modes and written on the screen."""
        if self._in is not None:
            tty.setcbreak(self._in, termios.TCSADRAIN)
        self._suspended = True

    def was_suspended(self) -> bool:
        suspended, self._suspended = self._suspended, False
        return suspended

    def size(self) -> tuple[int, int]:
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24

    def write(self, text: str) -> None:
        view = memoryview(text.encode(sys.stdout.encoding or "utf-8", "replace"))
        while view:
            view = view[os.write(self._out, view) :]

    def keys(self, timeout_s: float) -> list[str]:
        ready, _, _ = select.select([] if self._in is None else [self._in], [], [], timeout_s)
        if not ready or self._in is None:
            return []
        raw = os.read(self._in, 256)
        if not raw:  # hung up: no more keys will come
            self._in = None
        return keys_in(raw)


# CSI and SS3 sequences, with the parameters that modifiers add; then any single character.
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;]*([A-Za-z~])|O([A-Za-z]))|(?s:.)")
_ARROWS = {b"C": "right", b"D": "left", b"H": "home", b"F": "end"}
_NAMES = {" ": "space", "=": "+", "_": "-", "h": "?", "Q": "q", "\x03": "q", "\x04": "q"}


def keys_in(raw: bytes) -> list[str]:
    """Return the names of the pressed keys: `space`, `left`, `right`, `home`, `end`, or the character itself.

    Unknown keys are ignored.
    """
    found = []
    for hit in _SEQUENCE.finditer(raw):
        final = hit.group(1) or hit.group(2)
        if final:
            name = _ARROWS.get(final, "")
        else:
            letter = hit.group().decode("latin-1")
            name = _NAMES.get(letter, letter if letter.isprintable() else "")
        if name:
            found.append(name)
    return found


# Synchronized output: terminals that support it draw everything in between at once.
_BEGIN_SYNC, _END_SYNC = "\x1b[?2026h", "\x1b[?2026l"
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_HIDE = "\x1b[?25l"


class Screen:
    """A page above a status bar. Call `open` first and `close` last."""

    def __init__(self, terminal: Terminal, console: Console) -> None:
        self._terminal = terminal
        self._console = console
        self.width, self.height = terminal.size()
        self._bar = ""
        # The part of the page that is on the screen: the number of finished lines, and the text of the last one.
        self._finished = 0
        self._unfinished = ""

    def open(self) -> None:
        # Setting the region moves the cursor to the top; and it must not be on the row of the bar.
        region = f"\n\x1b[A{_SAVE}\x1b[1;{max(1, self.height - 1)}r{_RESTORE}"
        self._write(_HIDE + region)

    def close(self) -> None:
        bar = f"{_SAVE}\x1b[{self.height};1H\x1b[2K{_RESTORE}"
        line = "" if not self._unfinished else "\r\n"
        self._write(f"{RESET}{bar}{line}")

    def resized(self) -> bool:
        """Adapt to the terminal. Return whether it was resized or suspended: then everything must be redrawn."""
        size = self._terminal.size()
        if size == (self.width, self.height) and not self._terminal.was_suspended():
            return False
        self.width, self.height = size
        self._bar = ""
        self._write(f"{_HIDE}\x1b[1;{max(1, self.height - 1)}r\x1b[H\x1b[J")
        return True

    def follow(self, page: TextPage) -> None:
        """Write the text that was added to the page since the last `follow` or `draw`."""
        written = []
        for at in range(self._finished, len(page.lines)):
            line = page.lines[at]
            if at == self._finished:
                written.append(self._completion(line))
            else:
                written.append("\r\n" + self._styled(line))
        self._finished = len(page.lines) - 1
        self._unfinished = page.lines[-1].plain
        if any(written):
            self._write("".join(written))

    def draw(self, page: TextPage) -> None:
        """Clear the screen and draw the end of the page, as much as fits."""
        rows = max(1, self.height - 1)
        shown = page.lines[-rows:]
        self._write("\x1b[H\x1b[J" + "\r\n".join(self._styled(line) for line in shown))
        self._bar = ""
        self._finished = len(page.lines) - 1
        self._unfinished = page.lines[-1].plain

    def draw_lines(self, lines: Sequence[Text]) -> None:
        """Draw other lines instead of the page; `draw` restores it."""
        self._write("\x1b[H\x1b[J" + "\r\n".join(self._styled(line) for line in lines))
        self._bar = ""

    def set_bar(self, bar: Text) -> None:
        shown = self._styled(bar)
        if shown != self._bar:
            self._bar = shown
            self._write(f"{_SAVE}\x1b[{self.height};1H{shown}\x1b[K{_RESTORE}")

    def _completion(self, line: Text) -> str:
        """Return the text that completes a line whose beginning is on the screen."""
        if line.plain == self._unfinished:
            return ""
        if line.plain.startswith(self._unfinished):
            return self._styled(line[len(self._unfinished) :] if self._unfinished else line)
        return "\r\x1b[K" + self._styled(line)  # a word was moved to the next line

    def _styled(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()

    def _write(self, text: str) -> None:
        self._terminal.write(f"{_BEGIN_SYNC}{text}{_END_SYNC}")
