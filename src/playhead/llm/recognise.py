"""Tell LLM calls from all other HTTP, by how they look and not by where they go.

Knows addresses and a word or two of the bodies; decodes nothing. Runs for every request
that an agent makes, so whatever is no LLM call must be dismissed by its last path segment.
"""

from __future__ import annotations

from urllib.parse import unquote

from playhead.llm.http.content_encoding import undo
from playhead.llm.http.headers import Headers, header

ANTHROPIC = "anthropic.messages"
OPENAI_CHAT = "openai.chat"
OPENAI_RESPONSES = "openai.responses"
GEMINI = "gemini.generate"

# The last segment of the path, or what follows its colon.
_TAILS: dict[str, str] = {
    "messages": ANTHROPIC,
    "rawPredict": ANTHROPIC,
    "streamRawPredict": ANTHROPIC,
    "invoke": ANTHROPIC,
    "invoke-with-response-stream": ANTHROPIC,
    "completions": OPENAI_CHAT,
    "responses": OPENAI_RESPONSES,
    "generateContent": GEMINI,
    "streamGenerateContent": GEMINI,
}
_STREAMS = frozenset(("streamRawPredict", "invoke-with-response-stream", "streamGenerateContent"))


def may_be_llm(url: str) -> bool:
    """Whether an address alone leaves it open: the body then says whether it is an LLM call."""
    return _api_at(url.partition("?")[0].rstrip("/")) is not None


def api_of(method: str, url: str, headers: Headers, body: bytes | None) -> str | None:
    """The LLM API that this request speaks to, or None for all other HTTP.

    Without a body (it is being streamed) the address must be telling enough by itself.
    """
    path = url.partition("?")[0].rstrip("/")
    tail = path[path.rfind("/") + 1 :]
    api = _api_at(path)
    if api is None:
        return None
    if method.upper() != "POST":
        return api if api == OPENAI_RESPONSES and _is_websocket(method, url, headers) else None
    if body is not None:
        body = _plain(body, headers)
    if api == ANTHROPIC:
        return api if _is_anthropic(path, tail, headers, body) else None
    if api == OPENAI_CHAT:
        fits = path.endswith("/chat/completions") and _mentions(body, b'"messages"')
        return api if fits else None
    if api == OPENAI_RESPONSES:
        return api if _is_responses(path, body) else None
    return api if ":" in tail and _mentions(body, b'"contents"') else None


def model_in(url: str) -> str | None:
    """The model that the address names (Google, Vertex, Bedrock, Azure), if it does."""
    path = url.partition("?")[0]
    for before, after in (("/models/", ":"), ("/model/", "/"), ("/deployments/", "/")):
        _, found, rest = path.rpartition(before)
        name = rest.rpartition(after)[0] if after == ":" else rest.partition(after)[0]
        if found and name:
            return unquote(name)
    return None


def stream_in(url: str) -> bool | None:
    """Whether the address asks for a stream; None where addresses do not say."""
    path = url.partition("?")[0].rstrip("/")
    tail = path[path.rfind("/") + 1 :]
    verb = tail[tail.rfind(":") + 1 :]
    if verb in _STREAMS:
        return True
    return False if verb in ("rawPredict", "invoke", "generateContent") else None


def _api_at(path: str) -> str | None:
    tail = path[path.rfind("/") + 1 :]
    return _TAILS.get(tail[tail.rfind(":") + 1 :])


def _is_anthropic(path: str, tail: str, headers: Headers, body: bytes | None) -> bool:
    if tail == "messages":
        if body is None:
            return path.endswith("/v1/messages") and _has(headers, "anthropic-version")
        named = path.endswith("/v1/messages") or _has(headers, "anthropic-version")
        return named and _mentions(body, b'"messages"', b'"model"')
    if tail.startswith("count-tokens"):
        return False
    if body is None:
        return "anthropic" in path or "claude" in path
    # Bedrock and Vertex serve other vendors' models at the same addresses.
    return _mentions(body, b'"anthropic_version"', b'"messages"')


def _is_responses(path: str, body: bytes | None) -> bool:
    if body is None:
        return path.endswith("/v1/responses")
    asks = (b'"input"', b'"previous_response_id"', b'"prompt"', b'"conversation"')
    return _mentions(body) and b'"model"' in body and any(word in body for word in asks)


def _mentions(body: bytes | None, *words: bytes) -> bool:
    """Whether a JSON object has these keys somewhere; unknown counts as yes."""
    if body is None:
        return True
    return body[:64].lstrip()[:1] == b"{" and all(word in body for word in words)


def _plain(body: bytes, headers: Headers) -> bytes | None:
    """The body without its encoding; None, as if it were not there, when that cannot be had."""
    encoding = header(headers, "content-encoding")
    if encoding is None:
        return body
    plain = undo(encoding, body)
    return None if plain.reason is not None else plain.body


def _is_websocket(method: str, url: str, headers: Headers) -> bool:
    if url.startswith(("ws://", "wss://")):
        return True
    return method.upper() == "GET" and (header(headers, "upgrade") or "").lower() == "websocket"


def _has(headers: Headers, name: str) -> bool:
    return header(headers, name) is not None
