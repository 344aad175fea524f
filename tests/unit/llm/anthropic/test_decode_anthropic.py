import json

import pytest

from playhead.llm.anthropic.decode_anthropic import decode_request, decode_response
from playhead.llm.llm_exchange import (
    Image,
    LlmTool,
    Other,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)

SSE = "text/event-stream"
JSON = "application/json"


def test_a_stream_gives_thinking_text_and_parallel_calls_in_order(sample):
    answer = decode_response(200, SSE, sample("anthropic_tools.sse"))
    assert answer.parts == (
        Thinking(
            text="Two cities: Zürich and 東京.",
            signature="EqoBCkgIARABGAIiQL2UoU0b1OHYi+yCHpBY7U6FQW8=",
        ),
        Text(text='I\'ll check both at once 🌦️.\n"Now"'),
        ToolUse(
            id="toolu_01A09q90qw90lq917835lq9",
            name="get_weather",
            arguments={"city": "Zürich", "days": 3},
        ),
        ToolUse(id="toolu_01T1x1fJ34qAmk2tNTrN7Up6", name="now", arguments={}),
    )
    assert answer.complete
    assert answer.reason is None
    assert answer.id == "msg_01AbCdEfGhIjKlMnOpQrStUv"
    assert answer.model == "claude-sonnet-4-5-20250929"
    assert answer.stop_reason == "tool_use"
    assert answer.service_tier == "standard"
    assert answer.thinking == "Two cities: Zürich and 東京."
    assert [call.name for call in answer.tool_calls] == ["get_weather", "now"]


def test_input_tokens_include_both_caches(sample):
    answer = decode_response(200, SSE, sample("anthropic_tools.sse"))
    assert answer.usage == Usage(
        input_tokens=412 + 8000 + 1500,
        cache_read_tokens=8000,
        cache_write_tokens=1500,
        cache_write_1h_tokens=1000,
        output_tokens=143,
        reasoning_tokens=40,
    )


def test_later_counts_replace_earlier_ones_and_absent_ones_do_not(sample):
    usage = decode_response(200, SSE, sample("anthropic_refusal.sse")).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (30, 9)
    assert usage.cache_read_tokens is None


def test_a_plain_message_is_read_whole(sample):
    answer = decode_response(200, JSON, sample("anthropic_message.json"))
    assert answer.parts == (
        Thinking(text="Short one.", signature="ErUBCkYIBxgCIkD="),
        Thinking(text="", signature="EmwKAhgBEgy3va3pzix", redacted=True),
        Text(text="Reading the file — 📄 now."),
        ToolUse(
            id="srvtoolu_01W", name="web_search", arguments={"query": "playhead"}, by_provider=True
        ),
        ToolResult(
            id="srvtoolu_01W",
            content=(
                Other(
                    type="web_search_result",
                    data={
                        "type": "web_search_result",
                        "url": "https://example.com",
                        "title": "Example",
                        "encrypted_content": "abc",
                        "page_age": None,
                    },
                ),
            ),
            is_error=False,
        ),
        ToolUse(
            id="toolu_01ReadFile",
            name="read_file",
            arguments={"path": "src/main.py", "lines": [1, 40]},
        ),
    )
    assert answer.complete
    assert answer.usage is not None
    assert answer.usage.input_tokens == 21009


def test_what_the_provider_runs_itself_is_no_call_for_the_agent(sample):
    answer = decode_response(200, JSON, sample("anthropic_message.json"))
    assert [call.name for call in answer.tool_calls] == ["read_file"]


def test_a_refusal_is_said_beside_the_text(sample):
    answer = decode_response(200, SSE, sample("anthropic_refusal.sse"))
    assert answer.text == "Sure, first"
    assert answer.refusal == "cyber"
    assert answer.stop_reason == "refusal"
    assert answer.complete


def test_an_error_in_the_stream_is_kept_with_what_came_before(sample):
    answer = decode_response(200, SSE, sample("anthropic_overloaded.sse"))
    assert answer.text == "The answer is"
    assert answer.error is not None
    assert (answer.error.type, answer.error.message) == ("overloaded_error", "Overloaded")
    assert answer.error.status is None
    assert not answer.complete
    assert answer.reason == "the server broke it off: overloaded_error"


