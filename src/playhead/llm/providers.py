"""The table of LLM providers. To add one, write its module and add one row here (see CONTRIBUTING.md).

Knows which providers there are; everything about an API is in its provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playhead.llm.anthropic import AnthropicMessages
from playhead.llm.gemini import GeminiGenerate
from playhead.llm.openai import OpenAiChat, OpenAiResponses
from playhead.llm.provider import Provider

_ROWS: tuple[Provider, ...] = (
    AnthropicMessages(),
    OpenAiChat(),
    OpenAiResponses(),
    GeminiGenerate(),
)

_by_api: dict[str, Provider] = {}
# Several providers may share the end of a path; the first whose `matches` agrees has it.
_by_endpoint: dict[str, tuple[Provider, ...]] = {}
# Answers for a call that speaks no known API: OpenAI's error form, nothing to decode.
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
    """Return the provider of this API, or one with the defaults: for errors and rewriting."""
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
