"""Traffic that is not the agent's work: probes, telemetry, update checks, titles. Pure.

It is taped and marked; a replay answers it as it can and never fails because of it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from playhead.replay.matching.side_calls import SIDE

_PATHS = (
    ("probe", re.compile(r"/api/hello/?$|/healthz?/?$|/ping/?$")),
    (
        "telemetry",
        re.compile(
            r"/api/event_logging|/api/claude_code/(?:metrics|organizations)|/api/claude_cli_feedback"
            r"|/v1/(?:traces|metrics|logs)$|/otlp/|/v1/rgstr|/v1/initialize$|/envelope/$|/analytics"
            r"|/telemetry|/codex/analytics|:recordCodeAssistMetrics|/log\?"
        ),
    ),
    (
        "catalogue",
        re.compile(
            r"/models(?:\?client_version=.*)?$|/api/(?:oauth|claude_code|organizations)/"
            r"|/latest(?:\?|$)|/wham/|/api/codex/|/mcp-registry|/plugins"
        ),
    ),
)
# Small models that name a session, or guess its topic, while the agent works.
_TITLE = re.compile(
    r"\b(?:titles?|naming|topic)\b.{0,300}\b(?:sessions?|conversations?|chats?|threads?|coding)\b"
    r"|\b(?:sessions?|conversations?|chats?|threads?)\b.{0,300}\b(?:titles?|topic)\b",
    re.IGNORECASE | re.DOTALL,
)
_LARGEST_TITLE = 32 * 1024


def facts(method: str, url: str, body: bytes) -> dict[str, Any]:
    """What a call is marked with; empty for the agent's own work."""
    kind = kind_of(method, url, body)
    return {} if kind is None else {SIDE: kind}


def kind_of(method: str, url: str, body: bytes) -> str | None:
    """`probe`, `telemetry`, `catalogue` or `title`; None: the agent's work."""
    if method == "HEAD":
        return "probe"
    path = url.partition("://")[2]
    path = path[path.find("/") :] if "/" in path else "/"
    for kind, pattern in _PATHS:
        if pattern.search(path) and (kind != "catalogue" or method == "GET"):
            return kind
    if method == "POST" and 0 < len(body) < _LARGEST_TITLE and _is_title(body):
        return "title"
    return None


def _is_title(body: bytes) -> bool:
    """A question without tools whose instructions are about what to call a session."""
    try:
        asked = json.loads(body)
    except ValueError:
        return False
    if not isinstance(asked, dict) or asked.get("tools"):
        return False
    said = [asked.get(name) for name in ("system", "instructions", "systemInstruction")]
    turns = asked.get("messages") or asked.get("input") or []
    for turn in turns if isinstance(turns, list) else []:
        role = turn.get("role") if isinstance(turn, dict) else None
        if role == "assistant":
            return False
        if role in ("system", "developer"):
            said.append(turn)
    return _TITLE.search(json.dumps([one for one in said if one])) is not None
