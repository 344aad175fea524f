import json

import pytest

from playhead.llm.gemini.decode_gemini import decode_request, decode_response
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

SSE = "text/event-stream"
JSON = "application/json"

STREAMS = [("gemini_tools.sse", SSE), ("gemini_tools_array.json", JSON)]


def chunk(*parts, **candidate):
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **candidate}]}


def as_sse(*chunks):
    return "".join(f"data: {json.dumps(one)}\r\n\r\n" for one in chunks).encode()


@pytest.mark.parametrize(("name", "content_type"), STREAMS)
def test_both_kinds_of_stream_give_thoughts_text_and_parallel_calls(sample, name, content_type):
    answer = decode_response(200, content_type, sample(name))
    assert answer.parts == (
        Thinking(text="**Planning** the trip to 東京 🗼"),
        Text(text='Let me "check" Zürich.'),
        ToolUse(id=None, name="get_weather", arguments={"city": "Zürich", "days": 3}),
        ToolUse(id=None, name="now", arguments={}),
    )
    assert answer.complete
    assert answer.id == "aBcDeFgH"
    assert answer.model == "gemini-2.5-flash"
    assert answer.stop_reason == "STOP"


def test_output_is_candidates_and_thoughts_and_input_includes_the_cache(sample):
    assert decode_response(200, SSE, sample("gemini_tools.sse")).usage == Usage(
        input_tokens=120, cache_read_tokens=96, output_tokens=31 + 65, reasoning_tokens=65
    )


def test_tokens_of_tool_prompts_are_input(sample):
    answer = decode_response(200, JSON, sample("gemini_response.json"))
    assert answer.usage == Usage(input_tokens=13, output_tokens=27, reasoning_tokens=20)


def test_a_plain_response_is_read_whole(sample):
    answer = decode_response(200, JSON, sample("gemini_response.json"))
    assert answer.parts == (
        Thinking(text="Hmm.", signature="Cg=="),
        Text(text="Hello 👋 wörld"),
        ToolUse(
            id=None,
            name="code_execution",
            arguments={"language": "PYTHON", "code": "print(1)"},
            by_provider=True,
        ),
        ToolResult(id=None, content=(Text(text="1\n"),), is_error=False, name="code_execution"),
        ToolUse(id="fc-1", name="search", arguments={"q": "weather"}),
    )
    assert answer.stop_reason == "MAX_TOKENS"
    assert [call.name for call in answer.tool_calls] == ["search"]


def test_a_blocked_prompt_is_a_refusal_and_costs_no_output(sample):
    answer = decode_response(200, JSON, sample("gemini_blocked.json"))
    assert answer.parts == (Refusal(text="PROHIBITED_CONTENT"),)
    assert answer.stop_reason == "PROHIBITED_CONTENT"
    assert answer.complete
    assert answer.usage == Usage(input_tokens=5, output_tokens=0)


@pytest.mark.parametrize("wrap", [b"%s", b"[%s]"])
def test_an_error_is_complete_with_googles_own_delay(sample, wrap):
    answer = decode_response(429, JSON, wrap % sample("gemini_quota.json"))
    assert answer.complete
    assert answer.error is not None
    assert answer.error.status == 429
    assert answer.error.type == "RESOURCE_EXHAUSTED"
    assert answer.error.retry_after == 17.5


def test_a_bare_error_inside_an_event_stream_is_kept_with_what_came_before(sample):
    body = sample("gemini_tools.sse")
    cut = body[: body.index(b'data: {"candidates": [{"content": {"parts": [{"text": "Z')]
    answer = decode_response(200, SSE, cut + b'{"error": {"code": 503,\n "status": "UNAVAILABLE"}}')
    assert answer.text == 'Let me "check" '
    assert answer.error is not None
    assert (answer.error.status, answer.error.type) == (503, "UNAVAILABLE")
    assert not answer.complete


def test_a_stream_without_a_finish_reason_is_cut():
    answer = decode_response(200, SSE, as_sse(chunk({"text": "Hel"}), chunk({"text": "lo"})))
    assert answer.parts == (Text(text="Hello"),)
    assert not answer.complete
    assert answer.reason == "the stream ended before a finishReason"


def test_an_array_without_its_end_is_cut(sample):
    answer = decode_response(200, JSON, sample("gemini_tools_array.json")[:-1])
    assert not answer.complete
    assert len(answer.tool_calls) == 2


def test_cut_arguments_are_raw_text():
    body = as_sse(chunk({"functionCall": {"name": "f", "args": {"city": "Zürich"}}}))
    cut = body[: body.index(b"rich")]
    call = decode_response(200, SSE, cut).tool_calls[0]
    assert (call.name, call.complete) == ("f", False)
    assert call.arguments == '{"city": "Z\\u00fc'


