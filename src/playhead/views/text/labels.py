"""One-line texts for the items of a story: name, arguments, result, failure. Shared by all views.

Does not know where on the screen an item is shown.
"""

from __future__ import annotations

from rich.text import Text

from playhead import events
from playhead import llm as wire
from playhead.story import CallItem, Failure, Item, NoteItem, TurnItem
from playhead.story.derived_tools import DERIVED
from playhead.story.totals import usages
from playhead.views.text import words
from playhead.views.text.divergence_lines import divergence_title
from playhead.views.text.safe import one_line, unstyled
from playhead.views.text.words import LONGEST, arguments, compact

_ENDS = {"cut": "stream cut", "left": "agent left early"}


def label(item: Item, room: int = LONGEST) -> Text:
    """Return the heading, the model's answer and the failure of an item on one line."""
    line = heading(item, room)
    if isinstance(item, CallItem):
        for exchange in item.llm:
            if exchange.response is not None and exchange.response.parts:
                line.append(f" {one_line(wire.summary(exchange.response), room)}")
    if isinstance(item, (CallItem, TurnItem)) and item.failure is not None:
        line.append(f" ✗ {reason(item.failure, room)}", style="failed")
    return line


def heading(item: Item, room: int = LONGEST) -> Text:
    """Return the name, arguments and result of an item in at most `room` columns."""
    if isinstance(item, TurnItem):
        line = _turn(item)
    elif isinstance(item, CallItem):
        line = _call(item, room)
    else:
        line = _note(item)
    if line.cell_len > room:
        line.truncate(room, overflow="ellipsis")
    return line


def reason(failure: Failure, room: int = LONGEST) -> str:
    said = f"{failure.type}: {failure.message}" if failure.message else failure.type
    return one_line(said, room)


def tokens(call: CallItem) -> str:
    """Return input and output tokens: `2,460→96`; empty if the tape does not contain them."""
    used = usages(call)
    if not used:
        return ""
    came = sum(one.input_tokens or 0 for one in used)
    went = sum(one.output_tokens or 0 for one in used)
    return f"{words.short(came)}→{words.short(went)}"


def cost(call: CallItem) -> str:
    return "" if call.cost is None else words.money(float(call.cost.usd))


def took(item: CallItem | TurnItem) -> str:
    return words.took(item.took_ns) if item.how is not None else "in flight"


def name_of(call: CallItem) -> str:
    """Return the name of a call: the model for an LLM call, the command for a process."""
    for exchange in call.llm:
        model = (exchange.response.model if exchange.response else None) or exchange.request.model
        if model:
            return one_line(model, 60)
    command = call.facts.get("command") if call.boundary == "process" else None
    return one_line(command if isinstance(command, str) else call.name, 200)


def _turn(turn: TurnItem) -> Text:
    kind = "turn " if turn.request is None else f"request {turn.request} "
    line = Text.assemble((kind, "quiet"), (one_line(turn.name, 60), "turn"))
    if turn.request is not None and isinstance(turn.value, dict):
        line.append(f" → {one_line(str(turn.value.get('status')), 10)}", style="quiet")
    if turn.purpose:
        line.append(f" · {one_line(turn.purpose, 200)}", style="why")
    if turn.decision and turn.decision != "error":
        line.append(f" · {one_line(turn.decision, 20)}", style="why")
        if turn.reason:
            line.append(f": {one_line(turn.reason, 200)}", style="why")
    return line


def question(call: CallItem, room: int = LONGEST) -> Text:
    """Return the name and the arguments of a call, without its result."""
    line = _named(call)
    line.append(one_line(_given(call), max(1, room - line.cell_len)))
    return line


def _named(call: CallItem) -> Text:
    boundary = one_line(call.boundary, 12)
    line = Text.assemble((f"#{call.number} ", "quiet"), (boundary, call.boundary), " ")
    return line.append(name_of(call), style="name" if call.llm else "")


def _call(call: CallItem, room: int) -> Text:
    line = _named(call)
    ending = unusual_end(call)
    if not call.llm:
        given, answered = _given(call), answer(call)
        left = room - line.cell_len - len(ending) - (3 if answered else 0)
        given, answered = shared(given, answered, left)
        line.append(given)
        if answered:
            line.append(" → ", style="quiet")
            line.append(answered)
    if ending:
        line.append(ending, style="interrupted")
    return line


def shared(first: str, second: str, room: int) -> tuple[str, str]:
    """Shorten two texts to `room` columns in total. Each gets at least half, and what the other leaves."""
    first, second = one_line(first, LONGEST), one_line(second, LONGEST)
    if len(first) + len(second) <= room:
        return first, second
    half = max(room, 2) // 2
    more = max(half, room - len(second))
    return one_line(first, more), one_line(second, max(half, room - len(first)))


def unusual_end(call: CallItem) -> str:
    if call.how is None:
        return " … never answered"
    side = call.facts.get("side")
    marks = [f"side: {one_line(str(side), 20)}"] if side else []
    if call.facts.get(DERIVED):
        marks.append("derived")
    if call.how in _ENDS:
        marks.append(_ENDS[call.how])
    return f" ({', '.join(marks)})" if marks else ""


def _given(call: CallItem) -> str:
    request = call.request
    if not isinstance(request, dict) or call.boundary not in ("tool", "mcp", "state"):
        return ""
    return arguments(request["arguments"]) if "arguments" in request else ""


def answer(call: CallItem) -> str:
    """Return the result of a call that succeeded; empty for LLM calls, whose answers need more than a line."""
    if call.how is None or call.failure is not None or call.llm:
        return ""
    if call.boundary == "http" and isinstance(call.head, dict):
        return str(call.head.get("status", ""))
    if call.boundary == "process":
        code, signal = call.outcome.get("exit_code"), call.outcome.get("signal")
        return f"signal {signal}" if signal else "" if code is None else f"exit {code}"
    return "" if call.value is None else compact(call.value)


def _note(note: NoteItem) -> Text:
    kind = events.kind_of(note.kind)
    title, summary = note_texts(note)
    if note.kind in (events.OUTPUT, events.INPUT):
        # The tree shows the other lines below this one.
        summary = summary.strip("\n").partition("\n")[0]
    if kind.is_warning:
        return Text(one_line(f"! {title}: {summary}", LONGEST), style=kind.style)
    if kind.mark:
        line = Text.assemble((kind.mark, kind.style), one_line(title, 60))
    else:
        line = Text(one_line(title, 60), style=kind.style)
    if summary:
        line.append(f" {one_line(summary, LONGEST)}", style="default")
    if note.why:
        line.append(f" · {one_line(note.why, 200)}", style="why")
    return line


def note_texts(note: NoteItem) -> tuple[str, str]:
    """Return the title and the one-line summary of an event, as the table of kinds has them."""
    kind = events.kind_of(note.kind)
    title = kind.titled(note.data) or note.kind
    if note.kind == events.DIVERGENCE and isinstance(note.data, dict):
        return title, divergence_title(note.data)
    if kind.summary is not None:
        return title, unstyled(kind.summarised(note.data)[: LONGEST * 4])
    return title, "" if note.data is None else compact(note.data)
