"""What a real server sends over a real socket is decoded into what its script said.

Raw bytes are taken off the socket by http.client, which knows nothing of any API.
"""

import http.client
import json
from typing import Any

import pytest
import websockets.sync.client

from playhead import llm as wire
from playhead.testing import Cut, Failure, Reply, ScriptedLLM, ToolCall, Usage

TEXT = 'Zürich — then 東京 🌦, "both" at once.\nSecond line.'
REPLY = Reply(
    thinking="Two cities; ask for both.",
    text=TEXT,
    tool_calls=[
        ToolCall(name="get_weather", arguments={"city": "Zürich", "days": [1, 2]}),
        ToolCall(name="get_weather", arguments={"city": "東京"}),
    ],
    usage=Usage(input=100, output=60, cache_read=7000, reasoning=20),
    chunks=7,
)
MESSAGES = [{"role": "user", "content": "Weather?"}]
CONTENTS = [{"role": "user", "parts": [{"text": "Weather?"}]}]
MODEL_PATH = "/v1beta/models/gemini-2.5-flash"
ASKED: list[tuple[str, str, dict[str, Any], bool]] = [
    ("anthropic.messages", "/v1/messages", {"messages": MESSAGES, "max_tokens": 9}, False),
    ("anthropic.messages", "/v1/messages?beta=true", {"messages": MESSAGES, "stream": True}, True),
    ("openai.chat", "/v1/chat/completions", {"messages": MESSAGES}, False),
    (
        "openai.chat",
        "/openai/deployments/d/chat/completions?api-version=1",
        {"messages": MESSAGES, "stream": True, "stream_options": {"include_usage": True}},
        True,
    ),
    ("openai.responses", "/v1/responses", {"input": "Weather?"}, False),
    ("openai.responses", "/v1/responses", {"input": MESSAGES, "stream": True}, True),
    ("gemini.generate", f"{MODEL_PATH}:generateContent", {"contents": CONTENTS}, False),
    ("gemini.generate", f"{MODEL_PATH}:streamGenerateContent", {"contents": CONTENTS}, True),
    (
        "gemini.generate",
        f"{MODEL_PATH}:streamGenerateContent?alt=sse",
        {"contents": CONTENTS},
        True,
    ),
]
each_api = pytest.mark.parametrize(("api", "path", "question", "streamed"), ASKED)
each_stream = pytest.mark.parametrize(
    ("api", "path", "question", "streamed"), [one for one in ASKED if one[3]]
)


def ask(llm: ScriptedLLM, path: str, question: dict[str, Any]) -> tuple[int, list, bytes, bytes]:
    """Status, headers and bytes of an answer as far as it came, and the bytes of the question."""
    named = {} if "contents" in question else {"model": "m-1"}
    sent = json.dumps({**named, **question}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", llm.port, timeout=30)
    try:
        connection.request("POST", path, sent, {"content-type": "application/json"})
        answer = connection.getresponse()
        try:
            body = answer.read()
        except http.client.IncompleteRead as cut:
            body = cut.partial
        return answer.status, answer.getheaders(), body, sent
    finally:
        connection.close()


@each_api
def test_an_answer_is_decoded_into_what_the_script_said(api, path, question, streamed):
    with ScriptedLLM([REPLY]) as llm:
        status, headers, body, sent = ask(llm, path, question)
    assert wire.api_of("POST", f"http://llm.test{path}", {}, sent) == api
    answer = wire.decode_response(api, status, headers, body)
    assert answer.complete, answer.reason
    assert answer.error is None
    assert answer.text == TEXT
    assert answer.thinking == REPLY.thinking
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [
        (call.name, call.arguments) for call in REPLY.tool_calls
    ]
    assert all(call.complete for call in answer.tool_calls)
    assert answer.id
    assert answer.usage is not None
    assert answer.usage.input_tokens == 7100
    assert answer.usage.cache_read_tokens == 7000
    assert answer.usage.output_tokens == 60
    assert answer.usage.reasoning_tokens in (20, None)
    assert wire.tool_calls_of(api, status, headers, body) == answer.tool_calls


@each_api
def test_a_question_is_decoded_as_the_server_read_it(api, path, question, streamed):
    with ScriptedLLM([REPLY]) as llm:
        _, _, _, sent = ask(llm, path, question)
        asked = llm.requests[0]
    request = wire.decode_request(api, sent, url=f"http://llm.test{path}")
    assert request.complete
    assert request.stream == asked.stream == streamed
    assert request.model == ("gemini-2.5-flash" if "gemini" in api else "m-1")
    assert request.messages[-1].text == asked.prompt == "Weather?"


@each_stream
@pytest.mark.parametrize("after", [0, 1, 3, 5, 8, 12])
def test_a_stream_that_breaks_off_keeps_all_that_arrived(api, path, question, streamed, after):
    reply = Reply(
        thinking=REPLY.thinking,
        text=TEXT,
        tool_calls=REPLY.tool_calls,
        chunks=9,
        cut=Cut(after=after, mid_event=True),
    )
    with ScriptedLLM([reply]) as llm:
        status, headers, body, _ = ask(llm, path, question)
    answer = wire.decode_response(api, status, headers, body)
    assert not answer.complete
    assert answer.reason
    assert TEXT.startswith(answer.text) or (reply.thinking + TEXT).startswith(answer.text)
    assert reply.thinking.startswith(answer.thinking)


@each_stream
def test_an_error_after_a_good_beginning_is_kept_beside_the_text(api, path, question, streamed):
    reply = Reply(text=TEXT, chunks=9, error=Failure(status=529, message="Too busy", after=7))
    with ScriptedLLM([reply]) as llm:
        status, headers, body, _ = ask(llm, path, question)
    answer = wire.decode_response(api, status, headers, body)
    assert answer.text
    assert TEXT.startswith(answer.text)
    assert answer.error is not None
    assert answer.error.message == "Too busy"
    assert not answer.complete


@each_api
@pytest.mark.parametrize("code", [400, 429, 500, 529])
def test_a_refused_question_is_a_complete_error(api, path, question, streamed, code):
    failure = Failure(status=code, message="Not now", retry_after=2.5)
    with ScriptedLLM([Reply(error=failure)]) as llm:
        status, headers, body, _ = ask(llm, path, question)
    answer = wire.decode_response(api, status, headers, body)
    assert answer.complete, answer.reason
    assert answer.error is not None
    assert (answer.error.status, answer.error.message) == (code, "Not now")
    assert answer.error.retry_after == 2.5
    assert answer.usage is None


def test_the_exchanges_on_a_socket_are_decoded_one_by_one():
    messages: list[tuple[str, bytes | str]] = []
    with ScriptedLLM([REPLY, Reply(text="Second.")]) as llm:
        address = f"ws://127.0.0.1:{llm.port}/v1/responses"
        assert wire.api_of("GET", address, {}, None) == "openai.responses"
        with websockets.sync.client.connect(address) as socket:
            for text in ("First?", "Again?"):
                question = {"type": "response.create", "model": "m-1", "input": text}
                messages.append(("sent", json.dumps(question)))
                socket.send(json.dumps(question))
                for message in socket:
                    messages.append(("received", message))
                    if json.loads(message)["type"] == "response.completed":
                        break
    first, second = wire.decode_websocket("openai.responses", messages)
    assert first.request.messages[0].text == "First?"
    assert first.response is not None
    assert first.response.complete
    assert first.response.text == TEXT
    assert [call.arguments for call in first.response.tool_calls] == [
        call.arguments for call in REPLY.tool_calls
    ]
    assert second.response is not None
    assert (second.response.text, second.response.complete) == ("Second.", True)
