"""The colours of the terminal UI. Data only.

Not those of the terminal as the other text views have them: here the background is ours, too, and on it
the grey of many terminals cannot be read.
"""

from __future__ import annotations

from rich.theme import Theme

from playhead.views.text.console import THEME

_OWN = {
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
    "clock": "#8b93a1",
    "entropy": "#8b93a1",
    "seam": "#7fd962",
    "asked": "#a6adb8",
    "thought": "italic #8b93a1",
    "why": "italic #a6adb8",
    "money": "#95e6a0",
}
PALETTE = Theme({**THEME.styles, **_OWN}, inherit=False)