def test_an_answer_that_is_an_error_is_complete(sample):
    answer = decode_response(429, JSON, sample("anthropic_rate_limit.json"))
    assert answer.complete
    assert answer.error is not None
    assert (answer.error.status, answer.error.type) == (429, "rate_limit_error")
    assert answer.usage is None
    assert answer.parts == ()


def test_arguments_that_were_cut_are_raw_text(sample):
    body = sample("anthropic_tools.sse")
    cut = body[: body.index(b'rich\\", ')]
    call = decode_response(200, SSE, cut).tool_calls[0]
    assert call == ToolUse(
        id="toolu_01A09q90qw90lq917835lq9",
        name="get_weather",
        arguments='{"city": "Zü',
        complete=False,
    )


def test_a_call_whose_arguments_have_not_begun_is_not_complete(sample):
    body = sample("anthropic_tools.sse")
    cut = body[: body.index(b"input_json_delta")]
    call = decode_response(200, SSE, cut).tool_calls[0]
    assert (call.name, call.arguments, call.complete) == ("get_weather", "", False)


def test_a_call_is_complete_before_its_message_is(sample):
    body = sample("anthropic_tools.sse")
    cut = body[: body.index(b"toolu_01T1x1fJ34qAmk2tNTrN7Up6")]
    answer = decode_response(200, SSE, cut)
    assert not answer.complete
    assert [call.complete for call in answer.tool_calls] == [True]


def test_malformed_arguments_of_a_finished_call_are_kept_as_the_model_wrote_them():
    events = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"a": oops'},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    call = decode_response(200, SSE, body).tool_calls[0]
    assert (call.arguments, call.complete) == ('{"a": oops', True)


def test_an_unreadable_event_in_the_middle_makes_the_answer_incomplete(sample):
    body = sample("anthropic_tools.sse").replace(b'"text":"I\'ll check both "}   }', b"<garbage>")
    answer = decode_response(200, SSE, body)
    assert answer.text == 'at once 🌦️.\n"Now"'
    assert not answer.complete
    assert answer.reason is not None
    assert answer.stop_reason == "tool_use"


def test_surrogate_halves_in_two_events_become_one_character():
    event = b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"%s"}}\n\n'
    body = b"".join(event % half for half in (rb"a\ud83d", rb"\ude00b", rb"\ud83d"))
    assert decode_response(200, SSE, body).text == "a😀b"


def test_a_request_is_read_whole(sample):
    request = decode_request(sample("anthropic_request.json"))
    assert request.complete
    assert request.model == "claude-sonnet-4-5"
    assert request.system == "You are a weather agent. Be brief."
    assert request.stream is True
    assert request.params == {
        "max_tokens": 8192,
        "temperature": 0.2,
        "metadata": {"user_id": "u-1"},
    }
    assert [message.role for message in request.messages] == ["user", "assistant", "user"]
    assert request.messages[0].text == "Weather in Zürich?"
    assert request.messages[1].parts == (
        Thinking(text="Ask the tool.", signature="EqoB"),
        ToolUse(id="toolu_01A", name="get_weather", arguments={"city": "Zürich"}),
    )
    failed, plain, document = request.messages[2].parts
    assert failed == ToolResult(
        id="toolu_01A",
        content=(
            Text(text="no such city"),
            Image(media_type="image/png", data="iVBORw0KGgo="),
        ),
        is_error=True,
    )
    assert plain == ToolResult(id="toolu_01B", content=(Text(text="plain"),), is_error=False)
    assert isinstance(document, Other)
    assert document.type == "document"
    assert request.tools == (
        LlmTool(
            name="get_weather",
            description="Weather of a city",
            schema={"type": "object", "properties": {"city": {"type": "string"}}},
            type="custom",
        ),
        LlmTool(name="web_search", type="web_search_20250305"),
    )


def test_a_request_that_does_not_ask_for_a_stream_wants_none():
    assert decode_request(b'{"model":"m","messages":[]}').stream is False


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"\xff\xfe", b"12"])
def test_a_request_that_cannot_be_read_says_why(body):
    request = decode_request(body)
    assert not request.complete
    assert request.reason
    assert request.model is None
