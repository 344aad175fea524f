"""The console that text views print to, and the colours of text views and of the terminal UI.

The terminal UI has colours of its own because it also sets the background, on which the grey of many terminals
cannot be read.
"""

from __future__ import annotations

import os
import sys
from typing import Literal, TextIO

from rich.console import Console
from rich.text import Text
from rich.theme import Theme

# Only the sixteen standard colours: users choose them for their terminal.
THEME = Theme(
    {
        "ok": "green",
        "failed": "red",
        "interrupted": "yellow",
        "running": "cyan",
        "quiet": "bright_black",
        "llm": "magenta",
        "tool": "cyan",
        "mcp": "cyan",
        "http": "blue",
        "process": "yellow",
        "state": "green",
        "input": "green",
        "stream": "blue",
        "grpc": "blue",
        "sql": "green",
        "clock": "bright_black",
        "entropy": "bright_black",
        "turn": "bold",
        "seam": "green",
        "name": "bold",
        "asked": "bright_black",
        "said": "default",
        "thought": "italic bright_black",
        "why": "italic bright_black",
        "money": "green",
        "bar": "reverse",
    },
    inherit=False,
)

# Width of piped output, which programs read, and people in windows of any width.
PIPED_WIDTH = 80
_MAX_WIDTH = 120
_MIN_WIDTH = 40


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise, so that the command line exits silently after `| head`; rich would exit with an error."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console with colours only on a terminal, and never if NO_COLOR is set (no-color.org)."""
    stream = sys.stderr if stderr else sys.stdout
    return _Console(
        file=stream,
        theme=THEME,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if stream.isatty() else piped_width(),
        color_system=colours(stream),
        legacy_windows=False,
    )


def piped_width() -> int:
    """The width of output that is not a terminal: COLUMNS, if the user has set it."""
    asked = os.environ.get("COLUMNS", "")
    return max(int(asked), _MIN_WIDTH) if asked.isascii() and asked.isdigit() else PIPED_WIDTH


def colours(stream: TextIO) -> Literal["auto"] | None:
    return None if os.environ.get("NO_COLOR") or not stream.isatty() else "auto"


def print_line(out: Console, line: Text) -> None:
    """Print one line without wrapping. Without colours it bypasses rich, which takes ten times as long."""
    line.rstrip()
    if out.color_system is None:
        out.file.write(f"{line.plain}\n")
    else:
        out.print(line, soft_wrap=True)


def width_of(out: Console) -> int:
    """Return the width of lines: that of the console, up to a readable maximum."""
    return min(out.width, _MAX_WIDTH)


_TUI_COLOURS = {
    "ok": "#7fd962",
    "failed": "#ff6b81",
    "interrupted": "#ffb454",
    "running": "#59c2ff",
    "quiet": "#8b93a1",
    "llm": "#d2a6ff",
    "tool": "#59c2ff",
    "mcp": "#59c2ff",
    "http": "#80b4ff",
    "process": "#ffb454",
    "state": "#7fd962",
    "input": "#7fd962",
    "stream": "#80b4ff",
    "grpc": "#80b4ff",
    "sql": "#7fd962",
    "clock": "#8b93a1",
    "entropy": "#8b93a1",
    "seam": "#7fd962",
    "asked": "#a6adb8",
    "thought": "italic #8b93a1",
    "why": "italic #a6adb8",
    "money": "#95e6a0",
}
PALETTE = Theme({**THEME.styles, **_TUI_COLOURS}, inherit=False)
