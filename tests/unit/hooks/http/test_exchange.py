"""What of a request is compared, what is kept beside it, and what an LLM call is called."""

import json

import pytest

from playhead.hooks.http.exchange import Request, describe
from playhead.hooks.http.streamed_forms import STREAMED
from playhead.redact import Redactor

CHAT = {"model": "gpt-6", "messages": [{"role": "user", "content": 'say "model": "x"'}]}


def call(method="POST", url="https://api.example.com/v1/x", headers=(), body=None, redactor=None):
    return describe(Request("httpx", method, url, list(headers), body), redactor)


def test_only_headers_that_change_the_answer_are_compared():
    headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", "x/1"),
        ("Idempotency-Key", "f00"),
        ("Anthropic-Version", "2023-06-01"),
    ]
    made = call(headers=headers)
    kept = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    assert made.request["headers"] == kept
    assert made.facts["headers"] == [["User-Agent", "x/1"], ["Idempotency-Key", "f00"]]


def test_a_header_that_comes_twice_is_compared_whole():
    made = call(headers=[("Accept", "text/html"), ("accept", "application/json")])
    assert made.request["headers"] == {"accept": "text/html, application/json"}


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (None, None),
        (b"", None),
        (b"text", {"text": "text"}),
        (b"\xff", {"b64": "/w=="}),
        (STREAMED, {"streamed": True}),
    ],
)
def test_a_body_is_readable_where_it_can_be(body, shown):
    assert call(body=body).request["body"] == shown


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.example.com/v1/x?key=1#part", "POST api.example.com/v1/x"),
        ("https://me:pass@example.com:8080/", "POST example.com:8080/"),
        ("http://[::1]:80/x", "POST [::1]:80/x"),
    ],
)
def test_a_name_holds_no_credentials_and_no_query(url, name):
    assert call(url=url).name == name


def test_an_llm_call_is_named_after_its_api_and_model():
    made = call(url="https://any.host/v1/chat/completions", body=json.dumps(CHAT).encode())
    assert (made.boundary, made.name) == ("llm", "openai.chat gpt-6")
    assert made.facts["api"] == "openai.chat"
    assert made.facts["model"] == "gpt-6"


def test_a_tool_that_takes_a_model_does_not_name_the_call():
    history = {"messages": [{"tool": {"input": {"model": "other"}}}], "model": "gpt-6"}
    made = call(url="https://any.host/v1/chat/completions", body=json.dumps(history).encode())
    assert made.name == "openai.chat gpt-6"


def test_a_socket_of_the_realtime_api_is_an_llm_call():
    made = call("GET", "wss://api.openai.com/v1/realtime?model=gpt-realtime")
    assert (made.boundary, made.name) == ("llm", "openai.responses gpt-realtime")


def test_an_upgrade_makes_a_web_address_a_socket():
    made = call("GET", "https://example.com/chat", [("Upgrade", "websocket")])
    assert made.request["url"] == "wss://example.com/chat"
    assert made.boundary == "http"


def test_credentials_are_hidden_and_stay_comparable():
    redactor = Redactor(key=b"key")
    headers = [("Authorization", "Bearer abcdef0123456789"), ("Cookie", "session=1")]
    first = call(headers=headers, redactor=redactor).facts["headers"]
    again = call(headers=headers, redactor=redactor).facts["headers"]
    assert first == again
    assert "abcdef0123456789" not in str(first)
    assert "session=1" not in str(first)


def test_batches_of_traces_and_events_are_side_traffic_and_a_query_of_them_is_not():
    for url in (
        "http://collector:4318/v1/traces",
        "https://api.openai.com/v1/traces/ingest",
        "https://telemetry.example.com:4319/any",
    ):
        sent = describe(Request("requests", "POST", url, [], b"x"))
        assert sent.facts["side"] == "telemetry"
    asked = describe(Request("requests", "GET", "http://collector/v1/traces", [], b""))
    assert "side" not in asked.facts
    work = describe(Request("requests", "POST", "http://shop/v1/orders", [], b""))
    assert "side" not in work.facts
