"""The list of models, as each provider tells it. Knows the shapes; not the script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead.testing.scripted_llm.received import Request
from playhead.testing.scripted_llm.wire import Json

_LISTED_AT = 1_767_225_600
_LISTED_ON = "2026-01-01T00:00:00Z"


def models_answer(request: Request, names: Sequence[str]) -> Json | None:
    """The list, or the one model that the path names; None where there is no such model."""
    wanted = request.path.rstrip("/").rpartition("/models")[2].lstrip("/")
    entries = [_entry(request, name) for name in names if wanted in ("", name)]
    if wanted:
        return entries[0] if entries else None
    if _is_gemini(request):
        return {"models": entries}
    if "anthropic-version" in request.headers:
        ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
        return {"data": entries, "has_more": False, **ends}
    return {"object": "list", "data": entries}


def _is_gemini(request: Request) -> bool:
    return "x-goog-api-key" in request.headers or "/v1beta" in request.path


def _entry(request: Request, name: str) -> dict[str, Any]:
    if _is_gemini(request):
        methods = ["generateContent", "countTokens"]
        shown = {"name": f"models/{name}", "displayName": name}
        return {**shown, "supportedGenerationMethods": methods}
    if "anthropic-version" in request.headers:
        return {"type": "model", "id": name, "display_name": name, "created_at": _LISTED_ON}
    return {"id": name, "object": "model", "created": _LISTED_AT, "owned_by": "playhead"}
