"""Messages with which a screen asks the application to open another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from textual.message import Message

from playhead.story import Item
from playhead.views.play.frames import PlayFrame
from playhead.views.tui.file_lines import FileTravel


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


class OpenFiles(Message):
    """Show the files of a run as they were after `item`. `closed` gets the call that a person wants to see."""

    def __init__(
        self, travel: FileTravel, item: Item | None, closed: Callable[[str | None], None]
    ) -> None:
        super().__init__()
        self.travel, self.item, self.closed = travel, item, closed


class OpenComparison(Message):
    """Compare these two runs."""

    def __init__(self, left: Path, right: Path) -> None:
        super().__init__()
        self.left, self.right = left, right
