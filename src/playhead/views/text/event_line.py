"""One event of a tape on one line: time, reference, kind, summary. The table of kinds defines the summaries."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from playhead import events
from playhead.events import Event
from playhead.views.text import words
from playhead.views.text.console import console, width_of
from playhead.views.text.safe import clean, one_line
from playhead.views.text.words import arguments, compact

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
    shown = _described(event.kind, data) if event.ours else compact(event.data)
    failed = data.get("how") == "raised" or data.get("status") == "failed"
    room = max(20, width - line.cell_len)
    line.append(one_line(shown, room), style="failed" if failed and event.ours else "")
    if line.cell_len > width:
        line.truncate(width, overflow="ellipsis")
    return line


def print_event(event: Event) -> None:
    """Print one event in full: who, when, where, why, then its data."""
    out = console()
    out.print(Text(one_line(event.kind, width_of(out)), style=_style(event)))
    facts = (
        ("who", f"{event.who or '?'}, lane {event.lane}"),
        ("when", words.moment(event.wall)),
        ("where", f"{event.at or '?'} (event {event.ref}, thread {event.thread})"),
        ("why", event.why or ""),
    )
    for title, text in facts:
        if text:
            out.print(
                Text.assemble((f"  {title:<8}", "quiet"), one_line(text, 400)), soft_wrap=True
            )
    if event.data is not None:
        out.print()
        for line in clean(words.pretty(event.data)).splitlines():
            out.print(Text(f"  {line}"), soft_wrap=True)


def _style(event: Event) -> str:
    if not event.ours:
        return "running"
    data = event.data if isinstance(event.data, dict) else {}
    boundary = data.get("boundary")
    if event.kind == events.CALL and boundary in events.BOUNDARIES:
        return str(boundary)
    return events.kind_of(event.kind).style


def _described(kind: str, data: dict[str, Any]) -> str:
    row = events.kind_of(kind)
    if not row.line:
        return compact(data)
    request: Any = data.get("request")
    has_arguments = isinstance(request, dict) and "arguments" in request
    text = data.get("text")
    computed = {
        "given": arguments(request["arguments"]) if has_arguments else "",
        "took": _took(data),
        "result": _result(data),
        "shown": text if isinstance(text, str) else compact(_payload(data)),
    }
    return events.fill(row.line, {**data, **computed}, row.defaults)


def _payload(data: dict[str, Any]) -> Any:
    return data.get("value") if data.get("stream") == "head" else "(binary)"


def _result(data: dict[str, Any]) -> str:
    error = data.get("error")
    streams = data.get("streams")
    if isinstance(streams, list) and error is None and data.get("value") is None:
        texts = [one.get("text") for one in streams if isinstance(one, dict)]
        return " ".join(text for text in texts if isinstance(text, str))
    if isinstance(error, dict):
        name = str(error.get("$exception", "")).rpartition(":")[2]
        return f"{name}: {error.get('message')}"
    return "" if data.get("value") is None else compact(data["value"])


def _took(data: dict[str, Any]) -> str:
    took = data.get("took_ns")
    return words.took(took) if type(took) is int else "?"
