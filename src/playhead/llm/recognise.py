"""Tell LLM calls from other HTTP requests by their form: the host may be a gateway or a local server.

Knows addresses and WebSocket upgrades; what a provider's requests look like is in `providers`. Runs for
every request of an agent, so that other requests must be dismissed by the last segment of their path.
"""

from __future__ import annotations

from urllib.parse import unquote

from playhead.llm.http.content_encoding import undo
from playhead.llm.http.headers import Headers, header
from playhead.llm.providers import providers_at


def may_be_llm(url: str) -> bool:
    """Whether the address could be that of an LLM call; the body then decides."""
    return bool(providers_at(_endpoint(_path(url))))


def api_of(method: str, url: str, headers: Headers, body: bytes | None) -> str | None:
    """Return the name of the LLM API that this request uses; None for all other requests.

    Without a body (it is being streamed) the address and the headers must be enough.
    """
    path = _path(url)
    candidates = providers_at(_endpoint(path))
    if not candidates:
        return None
    if method.upper() != "POST":
        if not _is_websocket(method, url, headers):
            return None
        return next((one.api for one in candidates if one.matches_websocket(path)), None)
    if body is not None:
        body = _decompressed(body, headers)
    return next((one.api for one in candidates if one.matches(path, headers, body)), None)


def model_in(url: str) -> str | None:
    """Return the model that the address names (Google, Vertex, Bedrock, Azure), if it names one."""
    path = url.partition("?")[0]
    for before, after in (("/models/", ":"), ("/model/", "/"), ("/deployments/", "/")):
        _, found, rest = path.rpartition(before)
        name = rest.rpartition(after)[0] if after == ":" else rest.partition(after)[0]
        if found and name:
            return unquote(name)
    return None


def stream_in(url: str) -> bool | None:
    """Whether the address asks for a stream; None where the body decides."""
    endpoint = _endpoint(_path(url))
    return next((one.endpoints[endpoint] for one in providers_at(endpoint)), None)


def _path(url: str) -> str:
    return url.partition("?")[0].rstrip("/")


def _endpoint(path: str) -> str:
    """Return the last segment of the path, or the verb after its colon."""
    tail = path[path.rfind("/") + 1 :]
    return tail[tail.rfind(":") + 1 :]


def _decompressed(body: bytes, headers: Headers) -> bytes | None:
    """Return the body without its content encoding; None, as for a streamed body, if that fails."""
    encoding = header(headers, "content-encoding")
    if encoding is None:
        return body
    plain = undo(encoding, body)
    return None if plain.reason is not None else plain.body


def _is_websocket(method: str, url: str, headers: Headers) -> bool:
    if url.startswith(("ws://", "wss://")):
        return True
    return method.upper() == "GET" and (header(headers, "upgrade") or "").lower() == "websocket"
