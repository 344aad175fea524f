"""The page with the keys of a screen. Knows the bindings of the screen below it."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

# Descriptions that are too long for the footer.
_EVERYWHERE = (
    ("↑ ↓, j k", "move"),
    ("PgUp PgDn, space", "a page"),
    ("Home End, g G", "first, last"),
    ("Ctrl-C", "quit"),
)
_SHOWN = {
    "slash": "/",
    "question_mark": "?",
    "plus": "+",
    "full_stop": ".",
    "comma": ",",
    "left": "←",
    "right": "→",
}


class KeysScreen(ModalScreen[None]):
    """Lists the keys; any of Esc, q, ? and Enter closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "app.pop_screen", "Back", key_display="esc"),
    ]
    DEFAULT_CSS = """
    KeysScreen { align: center middle; }
    KeysScreen > VerticalScroll {
        width: 72; max-width: 95%; height: auto; max-height: 95%;
        padding: 1 2; background: $panel;
    }
    """

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._rows = [*_keys_of(below), *_EVERYWHERE]

    def compose(self) -> ComposeResult:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for key, words in self._rows:
            table.add_row(f"[bold]{key}[/bold]", words)
        with VerticalScroll():
            yield Static(table)


def _keys_of(screen: Screen[object]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for one in type(screen).BINDINGS:
        if isinstance(one, Binding) and one.description:
            first = one.key.partition(",")[0]
            key = one.key_display or _SHOWN.get(first, first)
            found.setdefault(key, one.tooltip or one.description)
    return list(found.items())
