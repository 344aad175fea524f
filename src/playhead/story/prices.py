"""Price LLM exchanges. Knows genai-prices and the overrides of the config; does not know any API.

An unknown price is None and never 0. Nothing is downloaded: the prices are those of the installed
package, and each cost names its version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from playhead.errors import ConfigError
from playhead.llm import Usage
from playhead.llm.providers import provider_of

Overrides = Mapping[str, Mapping[str, Any]]

_MILLION = Decimal(1_000_000)
# Some vendors charge more for long prompts. An entry has a constant price per token only if the list gives that price
# for this many tokens, too. Longer prompts are always priced with the list.
_MUCH = 100_000
_PRICES = ("input", "output", "cache_read", "cache_write")
# Compatible servers serve any model. Vendors come before hosts, because most people pay the vendor's price. Flat-rate
# subscriptions, whose price per token is 0, are left out.
_THEN = (
    *("anthropic", "openai", "google", "mistral", "deepseek", "x-ai", "moonshotai", "zai"),
    *("minimax", "cohere", "perplexity", "groq", "cerebras", "together", "fireworks", "novita"),
    *("aws", "azure", "openrouter"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """US dollars, and the source of the price: ``genai-prices 0.2.1`` or ``config``."""

    usd: Decimal
    source: str


def cost_of(
    api: str,
    model: str | None,
    usage: Usage | None,
    when: datetime,
    overrides: Overrides | None = None,
    *,
    url: str | None = None,
    service_tier: str | None = None,
) -> Cost | None:
    """The cost of one exchange at that time; None when model, tokens or price are unknown.

    ``overrides`` maps model globs to dollars per million tokens: ``{"gpt-*": {"input": 1.25,
    "output": 10, "cache_read": 0.125}}``. With ``url``, the server's own prices come first.
    """
    if model is None or usage is None:
        return None
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    own = _override_for(model, overrides or {})
    if own is not None:
        usd = _by_override(usage, own)
        return None if usd is None else Cost(usd=usd, source="config")
    listing = _find(api, model, url and url.partition("?")[0])
    if listing is None:
        return None
    special = service_tier or usage.cache_write_1h_tokens or usage.input_tokens > _MUCH
    rates = None if special else _rates(listing)
    return _by_rates(usage, rates) if rates else _by_listing(usage, listing, when, service_tier)


def _override_for(model: str, overrides: Overrides) -> dict[str, Decimal] | None:
    """Return the user's price of a model. The exact name wins; then the first matching glob, in the order of the
    config.
    """
    name = model.lower()
    globs = sorted(overrides, key=lambda glob: glob.lower() != name)
    for glob in globs:
        if fnmatchcase(name, glob.lower()) or glob.lower() == name:
            given: Any = overrides[glob]
            if not isinstance(given, Mapping):
                raise _wrong(glob, "is", given)
            return {key: _price(glob, key, value) for key, value in given.items()}
    return None


def _price(glob: str, key: str, value: Any) -> Decimal:
    try:
        price = Decimal(str(value))
    except InvalidOperation:
        price = Decimal("NaN")
    if key not in _PRICES or not price.is_finite() or price < 0:
        raise _wrong(glob, f"has {key} =", value)
    return price


def _wrong(glob: str, found: str, value: Any) -> ConfigError:
    return ConfigError(
        f"The price of {glob!r} {found} {value!r}. "
        f"Expected {', '.join(_PRICES)}, in US dollars per million tokens."
    )


def _by_override(usage: Usage, prices: Mapping[str, Decimal]) -> Decimal | None:
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    fresh, output = (usage.input_tokens or 0) - read - written, usage.output_tokens or 0
    if fresh < 0:
        return None  # the counts contradict each other
    plain = prices.get("input")
    bill = (
        (fresh, plain),
        (read, prices.get("cache_read", plain)),
        (written, prices.get("cache_write", plain)),
        (output, prices.get("output")),
    )
    usd = Decimal(0)
    for tokens, price in bill:
        if tokens and price is None:
            return None
        usd += tokens * (price or Decimal(0)) / _MILLION
    return usd


@dataclass(frozen=True, slots=True)
class _Listing:
    """The entry of the price list for one model of one provider."""

    provider: str
    name: str


@lru_cache(maxsize=4096)
def _find(api: str, model: str, url: str | None) -> _Listing | None:
    """Find the entry of a model in the price list. Cached, because a miss queries two dozen providers."""
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return None
    for name, where in _places(api, model, url):
        try:
            found = calc_price(Tokens(input_tokens=0, output_tokens=0), name, **where)
        except (LookupError, ValueError):
            continue
        return _Listing(found.provider.id, name)
    return None


def _places(api: str, model: str, url: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and providers to try, best first."""
    name = model.removeprefix("models/")
    if url is not None:
        yield name, {"provider_api_url": url}
    if "anthropic." in name:
        yield name, {"provider_id": "aws"}  # Bedrock's names: us.anthropic.claude-…
    provider = provider_of(api)
    if provider is not None and provider.price_id is not None:
        yield name, {"provider_id": provider.price_id}
    yield name, {}
    names = [name]
    if "/" in name:
        yield name, {"provider_id": "openrouter"}
        names.append(name.rpartition("/")[2])
    for company in _THEN:
        for one in names:
            yield one, {"provider_id": company}


