"""One event on one line: when, where on the tape, what. Knows kinds of events; not the story."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from playhead import events
from playhead.events import Event
from playhead.views.text import words
from playhead.views.text.safe import one_line
from playhead.views.text.values import arguments, compact

_STYLES = {
    events.CALL: "tool",
    events.OUTCOME: "ok",
    events.CHUNK: "quiet",
    events.TURN_START: "turn",
    events.TURN_END: "turn",
    events.SEAM: "seam",
    events.GAP: "interrupted",
    events.HOLE: "interrupted",
    events.OUTPUT: "process",
}
_KIND = 13


def event_line(event: Event, began: int, width: int) -> Text:
    """`00:01.2     17 call          tool lookup_order(…)`."""
    line = Text.assemble(
        (f"{words.position(event.mono - began)} ", "quiet"),
        (f"{one_line(event.ref, 24):>12} ", "quiet"),
        (f"{one_line(event.kind, 24):<{_KIND}} ", _style(event)),
    )
    if event.lane != "main":
        line.append(f"[{one_line(event.lane, 24)}] ", style="quiet")
    data = event.data if isinstance(event.data, dict) else {}
    told = _told(event.kind, data) if event.ours else compact(event.data)
    failed = data.get("how") == "raised" or data.get("status") == "failed"
    room = max(20, width - line.cell_len)
    line.append(one_line(told, room), style="failed" if failed and event.ours else "")
    if line.cell_len > width:
        line.truncate(width, overflow="ellipsis")
    return line


def _style(event: Event) -> str:
    if not event.ours:
        return "running"
    data = event.data if isinstance(event.data, dict) else {}
    boundary = data.get("boundary")
    if event.kind == events.CALL and boundary in events.BOUNDARIES:
        return str(boundary)
    return _STYLES.get(event.kind, "quiet")


def _told(kind: str, data: dict[str, Any]) -> str:
    if kind == events.CALL:
        request: Any = data.get("request")
        has = isinstance(request, dict) and "arguments" in request
        given = arguments(request["arguments"]) if has else ""
        return f"{data.get('boundary')} {data.get('name')}{given}"
    if kind == events.OUTCOME:
        return f"of {data.get('call')} {data.get('how')} after {_took(data)} {_result(data)}"
    if kind == events.CHUNK:
        shown = data.get("text") if isinstance(data.get("text"), str) else compact(_payload(data))
        return f"of {data.get('call')} {data.get('stream')} {shown}"
    if kind in (events.TURN_START, events.SEAM):
        return f"{data.get('name')} {data.get('purpose') or ''}"
    if kind == events.TURN_END:
        return f"{data.get('name')} {data.get('how')} after {_took(data)} {_result(data)}"
    if kind == events.RUN_END:
        return f"{data.get('status')} after {_took(data)} {_result(data)}"
    if kind == events.OUTPUT:
        return f"{data.get('stream')} {data.get('text') if 'text' in data else '(binary)'}"
    return compact(data)


def _payload(data: dict[str, Any]) -> Any:
    return data.get("value") if data.get("stream") == "head" else "(binary)"


def _result(data: dict[str, Any]) -> str:
    error = data.get("error")
    streams = data.get("streams")
    if isinstance(streams, list) and error is None and data.get("value") is None:
        told = [one for one in streams if isinstance(one, dict)]
        return " ".join(str(one["text"]) for one in told if isinstance(one.get("text"), str))
    if isinstance(error, dict):
        name = str(error.get("$exception", "")).rpartition(":")[2]
        return f"{name}: {error.get('message')}"
    return "" if data.get("value") is None else compact(data["value"])


def _took(data: dict[str, Any]) -> str:
    took = data.get("took_ns")
    return words.took(took) if type(took) is int else "?"
