import socket
import sys
from datetime import datetime, timezone
from decimal import Decimal

import genai_prices
import pytest

from playhead.errors import ConfigError
from playhead.llm import Usage
from playhead.story.prices import Cost, cost_of
from playhead.story.prices import _find as find_listing

WHEN = datetime(2026, 2, 1, 12, tzinfo=timezone.utc)
LISTED = f"genai-prices {genai_prices.__version__}"
CACHED = Usage(
    input_tokens=10_000, cache_read_tokens=6_000, cache_write_tokens=2_000, output_tokens=500
)
PLAIN = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    def refuse(*args):
        raise AssertionError("prices must not touch the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_cached_tokens_cost_what_they_cost():
    cost = cost_of("anthropic.messages", "claude-sonnet-4-5", CACHED, WHEN)
    # 2000 fresh at $3, 6000 read at $0.30, 2000 written at $3.75, 500 out at $15.
    assert cost == Cost(usd=Decimal("0.0228"), source=LISTED)


def test_an_hour_in_the_cache_costs_more_than_five_minutes():
    hour = Usage(
        input_tokens=10_000,
        cache_read_tokens=6_000,
        cache_write_tokens=2_000,
        cache_write_1h_tokens=2_000,
        output_tokens=500,
    )
    cost = cost_of("anthropic.messages", "claude-sonnet-4-5", hour, WHEN)
    assert cost is not None
    assert cost.usd == Decimal("0.0228") + 2_000 * (6 - Decimal("3.75")) / 1_000_000


@pytest.mark.parametrize(
    ("api", "model", "usd"),
    [
        ("anthropic.messages", "claude-haiku-4-5-20251001", "6"),
        ("openai.chat", "gpt-4.1-2025-04-14", "10"),
        ("openai.responses", "gpt-5.1-codex", "11.25"),
        ("gemini.generate", "models/gemini-2.5-flash", "2.8"),
        # Compatible servers serve anybody's models.
        ("openai.chat", "claude-haiku-4-5", "6"),
        ("openai.chat", "anthropic/claude-haiku-4.5", "6"),
        ("openai.chat", "openai/gpt-4.1", "10"),
        ("openai.chat", "llama-3.3-70b-versatile", "1.38"),
        ("anthropic.messages", "kimi-k2-thinking", "3.1"),
        # Bedrock's own names and prices.
        ("anthropic.messages", "us.anthropic.claude-haiku-4-5-20251001-v1:0", "6.6"),
    ],
)
def test_a_model_is_found_whoever_serves_it(api, model, usd):
    assert cost_of(api, model, PLAIN, WHEN) == Cost(usd=Decimal(usd), source=LISTED)


def test_the_server_that_was_asked_is_looked_up_first():
    url = "https://openrouter.ai/api/v1/chat/completions?x=1"
    there = cost_of("openai.chat", "openai/gpt-4.1", PLAIN, WHEN, url=url)
    assert there == Cost(usd=Decimal(10), source=LISTED)
    elsewhere = "http://127.0.0.1:4000/v1/chat/completions"
    assert cost_of("openai.chat", "gpt-4.1", PLAIN, WHEN, url=elsewhere) == there


def test_the_service_tier_changes_the_price():
    when = datetime(2026, 11, 1, tzinfo=timezone.utc)  # tiers are listed since the summer
    flex = cost_of("openai.responses", "gpt-5", PLAIN, when, service_tier="flex")
    default = cost_of("openai.responses", "gpt-5", PLAIN, when, service_tier="default")
    assert flex is not None
    assert default is not None
    assert flex.usd * 2 == default.usd


@pytest.mark.parametrize("model", [None, "", "my-finetune", "qwen3:8b", "x" * 10_000, "\ud800"])
def test_an_unknown_model_has_no_cost_rather_than_none_at_all(model):
    assert cost_of("openai.chat", model, PLAIN, WHEN) is None


@pytest.mark.parametrize(
    "usage",
    [
        None,
        Usage(),
        Usage(input_tokens=5),
        Usage(output_tokens=5),
        Usage(input_tokens=10, cache_read_tokens=6_000, output_tokens=5),
    ],
)
def test_unknown_or_contradictory_counts_have_no_cost(usage):
    assert cost_of("openai.chat", "gpt-5", usage, WHEN) is None
    own = {"gpt-5": {"input": 1, "output": 1}}
    assert cost_of("openai.chat", "gpt-5", usage, WHEN, own) is None


def test_a_model_that_is_listed_without_a_price_has_no_cost():
    assert cost_of("gemini.generate", "gemma-3-27b-it", PLAIN, WHEN) is None


def test_what_is_free_by_name_costs_nothing():
    cost = cost_of("openai.chat", "allenai/molmo-7b-d:free", PLAIN, WHEN)
    assert cost == Cost(usd=Decimal(0), source=LISTED)


def test_no_tokens_cost_nothing():
    usage = Usage(input_tokens=0, output_tokens=0)
    assert cost_of("openai.chat", "gpt-5", usage, WHEN) == Cost(usd=Decimal(0), source=LISTED)


def test_a_price_of_the_config_wins():
    own = {"claude-*": {"input": 1, "output": "2.5", "cache_read": 0.1, "cache_write": 1.25}}
    cost = cost_of("anthropic.messages", "Claude-Sonnet-4-5", CACHED, WHEN, own)
    # 2000 fresh at $1, 6000 read at $0.10, 2000 written at $1.25, 500 out at $2.50.
    assert cost == Cost(usd=Decimal("0.00635"), source="config")


def test_cached_tokens_cost_like_others_where_the_config_does_not_say():
    own = {"local": {"input": 10, "output": 20}}
    cost = cost_of("openai.chat", "local", CACHED, WHEN, own)
    assert cost == Cost(usd=Decimal("0.11"), source="config")


def test_a_price_that_the_config_leaves_out_is_unknown_when_it_is_needed():
    assert cost_of("openai.chat", "local", CACHED, WHEN, {"local": {"input": 1}}) is None
    silent = Usage(input_tokens=1_000_000, output_tokens=0)
    cost = cost_of("openai.chat", "local", silent, WHEN, {"local": {"input": 1}})
    assert cost == Cost(usd=Decimal(1), source="config")


def test_the_exact_name_wins_and_then_the_first_glob():
    free = {"input": 0, "output": 0}
    own = {"gpt-*": {"input": 1, "output": 1}, "*": free, "gpt-5": {"input": 2, "output": 2}}

    def usd(model):
        cost = cost_of("openai.chat", model, PLAIN, WHEN, own)
        return None if cost is None else cost.usd

    assert (usd("gpt-5"), usd("gpt-6"), usd("other/model")) == (4, 2, 0)


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ({"input": "cheap"}, "has input = 'cheap'"),
        ({"input": -1}, "has input = -1"),
        ({"input": float("nan")}, "has input = nan"),
        ({"inptu": 1}, "has inptu = 1"),
        (3, "is 3"),
    ],
)
def test_a_wrong_price_in_the_config_is_said_with_what_was_expected(prices, said):
    with pytest.raises(ConfigError) as caught:
        cost_of("openai.chat", "gpt-5", PLAIN, WHEN, {"gpt-*": prices})
    assert said in str(caught.value)
    assert "US dollars per million tokens" in str(caught.value)


def test_without_the_price_list_every_price_is_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    find_listing.cache_clear()
    try:
        assert cost_of("openai.chat", "gpt-5", PLAIN, WHEN) is None
    finally:
        find_listing.cache_clear()
