"""The console that text views print to, and the colours of Playhead. The only door to rich."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.theme import Theme

GLYPHS = {"ok": "✓", "failed": "✗", "interrupted": "◐", "running": "●"}

_THEME = Theme(
    {
        "ok": "green",
        "failed": "bold red",
        "interrupted": "yellow",
        "running": "bold cyan",
        "quiet": "bright_black",
        "llm": "magenta",
        "tool": "cyan",
        "mcp": "cyan",
        "http": "blue",
        "process": "yellow",
        "state": "green",
        "turn": "bold",
        "why": "italic bright_black",
        "money": "green",
    }
)


def console(*, stderr: bool = False) -> Console:
    """Colours only on a terminal (rich also honours NO_COLOR); 80 columns in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 80
    return Console(
        file=stream, theme=_THEME, highlight=False, markup=False, emoji=False, width=width, soft_wrap=False
    )
