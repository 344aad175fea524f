"""What one screen asks the application for: another screen. Messages only."""

from __future__ import annotations

from pathlib import Path

from textual.message import Message

from playhead.model import Story


class OpenRun(Message):
    """Show this run."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path


class OpenPlayer(Message):
    """Play this story."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        self.story = story


class OpenComparison(Message):
    """Show these two side by side."""

    def __init__(self, left: Path, right: Path) -> None:
        super().__init__()
        self.left, self.right = left, right
