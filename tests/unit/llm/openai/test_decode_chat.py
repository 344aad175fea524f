import json

from playhead.llm.llm_exchange import (
    Image,
    LlmTool,
    Refusal,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from playhead.llm.openai.decode_chat import decode_request, decode_response

SSE = "text/event-stream"
JSON = "application/json"


def streamed(*deltas, finish="tool_calls"):
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def called(index, name, arguments, call_id):
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [call if index is None else {"index": index, **call}]}


def test_a_stream_gives_text_and_parallel_calls(sample):
    answer = decode_response(200, SSE, sample("chat_tools.sse"))
    assert answer.parts == (
        Text(text='Looking up Zürich "and" 東京 🌦'),
        ToolUse(id="call_Zur1", name="get_weather", arguments={"city": "Zürich"}),
        ToolUse(id="call_Tok2", name="get_weather", arguments={"city": "東京"}),
    )
    assert answer.complete
    assert answer.id == "chatcmpl-BwX1"
    assert answer.model == "gpt-5-2025-08-07"
    assert answer.stop_reason == "tool_calls"


def test_usage_is_that_of_the_last_chunk_and_includes_the_cache_already(sample):
    assert decode_response(200, SSE, sample("chat_tools.sse")).usage == Usage(
        input_tokens=1200, cache_read_tokens=1024, output_tokens=345, reasoning_tokens=256
    )


def test_usage_is_unknown_when_the_client_did_not_ask_for_it(sample):
    assert decode_response(200, SSE, sample("chat_refusal.sse")).usage is None


def test_a_refusal_is_no_text(sample):
    answer = decode_response(200, SSE, sample("chat_refusal.sse"))
    assert answer.parts == (Refusal(text="I'm sorry, I can't help with that."),)
    assert answer.text == ""
    assert answer.refusal == "I'm sorry, I can't help with that."


def test_reasoning_of_compatible_servers_is_thinking(sample):
    answer = decode_response(200, SSE, sample("chat_reasoning.sse"))
    assert answer.parts == (Thinking(text="Let me think."), Text(text="42"))
    assert answer.usage == Usage(
        input_tokens=18, cache_read_tokens=16, output_tokens=51, reasoning_tokens=48
    )


def test_a_stream_that_has_its_usage_is_complete_without_done(sample):
    assert decode_response(200, SSE, sample("chat_reasoning.sse")).complete


def test_a_stream_without_done_and_without_usage_is_cut(sample):
    body = sample("chat_refusal.sse").replace(b"data: [DONE]\n\n", b"")
    answer = decode_response(200, SSE, body)
    assert not answer.complete
    assert answer.reason == "the stream ended before [DONE]"


def test_an_error_in_the_stream_is_kept_with_what_came_before(sample):
    answer = decode_response(200, SSE, sample("chat_broken_off.sse"))
    assert answer.text == "Half an"
    assert answer.error is not None
    assert (answer.error.status, answer.error.message) == (502, "Provider disconnected")
    assert not answer.complete


def test_a_plain_completion_is_read_whole_with_its_second_choice(sample):
    answer = decode_response(200, JSON, sample("chat_completion.json"))
    assert answer.parts == (
        Text(text="I'll look: “Zürich” 🌧."),
        ToolUse(id="call_abc123", name="get_weather", arguments={"city": "Zürich", "days": [1, 2]}),
        ToolUse(id="call_def456", name="shell", arguments="ls -l"),
    )
    assert answer.alternatives == ((Text(text="Another try."),),)
    assert answer.usage is not None
    assert answer.usage.cache_read_tokens == 0
    assert answer.usage.cache_write_tokens is None


def test_an_answer_that_is_an_error_is_complete(sample):
    answer = decode_response(429, JSON, sample("openai_rate_limit.json"))
    assert answer.complete
    assert answer.error is not None
    assert (answer.error.type, answer.error.code) == ("tokens", "rate_limit_exceeded")


