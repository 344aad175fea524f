"""What a row says: a name, and on one line what was given, said or came back. Pure."""

from __future__ import annotations

import re

from playhead.story import CallItem, Failure, NoteItem, TurnItem
from playhead.views.text.labels import answer, name_of, note_texts
from playhead.views.text.values import arguments, compact
from playhead.views.web.rows import Row, asked_by_person

# More than a line on a wide screen holds, and little enough for 100,000 of them.
_LONGEST = 160
# A line has no headings and no bold; their marks would only be in the way.
_MARKS = re.compile(r"^#{1,6} |\*\*", re.MULTILINE)


def name_and_brief(row: Row) -> tuple[str, str]:
    item = row.item
    if isinstance(item, TurnItem):
        if row.kind == "seam":
            seam = item.seams[row.seam]
            return seam.name, "" if seam.value is None else cut(compact(seam.value))
        return item.name, cut(item.purpose or "")
    if isinstance(item, NoteItem):
        title, summary = note_texts(item)
        return title, cut(summary)
    if row.kind == "person":
        return "person", cut(asked_by_person(item))
    return cut(name_of(item)), cut(_said(item) if item.llm else _done(item))


def reason(failure: Failure | None) -> str:
    if failure is None:
        return ""
    return cut(f"{failure.type}: {failure.message}" if failure.message else failure.type)


def cut(text: str) -> str:
    flat = " ".join(text[: _LONGEST * 4].split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


def _said(call: CallItem) -> str:
    for exchange in call.llm:
        response = exchange.response
        if response is None:
            continue
        if response.text.strip():
            return _MARKS.sub("", response.text[: _LONGEST * 4])
        if response.tool_calls:
            return "→ " + ", ".join(use.name or "?" for use in response.tool_calls)
        if response.thinking.strip():
            return f"thought: {response.thinking}"
    return ""


def _done(call: CallItem) -> str:
    request = call.request
    given = ""
    if isinstance(request, dict) and call.boundary in ("tool", "mcp", "state"):
        given = arguments(request["arguments"]) if "arguments" in request else ""
    told = answer(call)
    return f"{given[:_LONGEST]} → {told}" if given and told else given or told
