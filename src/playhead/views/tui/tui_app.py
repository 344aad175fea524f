"""The terminal application: opens screens on request. Knows the screens; does not know what they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from playhead import clock
from playhead.views.text.console import PALETTE
from playhead.views.tui.compare_screen import CompareScreen
from playhead.views.tui.files_screen import FilesScreen
from playhead.views.tui.keys_screen import KeysScreen
from playhead.views.tui.play_screen import PlayScreen
from playhead.views.tui.run_screen import RunScreen
from playhead.views.tui.run_source import RunSource
from playhead.views.tui.runs_screen import RunsScreen
from playhead.views.tui.screen_requests import OpenComparison, OpenFiles, OpenPlayer, OpenRun


class PlayheadApp(App[None]):
    """Starts with the list of runs, or with one run."""

    TITLE = "playhead"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "quit", "Quit", show=False, priority=True),
        Binding("ctrl+l", "refresh_screen", "Redraw", show=False),
    ]
    CSS = """
    #title, #head, #bar { padding: 0 1; background: $panel; color: $text; }
    #title, #bar, #heading { height: 1; }
    #heading { color: $text-muted; padding: 0 0; }
    LineList {
        background: $surface;
        color: $foreground;
        scrollbar-background: $surface;
        scrollbar-background-hover: $surface;
        scrollbar-background-active: $surface;
        scrollbar-color: $panel-lighten-2;
    }
    LineList > .lines--cursor { background: $panel; }
    LineList:focus > .lines--cursor { background: $primary-darken-3; }
    """

    def __init__(
        self,
        source: RunSource,
        run: Path | None = None,
        *,
        now_ns: Callable[[], int] = clock.mono_ns,
    ) -> None:
        super().__init__()
        self.console.push_theme(PALETTE)
        self._source = source
        self._run = run
        # The clock of playbacks.
        self._now = now_ns

    def on_mount(self) -> None:
        self.push_screen(RunsScreen(self._source))
        if self._run is not None:
            self.push_screen(RunScreen(self._source, self._run))

    def on_open_run(self, request: OpenRun) -> None:
        self.push_screen(RunScreen(self._source, request.path))

    def on_open_player(self, request: OpenPlayer) -> None:
        self.push_screen(PlayScreen(request.frames, self._now))

    def on_open_files(self, request: OpenFiles) -> None:
        self.push_screen(FilesScreen(request.travel, request.item), request.closed)

    def on_open_comparison(self, request: OpenComparison) -> None:
        self.push_screen(CompareScreen(self._source, request.left, request.right))

    def action_keys(self) -> None:
        """Show the keys of this screen."""
        self.push_screen(KeysScreen(self.screen))

    def action_refresh_screen(self) -> None:
        self.refresh(layout=True)
