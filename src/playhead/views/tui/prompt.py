"""A line to type into, there only while it is needed. Knows Textual's input; not what is done with it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input


class Prompt(Input):
    """`Answered` with what was typed; `Left` where somebody thought better of it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "never mind", show=False)]
    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0 1; display: none; }
    Prompt:focus { border: none; }
    Prompt.open { display: block; }
    """

    class Answered(Message):
        """Enter was pressed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """Escape was pressed."""

    def ask(self, what: str, text: str = "") -> None:
        self.placeholder = what
        self.value = text
        self.add_class("open")
        self.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.remove_class("open")
        self.post_message(self.Answered(self.value.strip()))

    def action_leave(self) -> None:
        self.remove_class("open")
        self.post_message(self.Left())
