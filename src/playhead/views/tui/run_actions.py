"""Export, open and copy a run, for the list and the run screen. Knows screens and the source of runs."""

from __future__ import annotations

from functools import partial
from typing import Any

from textual.screen import Screen

from playhead.views.text.safe import one_line
from playhead.views.tui.run_source import RunSource


def export_run(screen: Screen[Any], source: RunSource, run: str) -> None:
    """Write the run as a web page into the current folder, and report the result when it is known."""
    file = f"{run}.html"
    screen.notify(f"Writing {file}…", markup=False)
    screen.run_worker(partial(_export, screen, source, run, file), thread=True, group="export")


def _export(screen: Screen[Any], source: RunSource, run: str, file: str) -> None:
    problem = source.export(run, file)
    text = f"Not written: {problem}" if problem else f"Written to {file} in this folder."
    screen.app.call_from_thread(
        screen.notify, text, severity="error" if problem else "information", markup=False
    )


def open_in_browser(screen: Screen[Any], source: RunSource, run: str) -> None:
    source.open_viewer(run)
    screen.notify("Opening the browser…", markup=False)


def copy_text(screen: Screen[Any], text: str, name: str) -> None:
    """Copy a text by the terminal's escape sequence, which also works over ssh."""
    screen.app.copy_to_clipboard(text)
    screen.notify(f"Copied {one_line(name, 60)}.", markup=False)
