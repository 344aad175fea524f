"""Messages with which a screen asks the application to open another one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.message import Message

from playhead.views.play.frames import PlayFrame


class OpenRun(Message):
    """Show this run."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path


class OpenPlayer(Message):
    """Play these frames."""

    def __init__(self, frames: Sequence[PlayFrame]) -> None:
        super().__init__()
        self.frames = frames


class OpenComparison(Message):
    """Show these two side by side."""

    def __init__(self, left: Path, right: Path) -> None:
        super().__init__()
        self.left, self.right = left, right
