"""A story as the lines of a tree, with prompts, answers and failures below their calls.

Knows stories; does not know consoles. Walks without recursion, because a tape may nest deeper than the stack.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeGuard

from rich.text import Text

from playhead import events
from playhead import llm as wire
from playhead.story import CallItem, Failure, Item, NoteItem, SeamItem, Story, TurnItem
from playhead.views.text import labels, words
from playhead.views.text.safe import clean, one_line, unstyled

# Lines of an answer that ends a conversation; answers with tool calls get one.
_ANSWER_LINES = 3
# What the program printed and what it read. Other background events, such as hooks, are in `playhead events`.
_STREAMS = (events.OUTPUT, events.INPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLine:
    """A line. `prefix`: the branches; `item`: shown as a heading that fits the width; `text`: shown as it is."""

    prefix: str
    item: Item | None = None
    text: Text = field(default_factory=Text)
    tokens: str = ""
    cost: str = ""
    took: str = ""
    # The lane, if it differs from that of the parent.
    lane: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The last line of a turn that failed."""

    failure: Failure


_Branch = Item | SeamItem | _End


def tree_lines(
    story: Story,
    *,
    output: bool = False,
    start_up: bool = False,
    full: bool = False,
    width: int = 80,
) -> Iterator[TreeLine]:
    """Yield the lines from top to bottom. `output`: include what the program printed and read; `start_up`: the calls
    of libraries while they were loaded; `full`: all data of the program's own events.
    """
    top: list[tuple[_Branch, str, str, str]] = [
        (one, "", "", "main") for one in _below(story, None, output=output, start_up=start_up)
    ]
    stack = top[::-1]
    while stack:
        branch, prefix, deeper, lane = stack.pop()
        if isinstance(branch, SeamItem):
            name = Text.assemble(("◆ ", "seam"), one_line(branch.name, 60))
            if branch.value is not None:
                name.append(
                    f" {one_line(words.compact(branch.value), words.LONGEST)}", style="quiet"
                )
            yield TreeLine(prefix=prefix, text=name, took=f"+{words.took(branch.took_ns)}")
            continue
        if isinstance(branch, _End):
            failed = Text(f"✗ {labels.reason(branch.failure)}", style="failed")
            yield TreeLine(prefix=prefix, text=failed)
            continue
        below = _below(story, branch, output=output, start_up=start_up)
        yield _heading(branch, prefix, lane)
        bar = "│ " if below else "  "
        yield from (
            TreeLine(prefix=deeper + bar, text=text)
            for text in details(branch, width - len(deeper) - 4, full=full)
        )
        last = len(below) - 1
        for index in range(last, -1, -1):
            corner, rail = ("└ ", "  ") if index == last else ("├ ", "│ ")
            stack.append((below[index], deeper + corner, deeper + rail, branch.lane))


def details(item: Item, room: int, *, full: bool = False) -> list[Text]:
    """Return the lines below a heading: the person's prompt, the model's answer, the failure."""
    if isinstance(item, NoteItem):
        return _note_details(item, room, full=full)
    if not isinstance(item, CallItem):
        return []
    lines: list[Text] = []
    for exchange in item.llm:
        asked = asked_by_person(exchange)
        if asked:
            lines.append(Text.assemble(("‹ ", "quiet"), (one_line(asked, room), "asked")))
        if exchange.response is not None and exchange.response.text.strip():
            most = 1 if exchange.response.tool_calls else _ANSWER_LINES
            said = _folded(exchange.response.text, room, most)
            lines += [
                Text.assemble(("  " if index else "› ", "llm"), (line, "said"))
                for index, line in enumerate(said)
            ]
    if item.failure is not None:
        lines.append(Text(f"✗ {labels.reason(item.failure)}", style="failed"))
    return lines


def _note_details(note: NoteItem, room: int, *, full: bool) -> list[Text]:
    if note.kind in _STREAMS:
        _, *rest = _printed(note)
        return [
            Text(piece) for line in rest for piece in textwrap.wrap(line, max(room, 20)) or [""]
        ]
    if note.kind == events.RETRIEVAL and isinstance(note.data, dict):
        rows = note.data.get("sources")
        return [_source(row, room) for row in rows or () if isinstance(row, dict)]
    is_own = note.kind not in (*events.KINDS, events.START_UP) and note.data is not None
    if not full or not is_own:
        return []
    lines = clean(words.pretty(note.data)).splitlines()
    wrapped = (textwrap.wrap(line, max(room, 20)) or [""] for line in lines)
    return [Text(piece, style="quiet") for pieces in wrapped for piece in pieces]


