import json

from playhead.llm.body_frames import parse_sse
from playhead.llm.llm_exchange import (
    Image,
    Other,
    Refusal,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from playhead.llm.openai.decode_responses import decode_request, decode_response

SSE = "text/event-stream"
JSON = "application/json"

PARTS = (
    Thinking(text="**Looking** at Zürich 🌦", signature="gAAAAABo-final"),
    Text(text='Checking "東京" too.\n'),
    ToolUse(id="call_Zur", name="get_weather", arguments={"city": "Zürich"}),
    ToolUse(id="call_Pat", name="apply_patch", arguments="*** Begin Patch\n*** End Patch"),
)


def test_a_stream_gives_reasoning_text_and_calls(sample):
    answer = decode_response(200, SSE, sample("responses_tools.sse"))
    assert answer.parts == PARTS
    assert answer.complete
    assert answer.id == "resp_68af4030592c81938ec0a5fbab4a3e9f"
    assert answer.model == "gpt-5.1-codex-2025-11-13"
    assert answer.stop_reason == "completed"
    assert answer.service_tier == "default"
    assert answer.usage == Usage(
        input_tokens=3700,
        cache_read_tokens=3072,
        cache_write_tokens=0,
        output_tokens=410,
        reasoning_tokens=320,
    )


def test_a_last_event_that_repeats_no_output_leaves_what_was_streamed(sample):
    events = [json.loads(event.data) for event in parse_sse(sample("responses_tools.sse"))[0]]
    events[-1]["response"]["output"] = []
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    answer = decode_response(200, SSE, body)
    assert answer.parts == PARTS
    assert answer.complete


def test_deltas_alone_give_all_parts(sample):
    body = sample("responses_tools.sse")
    events = [event for event in parse_sse(body)[0] if ".delta" in (event.event or "")]
    deltas = "".join(f"data: {event.data}\n\n" for event in events).encode()
    answer = decode_response(200, SSE, deltas)
    assert answer.thinking == "**Looking** at Zürich 🌦"
    assert answer.text == 'Checking "東京" too.\n'
    assert [call.arguments for call in answer.tool_calls] == [
        {"city": "Zürich"},
        "*** Begin Patch\n*** End Patch",
    ]
    assert [call.complete for call in answer.tool_calls] == [True, False]
    assert not answer.complete


def test_json_values_end_to_end_are_a_stream_too(sample):
    events = [event.data for event in parse_sse(sample("responses_tools.sse"))[0]]
    for separator in ("", "\n"):
        answer = decode_response(200, "", separator.join(events).encode())
        assert answer.parts == PARTS
        assert answer.complete


def test_a_call_is_complete_when_its_item_is(sample):
    body = sample("responses_tools.sse")
    cut = body[: body.index(b"ctc_68af") - 100]
    answer = decode_response(200, SSE, cut)
    assert [(call.name, call.complete) for call in answer.tool_calls] == [("get_weather", True)]
    assert not answer.complete
    assert answer.reason == "the stream ended before response.completed"


def test_arguments_that_were_cut_are_raw_text(sample):
    body = sample("responses_tools.sse")
    cut = body[: body.index(b'"sequence_number":17')]
    call = decode_response(200, SSE, cut).tool_calls[0]
    assert (call.arguments, call.complete) == ('{"city":', False)


def test_a_half_arrived_summary_of_an_item_does_not_replace_its_deltas(sample):
    body = sample("responses_tools.sse")
    done = body.index(b"event: response.output_text.done")
    half = body[: body.index(b'"text":"Checking', done) + 12]
    assert decode_response(200, SSE, half).text == 'Checking "東京" too.\n'


def test_a_failed_response_keeps_its_text_and_its_error(sample):
    answer = decode_response(200, SSE, sample("responses_failed.sse"))
    assert answer.text == "Almost"
    assert answer.error is not None
    assert answer.error.code == "server_error"
    assert not answer.complete
    assert answer.stop_reason == "failed"


def test_error_events_are_read_flat_and_nested():
    flat = b'data: {"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}\n\n'
    nested = (
        b'{"type":"error","status":400,"error":{"type":"invalid_request_error","message":"no"}}'
    )
    error = decode_response(200, SSE, flat).error
    assert error is not None
    assert (error.type, error.message) == ("rate_limit_exceeded", "slow")
    error = decode_response(200, "", nested).error
    assert error is not None
    assert (error.status, error.type, error.message) == (400, "invalid_request_error", "no")


def test_a_plain_response_is_read_whole(sample):
    answer = decode_response(200, JSON, sample("responses_response.json"))
    assert answer.parts == (
        ToolUse(
            id="ws_67c",
            name="web_search",
            arguments={"type": "search", "query": "positive news"},
            by_provider=True,
        ),
        ToolUse(id="mcp_67c", name="roll", arguments={"dice": "2d4"}, by_provider=True),
        ToolResult(id="mcp_67c", content=(Text(text="7"),), is_error=False, name="roll"),
        Text(text="In a peaceful grove… 🦄"),
        Refusal(text="I won't go on."),
        ToolUse(
            id="call_sh",
            name="local_shell",
            arguments={"type": "exec", "command": ["ls", "-l"], "env": {}},
        ),
    )
    assert answer.stop_reason == "max_output_tokens"
    assert answer.complete
    assert answer.service_tier == "flex"
    assert [call.name for call in answer.tool_calls] == ["local_shell"]


def test_an_answer_that_is_an_error_is_complete(sample):
    answer = decode_response(429, JSON, sample("openai_rate_limit.json"))
    assert answer.complete
    assert answer.error is not None
    assert answer.error.status == 429


def test_a_request_is_read_with_one_message_a_turn(sample):
    request = decode_request(sample("responses_request.json"))
    assert request.model == "gpt-5.1-codex"
    assert request.system == "You are Codex.\n\n<permissions>"
    assert [m.role for m in request.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "other",
    ]
    assert request.messages[1].parts == (
        Thinking(text="A\n\nB", signature="gAAA"),
        ToolUse(id="call_1", name="shell", arguments={"cmd": "ls"}),
        ToolUse(id="call_2", name="apply_patch", arguments="*** Begin"),
    )
    assert request.messages[2].parts == (
        ToolResult(id="call_1", content=(Text(text="a.py\nb.py"),)),
    )
    assert request.messages[3].parts == (
        ToolResult(
            id="call_2",
            content=(Text(text="done"), Image(media_type="image/jpeg", data="/9j/")),
        ),
    )
    assert isinstance(request.messages[5].parts[0], Other)
    assert [tool.name for tool in request.tools] == ["shell", "apply_patch", "web_search"]
    assert request.params == {
        "store": False,
        "prompt_cache_key": "k",
        "include": ["reasoning.encrypted_content"],
    }


def test_a_plain_question_is_one_message_of_the_user():
    request = decode_request(b'{"model":"gpt-5","input":"hi","conversation":{"id":"conv_1"}}')
    assert [(m.role, m.text) for m in request.messages] == [("user", "hi")]
    assert request.previous_id == "conv_1"


def test_the_conversation_kept_by_the_server_is_named():
    body = b'{"type":"response.create","model":"m","previous_response_id":"resp_1","input":[]}'
    assert decode_request(body).previous_id == "resp_1"


def test_a_request_wrapped_in_its_event_is_unwrapped():
    body = b'{"type":"response.create","response":{"model":"m","input":"x"}}'
    assert decode_request(body).model == "m"
