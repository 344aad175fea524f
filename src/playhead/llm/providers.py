"""The table of LLM providers, and the test whether an HTTP request is an LLM call.

To add a provider, write its module and add one row here (see CONTRIBUTING.md). Everything about one API is in
its provider. A call is recognised by its form, because the host may be a gateway or a local server. The test
runs for every request of an agent, so it dismisses other requests by the last segment of their path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from playhead.llm.anthropic import AnthropicMessages
from playhead.llm.gemini import GeminiGenerate
from playhead.llm.http_headers import Headers, header, undo
from playhead.llm.openai import OpenAiChat, OpenAiResponses
from playhead.llm.provider import Provider


def may_be_llm(url: str) -> bool:
    """Return whether the address could be that of an LLM call; the body then decides."""
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
    """Return whether the address asks for a stream; None where the body decides."""
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


_ROWS: tuple[Provider, ...] = (
    AnthropicMessages(),
    OpenAiChat(),
    OpenAiResponses(),
    GeminiGenerate(),
)

_by_api: dict[str, Provider] = {}
# Several providers may share the end of a path; the first whose `matches` returns True is used.
_by_endpoint: dict[str, tuple[Provider, ...]] = {}
# The default for a call of an unknown API: OpenAI's error form, nothing to decode.
_UNKNOWN = Provider()


def register(provider: Provider) -> None:
    """Add a provider to the table, or replace the one with the same `api`."""
    known = {**_by_api, provider.api: provider}
    _fill(tuple(known.values()))


@contextmanager
def registered(provider: Provider) -> Iterator[None]:
    """Add a provider for the duration of a `with` block."""
    before = tuple(_by_api.values())
    register(provider)
    try:
        yield
    finally:
        _fill(before)


def all_providers() -> tuple[Provider, ...]:
    return tuple(_by_api.values())


def provider_of(api: str | None) -> Provider | None:
    """Return the provider whose API has this name on tapes; None for one that is not known."""
    return _by_api.get(api or "")


def provider_or_default(api: str | None) -> Provider:
    """Return the provider of this API, or a default one: for errors and rewriting."""
    return _by_api.get(api or "", _UNKNOWN)


def providers_at(endpoint: str) -> tuple[Provider, ...]:
    """Return the providers with an endpoint that ends like this (see `Provider.endpoints`)."""
    return _by_endpoint.get(endpoint, ())


def _fill(rows: tuple[Provider, ...]) -> None:
    _by_api.clear()
    _by_endpoint.clear()
    for provider in rows:
        _by_api[provider.api] = provider
        for endpoint in provider.endpoints:
            _by_endpoint[endpoint] = (*_by_endpoint.get(endpoint, ()), provider)


_fill(_ROWS)


# Paths to which exporters of traces, metrics and events send their batches. The content of a batch depends on when its
# thread ran, and the program's work does not depend on the answer.
_EXPORTS = re.compile(
    r"/v1/(?:traces|metrics|logs)$|/v1/traces/ingest$|/runs/(?:batch|multipart)$|/api/\d+/envelope/$"
    r"|^https?://(?:telemetry|[^/]*\.posthog|[^/]*\.mixpanel|[^/]*\.i\.posthog)\.[^/]+/"
)


def export_facts(method: str, url: str) -> dict[str, object]:
    """Return the facts of a request that sends telemetry; none for the agent's own work."""
    if method != "POST" or _EXPORTS.search(url.partition("?")[0]) is None:
        return {}
    return {"side": "telemetry", "export": True}
