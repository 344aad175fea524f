"""Traffic that is not the agent's work: probes, telemetry, update checks, titles. Pure.

It is taped and marked; a replay answers it as it can and never fails because of it.
"""

from __future__ import annotations

import re
from typing import Any

from playhead.replay.aside import SIDE

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
    rb"(?:concise|short|brief|sentence-case|descriptive|generate)[^\"]{0,80}\b(?:title|topic)\b"
    rb"[^\"]{0,200}(?:session|conversation|coding|chat|new topic)",
    re.IGNORECASE,
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
    """A question without tools about what to call the session."""
    if b'"tool_use"' in body or b'"function_call"' in body:
        return False
    return _TITLE.search(body) is not None
