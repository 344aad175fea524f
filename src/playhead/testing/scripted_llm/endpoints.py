"""Which endpoint a path is. Knows the ends of paths only, so that any base URL will do."""

from __future__ import annotations

from typing import Literal

from playhead.testing.scripted_llm.gemini_wire import PATH as GEMINI_PATH

WireName = Literal["anthropic", "openai-chat", "openai-responses", "gemini"]
Verb = Literal["generate", "count", "models", "hello"]

SPOKEN = (
    "POST …/messages, …/messages/count_tokens, …/chat/completions, …/responses (also as a "
    "WebSocket), …/models/MODEL:generateContent, :streamGenerateContent, :countTokens; "
    "GET …/models"
)
_POSTS: tuple[tuple[str, Verb, WireName], ...] = (
    ("/messages/count_tokens", "count", "anthropic"),
    ("/messages", "generate", "anthropic"),
    ("/chat/completions", "generate", "openai-chat"),
    ("/responses", "generate", "openai-responses"),
)
_GEMINI_VERBS: dict[str, Verb] = {
    "generateContent": "generate",
    "streamGenerateContent": "generate",
    "countTokens": "count",
}


def endpoint_of(method: str, path: str) -> tuple[Verb, WireName | None] | None:
    """What is asked for and on which wire; None for a path that nobody serves."""
    path = path.rstrip("/") or "/"
    if method in ("GET", "HEAD"):
        if path == "/" or path.endswith("/api/hello"):
            return "hello", None
        parent = path.rpartition("/")[0]
        if path.endswith("/models") or parent.endswith("/models"):
            return "models", None
        return None
    if method != "POST":
        return None
    for end, verb, wire in _POSTS:
        if path.endswith(end):
            return verb, wire
    gemini = GEMINI_PATH.search(path)
    if gemini is not None and gemini["verb"] in _GEMINI_VERBS:
        return _GEMINI_VERBS[gemini["verb"]], "gemini"
    return None