def _printed(note: NoteItem) -> list[str]:
    """Return the lines of a text that the program printed or read, without colours and empty lines at its ends."""
    text = note.data.get("text") if isinstance(note.data, dict) else None
    return clean(unstyled(text)).strip("\n").split("\n") if isinstance(text, str) else [""]


def _source(row: dict[str, Any], room: int) -> Text:
    """`included  doc-1  0.91  312 bytes`, or `dropped   doc-2  0.20  below the threshold`."""
    is_included = row.get("included") is not False
    score, size = row.get("score"), row.get("bytes")
    parts = [one_line(str(row.get("id")), 60)]
    if isinstance(score, (int, float)):
        parts.append(f"{score:.2f}")
    if is_included and isinstance(size, int):
        parts.append(f"{words.count(size)} bytes")
    if row.get("why"):
        parts.append(one_line(str(row["why"]), 200))
    mark = ("included  ", "ok") if is_included else ("dropped   ", "interrupted")
    return Text.assemble(mark, one_line("  ".join(parts), max(room - 10, 20)))


def asked_by_person(exchange: wire.LlmExchange) -> str:
    """Return the last message of a person; results of tools have lines of their own."""
    said = exchange.request.messages[-1:]
    if not said or said[0].role != "user":
        return ""
    if any(isinstance(part, wire.ToolResult) for part in said[0].parts):
        return ""
    return said[0].text


def _folded(text: str, room: int, most: int) -> list[str]:
    flat = clean(" ".join(text[: room * most * 4 + 64].split()))
    return textwrap.wrap(flat, max(room, 20), max_lines=most, placeholder=" …")


def _heading(item: Item, prefix: str, lane: str) -> TreeLine:
    other_lane = one_line(item.lane, 24) if item.lane != lane else ""
    if isinstance(item, NoteItem):
        return TreeLine(prefix=prefix, item=item, lane=other_lane)
    took = labels.took(item)
    if isinstance(item, TurnItem):
        return TreeLine(prefix=prefix, item=item, took=took, lane=other_lane)
    return TreeLine(
        prefix=prefix,
        item=item,
        tokens=labels.tokens(item),
        cost=labels.cost(item),
        took=took,
        lane=other_lane,
    )


def _below(story: Story, item: Item | None, *, output: bool, start_up: bool) -> Sequence[_Branch]:
    """Return the items below `item`; for a turn also its seams, in order of time, and its failure."""
    if isinstance(item, NoteItem) and item.kind == events.START_UP and not start_up:
        return []
    refs = story.children.get(None if item is None else item.ref, ())
    items = [story.items[ref] for ref in refs]
    shown = [one for one in items if not is_background(one) or (output and one.kind in _STREAMS)]
    below: list[_Branch] = [*(_joined_output(shown) if output else shown)]
    if not isinstance(item, TurnItem):
        return below
    placed = [(getattr(one, "place", 0), one) for one in below]
    placed += [(seam.passed.place if seam.passed else 0, seam) for seam in item.seams]
    merged = [one for _, one in sorted(placed, key=lambda pair: pair[0])]
    return merged if item.failure is None else [*merged, _End(failure=item.failure)]


def _joined_output(items: Sequence[Item]) -> Iterator[Item]:
    """Join texts of the same stream that follow each other: a program that streams prints a few words at a time."""
    for (kind, stream), group in groupby(items, _stream_of):
        pieces = list(group)
        first = pieces[0]
        if kind is None or not isinstance(first, NoteItem):
            yield from pieces
            continue
        text = "".join(one.data["text"] for one in pieces if isinstance(one, NoteItem))
        if text.strip():
            yield dataclasses.replace(first, data={"stream": stream, "text": text})


def _stream_of(item: Item) -> tuple[str | None, str]:
    """Return the kind and the stream of a text; None: the item is not a text, and is not joined."""
    data = item.data if isinstance(item, NoteItem) and item.kind in _STREAMS else None
    if isinstance(item, NoteItem) and isinstance(data, dict) and isinstance(data.get("text"), str):
        return item.kind, f"{data.get('stream', 'stdout')}"
    return None, ""


def is_background(item: Item) -> TypeGuard[NoteItem]:
    return isinstance(item, NoteItem) and events.kind_of(item.kind).background