@dataclass(frozen=True, slots=True)
class _Rates:
    """Constant prices per token."""

    input: Decimal
    cache_read: Decimal
    cache_write: Decimal
    output: Decimal
    source: str


@lru_cache(maxsize=4096)
def _rates(listing: _Listing) -> _Rates | None:
    """Return the prices per token of an entry; None: they depend on the date or the length of the prompt.

    Calculating with the list takes longer than reading a small run, so it is used once, for one token of each kind.
    """
    from genai_prices import Usage as Tokens
    from genai_prices import __version__, calc_price
    from genai_prices.types import ModelPrice

    def price(**tokens: int) -> Decimal:
        found = calc_price(Tokens(**tokens), listing.name, provider_id=listing.provider)
        return found.total_price if isinstance(found.model.prices, ModelPrice) else Decimal("NaN")

    try:
        rates = _Rates(
            input=price(input_tokens=1, output_tokens=0),
            cache_read=price(input_tokens=1, output_tokens=0, cache_read_tokens=1),
            cache_write=price(input_tokens=1, output_tokens=0, cache_write_tokens=1),
            output=price(input_tokens=0, output_tokens=1),
            source=f"genai-prices {__version__}",
        )
        much = price(input_tokens=_MUCH, output_tokens=_MUCH)
    except ValueError:
        return None
    is_plain = much == _MUCH * (rates.input + rates.output) and rates.input and rates.output
    known = rates.cache_read.is_finite() and rates.cache_write.is_finite()
    return rates if is_plain and known else None


def _by_rates(usage: Usage, rates: _Rates) -> Cost | None:
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    fresh = (usage.input_tokens or 0) - read - written
    if min(fresh, read, written, usage.output_tokens or 0) < 0:
        return None  # the counts contradict each other
    usd = fresh * rates.input + read * rates.cache_read + written * rates.cache_write
    return Cost(usd=usd + (usage.output_tokens or 0) * rates.output, source=rates.source)


def _by_listing(
    usage: Usage, listing: _Listing, when: datetime, service_tier: str | None
) -> Cost | None:
    from genai_prices import Usage as Tokens
    from genai_prices import __version__, calc_price

    tokens = {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cache_write_1h_tokens": usage.cache_write_1h_tokens,
        "output_tokens": usage.output_tokens,
    }
    try:
        found = calc_price(
            Tokens(**tokens),
            listing.name,
            provider_id=listing.provider,
            genai_request_timestamp=when,
            price_context={"service_tier": service_tier} if service_tier else None,
        )
    except ValueError:
        return None  # the counts contradict each other: more cached than read
    if not found.total_price and any(tokens.values()) and not listing.name.endswith(":free"):
        return None  # listed without a price per token (a subscription, a preview)
    return Cost(usd=found.total_price, source=f"genai-prices {__version__}")
