"""One line for one item: what it was, and how it ended. Shared by show, play and the viewers.

Knows items; not where on the screen they stand.
"""

from __future__ import annotations

import json
from typing import Any

from rich.text import Text

from playhead import events, wire
from playhead.model import CallItem, Item, NoteItem, TurnItem
from playhead.model.totals import usages
from playhead.values import thaw
from playhead.views.text import words
from playhead.views.text.safe import one_line

_LONGEST = 400


def label(item: Item) -> Text:
    """The left part of a line."""
    if isinstance(item, TurnItem):
        return _turn(item)
    if isinstance(item, CallItem):
        return _call(item)
    return _note(item)


def measure(item: Item) -> Text:
    """The right part: tokens, cost, time."""
    if isinstance(item, NoteItem):
        return Text("")
    parts: list[tuple[str, str]] = []
    if isinstance(item, CallItem):
        used = usages(item)
        if used:
            came = sum(one.input_tokens or 0 for one in used)
            went = sum(one.output_tokens or 0 for one in used)
            parts.append((f"{words.short(came)}→{words.short(went)}", "quiet"))
        if item.cost is not None:
            parts.append((words.money(float(item.cost.usd)), "money"))
    parts.append((words.took(item.took_ns) if item.how is not None else "in flight", "quiet"))
    return Text("  ").join([Text(text, style=style) for text, style in parts])


def _turn(turn: TurnItem) -> Text:
    line = Text.assemble((f"turn {one_line(turn.name, 60)}", "turn"))
    if turn.purpose:
        line.append(f" · {one_line(turn.purpose, 80)}", style="why")
    return line


def _call(call: CallItem) -> Text:
    line = Text.assemble((f"#{call.number} ", "quiet"), (call.boundary, call.boundary), " ")
    if call.llm:
        line.append_text(_conversation(call))
    else:
        line.append(one_line(call.name, 60))
        line.append(one_line(_arguments(call), _LONGEST))
        answer = _answer(call)
        if answer:
            line.append(" → ", style="quiet")
            line.append(one_line(answer, _LONGEST))
    if call.how is None:
        line.append(" … never answered", style="interrupted")
    elif call.how in ("cut", "left"):
        line.append(f" ({'stream cut' if call.how == 'cut' else 'agent left early'})", style="interrupted")
    if call.failure is not None:
        line.append(f" ✗ {one_line(f'{call.failure.type}: {call.failure.message}', _LONGEST)}", style="failed")
    return line


def _conversation(call: CallItem) -> Text:
    line = Text()
    for index, exchange in enumerate(call.llm):
        if index:
            line.append(" | ", style="quiet")
        response = exchange.response
        model = (response.model if response is not None else None) or exchange.request.model
        line.append(one_line(model or call.name, 40), style="llm")
        if response is None or (response.error is not None and not response.parts):
            continue
        line.append(f" {one_line(wire.summary(response), _LONGEST)}")
    return line


def _arguments(call: CallItem) -> str:
    request = call.request
    if not isinstance(request, dict) or call.boundary not in ("tool", "mcp", "state"):
        return ""
    arguments = request.get("arguments")
    if not isinstance(arguments, dict):
        return "" if arguments in (None, []) else f"({compact(arguments)})"
    return "(" + ", ".join(f"{name}={compact(item)}" for name, item in arguments.items()) + ")"


def _answer(call: CallItem) -> str:
    if call.failure is not None or call.how is None:
        return ""
    if call.boundary == "http" and isinstance(call.head, dict):
        return str(call.head.get("status", ""))
    if call.boundary == "process":
        code, signal = call.outcome.get("exit_code"), call.outcome.get("signal")
        return f"signal {signal}" if signal else "" if code is None else f"exit {code}"
    return "" if call.value is None else compact(call.value)


def _note(note: NoteItem) -> Text:
    data = note.data if isinstance(note.data, dict) else {}
    if note.kind == events.RETRIEVAL:
        shown = f"retrieval {data.get('included')} of {data.get('count')} sources, {data.get('bytes')} bytes in the prompt"
        return Text(one_line(shown, _LONGEST), style="quiet")
    if note.kind == events.GAP:
        return Text(one_line(f"! gap: {data.get('lost')} events lost ({data.get('why')})", _LONGEST), style="interrupted")
    if note.kind == events.HOLE:
        return Text(one_line(f"! not recorded: {data.get('what')} ({data.get('why')})", _LONGEST), style="interrupted")
    if note.kind == events.OUTPUT:
        shown = data.get("text") if isinstance(data.get("text"), str) else "(binary)"
        return Text.assemble((f"{data.get('stream', 'stdout')} ", "quiet"), one_line(str(shown), _LONGEST))
    line = Text.assemble((one_line(note.kind, 60), "tool"))
    if note.data is not None:
        line.append(f" {one_line(compact(note.data), _LONGEST)}")
    if note.why:
        line.append(f" · {one_line(note.why, 80)}", style="why")
    return line


def compact(frozen: Any) -> str:
    """A frozen value the way a programmer would write it, short."""
    if isinstance(frozen, str):
        return json.dumps(frozen[:_LONGEST], ensure_ascii=False)
    if isinstance(frozen, dict) and next(iter(frozen), "")[:1] == "$":
        if "$opaque" in frozen:
            return str(frozen.get("repr"))
        return repr(thaw(frozen))[:_LONGEST]
    try:
        return json.dumps(frozen, ensure_ascii=False)[:_LONGEST]
    except (TypeError, ValueError):
        return repr(frozen)[:_LONGEST]