def test_an_error_under_a_200_is_an_error_all_the_same():
    answer = decode_response(200, JSON, b'{"error":{"code":402,"message":"Out of credits"}}')
    assert answer.error is not None
    assert (answer.error.status, answer.error.message) == (402, "Out of credits")


def test_arguments_that_were_cut_are_raw_text(sample):
    body = sample("chat_tools.sse")
    answer = decode_response(200, SSE, body[: body.index("ürich\\".encode())])
    assert answer.tool_calls == (
        ToolUse(id="call_Zur1", name="get_weather", arguments='{"city":"Z', complete=False),
    )


def test_arguments_that_are_no_json_are_kept_as_the_model_wrote_them():
    answer = decode_response(200, SSE, streamed(called(0, "f", "{'a': 1}", "c1")))
    assert answer.tool_calls == (ToolUse(id="c1", name="f", arguments="{'a': 1}"),)


def test_a_call_without_arguments_has_none_to_give():
    answer = decode_response(200, SSE, streamed(called(0, "f", "", "c1")))
    assert answer.tool_calls == (ToolUse(id="c1", name="f", arguments={}),)


def test_calls_without_an_index_are_told_apart_by_their_ids():
    body = streamed(called(None, "f", '{"a":1}', "c1"), called(None, "g", '{"b":2}', "c2"))
    assert [call.name for call in decode_response(200, SSE, body).tool_calls] == ["f", "g"]


def test_calls_that_are_all_numbered_zero_are_told_apart_by_their_ids():
    body = streamed(called(0, "f", '{"a":1}', "c1"), called(0, "g", '{"b":2}', "c2"))
    calls = decode_response(200, SSE, body).tool_calls
    assert [(call.id, call.arguments) for call in calls] == [("c1", {"a": 1}), ("c2", {"b": 2})]


def test_an_id_that_is_repeated_in_every_piece_is_one_call():
    body = streamed(called(0, "f", '{"a":', "c1"), called(0, "", "1}", "c1"))
    assert decode_response(200, SSE, body).tool_calls == (
        ToolUse(id="c1", name="f", arguments={"a": 1}),
    )


def test_the_old_function_call_is_a_call_too():
    body = streamed(
        {"function_call": {"name": "f", "arguments": '{"a"'}},
        {"function_call": {"arguments": ":1}"}},
        finish="function_call",
    )
    assert decode_response(200, SSE, body).tool_calls == (
        ToolUse(id=None, name="f", arguments={"a": 1}),
    )


def test_a_streamed_call_of_a_custom_tool_carries_free_text():
    call = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sh", "input": '{"x":'}}
    more = {"index": 0, "custom": {"input": "1} # ls"}}
    body = streamed({"tool_calls": [call]}, {"tool_calls": [more]})
    assert decode_response(200, SSE, body).tool_calls == (
        ToolUse(id="c1", name="sh", arguments='{"x":1} # ls'),
    )


def test_a_request_is_read_whole(sample):
    request = decode_request(sample("chat_request.json"))
    assert request.model == "gpt-4.1"
    assert request.stream is False
    assert request.system == "You are terse.\n\nUse tools."
    assert [m.role for m in request.messages] == ["user", "assistant", "tool", "system"]
    assert request.messages[0].parts == (
        Text(text="What is this?"),
        Image(media_type="image/png", data="iVBORw0KGgo="),
        Image(media_type=None, url="https://example.com/cat.png"),
    )
    assert request.messages[1].parts == (
        ToolUse(id="call_1", name="look", arguments={"at": "cat"}),
    )
    assert request.messages[2].parts == (
        ToolResult(id="call_1", content=(Text(text="a cat"),), is_error=None),
    )
    assert request.tools == (
        LlmTool(name="look", description="Look at it", schema={"type": "object"}, type="function"),
    )
    assert request.params == {"temperature": 0, "parallel_tool_calls": True}