def test_second_candidates_are_alternatives():
    body = as_sse(
        {
            "candidates": [
                {"index": 0, "content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"},
                {"index": 1, "content": {"parts": [{"text": "B"}]}, "finishReason": "STOP"},
            ]
        }
    )
    answer = decode_response(200, SSE, body)
    assert answer.text == "A"
    assert answer.alternatives == ((Text(text="B"),),)
    assert answer.complete


def test_the_code_assist_backend_wraps_its_chunks(sample):
    chunks = json.loads(sample("gemini_tools_array.json"))
    plain = decode_response(200, SSE, as_sse(*chunks))
    wrapped = decode_response(200, SSE, as_sse(*({"response": c, "traceId": "t"} for c in chunks)))
    assert wrapped == plain


def partial(path, will_continue=None, **value):
    return {"jsonPath": path, **value, **({"willContinue": True} if will_continue else {})}


STREAMED_CALL = [
    chunk({"functionCall": {"name": "book", "willContinue": True}}),
    chunk(
        {
            "functionCall": {
                "partialArgs": [partial("$.city", True, stringValue="Zü")],
                "willContinue": True,
            }
        }
    ),
    chunk(
        {
            "functionCall": {
                "partialArgs": [partial("$.city", stringValue="rich")],
                "willContinue": True,
            }
        }
    ),
    chunk(
        {
            "functionCall": {
                "partialArgs": [
                    partial("$.days[0].n", numberValue=3),
                    partial("$.days[1]['at']", stringValue="noon"),
                    partial("$.days[99999].n", numberValue=4),
                    partial("$.sure", boolValue=True),
                    partial("$.note", nullValue="NULL_VALUE"),
                ],
                "willContinue": True,
            }
        }
    ),
]
BOOKED = {"city": "Zürich", "days": [{"n": 3}, {"at": "noon"}], "sure": True, "note": None}


def test_streamed_arguments_are_put_together():
    end = chunk({"functionCall": {}}, {"text": "ok"}, finishReason="STOP")
    answer = decode_response(200, SSE, as_sse(*STREAMED_CALL, end))
    assert answer.parts == (ToolUse(id=None, name="book", arguments=BOOKED), Text(text="ok"))


def test_streamed_arguments_without_an_end_are_not_complete():
    answer = decode_response(200, SSE, as_sse(*STREAMED_CALL))
    call = answer.tool_calls[0]
    assert (call.arguments, call.complete) == (BOOKED, False)


def test_a_request_is_read_whole(sample):
    request = decode_request(sample("gemini_request.json"))
    assert request.model is None
    assert request.stream is None
    assert request.system == "You are helpful."
    assert [m.role for m in request.messages] == ["user", "assistant", "user"]
    assert request.messages[0].parts == (
        Text(text="Weather here?"),
        Image(media_type="image/png", data="iVBORw0KGgo="),
    )
    assert request.messages[1].parts == (
        Thinking(text="I ask."),
        ToolUse(id=None, name="get_weather", arguments={"city": "Zürich"}),
    )
    assert request.messages[2].parts == (
        ToolResult(id=None, name="get_weather", content=(Text(text="rain"),)),
        ToolResult(id=None, name="now", content=(Text(text="no clock"),), is_error=True),
        ToolResult(id=None, name="map", content=(Other(type="json", data={"x": 1}),)),
    )
    assert [tool.name for tool in request.tools] == ["get_weather", "now", "googleSearch"]
    assert request.params == {"generationConfig": {"temperature": 0.1}}


def test_the_code_assist_backend_wraps_its_request():
    inner = b'{"contents":[{"parts":[{"text":"x"}]}]}'
    body = b'{"model":"models/gemini-2.5-pro","project":"p","request":%s}' % inner
    request = decode_request(body)
    assert request.model == "gemini-2.5-pro"
    assert request.messages[0].text == "x"


def test_names_of_the_protocol_buffer_are_understood():
    body = (
        b'{"contents":{"role":"user","parts":[{"inline_data":{"mime_type":"image/png","data":"x"}}]},'
        b'"system_instruction":{"parts":[{"text":"s"}]},'
        b'"tools":[{"function_declarations":[{"name":"f"}]}]}'
    )
    request = decode_request(body)
    assert request.system == "s"
    assert request.messages[0].parts == (Image(media_type="image/png", data="x"),)
    assert [tool.name for tool in request.tools] == ["f"]
