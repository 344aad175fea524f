"""Frames as text on a page: a line when an item begins, its text as it streams, a line when it ends.

Knows how frames look; does not know time or terminals.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from playhead.story import CallItem, NoteItem, TurnItem
from playhead.views.play.frames import Part, PlayFrame
from playhead.views.play.text_page import TextPage
from playhead.views.text import labels, words
from playhead.views.text.safe import one_line
from playhead.views.text.tree import asked_by_person

_TIME_WIDTH = 9
_INDENT = 2
_STREAMED = ("said", "thought")
_MOST_PRINTED = 12
_MARKS: dict[Part, tuple[str, str]] = {
    "said": ("› ", "llm"),
    "thought": ("~ ", "quiet"),
    "printed": ("│ ", "quiet"),
}
_STYLES: dict[Part, str] = {"said": "said", "thought": "thought"}


class Transcript:
    """Writes frames to a page. Tracks which stream wrote the last line, so that each stream continues its own
    line and two streams never share one.
    """

    def __init__(self, width: int) -> None:
        self.page = TextPage(width)
        self._open: tuple[str, Part] | None = None
        # Output printed while a model streams its answer; written after the answer, so that both are readable.
        self._held: list[PlayFrame] = []
        # Number of lines that each stream has printed, and the streams whose last line has no newline yet.
        self._printed: dict[str, int] = {}
        self._unfinished: set[str] = set()

    def add(self, frames: Iterable[PlayFrame]) -> None:
        for frame in frames:
            if frame.part == "printed" and self._open is not None and self._open[1] in _STREAMED:
                self._held.append(frame)
                continue
            if frame.part not in _STREAMED:
                self._flush()
            self._write_frame(frame)

    def close(self) -> None:
        """Write what is still buffered: no more frames follow."""
        self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, []
        for frame in held:
            self._write_frame(frame)

    def _write_frame(self, frame: PlayFrame) -> None:
        if frame.part == "printed":
            self._print(frame)
        elif frame.part in _STREAMED:
            self._stream(frame)
        elif frame.part == "begin":
            self._begin(frame)
        elif frame.part == "end":
            self._end(frame)
        else:
            self._note(frame)

    def _line(self, frame: PlayFrame, *, inner: int = 0, clock: bool = True) -> int:
        """Start a line at the frame's depth. Return its free columns."""
        stamp = words.position(frame.at_ns) if clock else ""
        prefix = Text.assemble((stamp.ljust(_TIME_WIDTH), "quiet"), self._indentation(frame, inner))
        if clock and frame.item.lane != "main":
            prefix.append(f"[{one_line(frame.item.lane, 24)}] ", style="quiet")
        self.page.begin(prefix)
        self._open = None
        return self.page.room

    def _indentation(self, frame: PlayFrame, inner: int) -> str:
        return " " * min(_INDENT * frame.depth + inner, self.page.width // 4)

    def _stream(self, frame: PlayFrame) -> None:
        owner = (frame.item.ref, frame.part)
        if self._open != owner:
            self._line(frame, inner=_INDENT, clock=False)
            mark, style = _MARKS[frame.part]
            self.page.put(Text(mark, style=style))
            self._open = owner
        self.page.write(frame.text, _STYLES[frame.part])

    def _print(self, frame: PlayFrame) -> None:
        """Write output, a mark before each line. Of a process only the first lines: its output may be long."""
        # The program's own output is one stream, although each event has its own ref.
        owner = frame.item.ref if isinstance(frame.item, CallItem) else ""
        text = frame.text
        while text:
            line, newline, text = text.partition("\n")
            count = self._printed.get(owner, 0)
            if owner and count >= _MOST_PRINTED:
                return
            self._printed[owner] = count + len(newline)
            # A newline alone starts no line if its text was written earlier and another stream followed.
            if line or self._open == (owner, "printed") or owner not in self._unfinished:
                self._open_printed(frame, owner)
                self.page.write(line)
            (self._unfinished.discard if newline else self._unfinished.add)(owner)
            if newline:
                self._open = None
            if newline and owner and count + 1 == _MOST_PRINTED and text:
                self._open_printed(frame, owner)
                self.page.put(Text("… `playhead show RUN --call N` has the rest", style="quiet"))
                self._open = None

    def _open_printed(self, frame: PlayFrame, owner: str) -> None:
        if self._open != (owner, "printed"):
            mark, style = _MARKS["printed"]
            moved = " " * _TIME_WIDTH + self._indentation(frame, _INDENT)
            prefix = Text.assemble(moved, (mark, style))
            self.page.begin(prefix, prefix.copy())
            self._open = (owner, "printed")

    def _begin(self, frame: PlayFrame) -> None:
        room = self._line(frame)
        if not isinstance(frame.item, CallItem):
            self.page.put(labels.heading(frame.item, room))
            return
        call = frame.item
        self.page.put(labels.question(call, room))
        self._open = (call.ref, "begin")
        asked = [prompt for exchange in call.llm if (prompt := asked_by_person(exchange))]
        for prompt in asked:
            room = self._line(frame, inner=_INDENT, clock=False) - 2
            self.page.put(Text.assemble(("‹ ", "quiet"), (one_line(prompt, room), "asked")))

    def _end(self, frame: PlayFrame) -> None:
        item = frame.item
        if isinstance(item, NoteItem):
            return
        if self._open == (item.ref, "begin") and not frame.is_failure:
            verdict = _outcome(frame, self.page.room)
            if verdict.cell_len <= self.page.room:
                self.page.put(verdict)
                self._open = None
                return
        room = self._line(frame)
        glyph = Text("✗ ", style="failed") if frame.is_failure else Text("✓ ", style="ok")
        name = (
            f"turn {one_line(item.name, 40)}" if isinstance(item, TurnItem) else f"#{item.number}"
        )
        self.page.put(Text.assemble(glyph, (name, "quiet")))
        self.page.put(_outcome(frame, room - 2 - len(name)))

    def _note(self, frame: PlayFrame) -> None:
        if frame.seam is not None:
            room = self._line(frame, inner=_INDENT)
            self.page.put(Text.assemble(("◆ ", "seam"), one_line(frame.seam.name, room)))
        elif isinstance(frame.item, NoteItem):
            room = self._line(frame)
            self.page.put(labels.heading(frame.item, room))


def _outcome(frame: PlayFrame, room: int) -> Text:
    """Return the outcome, then duration and cost; only the outcome is truncated."""
    item = frame.item
    if isinstance(item, NoteItem):
        return Text()
    right = Text()
    if isinstance(item, CallItem):
        right.append(f"  {labels.tokens(item)}" if labels.tokens(item) else "", style="quiet")
        right.append(f"  {labels.cost(item)}" if labels.cost(item) else "", style="money")
    right.append(f"  {labels.took(item)}", style="quiet")
    left = max(0, room - right.cell_len)
    if item.failure is not None:
        return Text(f" {labels.reason(item.failure, max(1, left - 1))}", "failed").append_text(
            right
        )
    result = labels.answer(item) or _tool_calls(item) if isinstance(item, CallItem) else ""
    said = Text()
    if result and left > 8:
        said = Text.assemble((" → ", "quiet"), one_line(result, left - 3))
    if isinstance(item, CallItem) and labels.unusual_end(item):
        said.append(labels.unusual_end(item), style="interrupted")
    return said.append_text(right)


def _tool_calls(call: CallItem) -> str:
    """Return the names of the tools that an answer calls."""
    asked = [
        use.name or "?"
        for exchange in call.llm
        if exchange.response is not None
        for use in exchange.response.tool_calls
    ]
    return ", ".join(asked)
