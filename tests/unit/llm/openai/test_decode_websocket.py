import json

import pytest

from playhead.llm.llm_exchange import ToolUse
from playhead.llm.openai.decode_responses import decode_websocket


@pytest.fixture
def socket(sample):
    lines = sample("responses_socket.jsonl").splitlines()
    return [
        (direction, json.dumps(message))
        for line in lines
        for direction, message in json.loads(line).items()
    ]


def test_every_question_on_a_socket_gets_its_own_answer(socket):
    warm, tools, last = decode_websocket(socket)
    assert warm.request.params == {"generate": False}
    assert warm.request.system == "You are Codex."
    assert warm.response is not None
    assert (warm.response.id, warm.response.parts) == ("resp_warm", ())
    assert tools.request.previous_id == "resp_warm"
    assert tools.request.messages[0].text == "List files"
    assert tools.response is not None
    assert tools.response.tool_calls == (
        ToolUse(id="call_ls", name="shell", arguments={"cmd": "ls"}),
    )
    assert tools.response.complete
    assert tools.response.usage is not None
    assert tools.response.usage.cache_read_tokens == 896
    assert last.request.messages[0].role == "tool"
    assert last.response is not None
    assert (last.response.text, last.response.complete) == ("One fi", False)


def test_bytes_and_text_frames_are_the_same(socket):
    binary = [(direction, message.encode()) for direction, message in socket]
    assert decode_websocket(binary) == decode_websocket(socket)


def test_a_question_that_was_never_answered_has_no_response(socket):
    exchanges = decode_websocket(socket[:1])
    assert [exchange.response for exchange in exchanges] == [None]


def test_answers_that_share_a_socket_are_told_apart_by_their_stream():
    def ask(stream):
        return (
            "sent",
            json.dumps({"type": "response.create", "stream_id": stream, "input": stream}),
        )

    def say(stream, text):
        event = {"type": "response.output_text.delta", "stream_id": stream, "delta": text}
        return ("received", json.dumps(event))

    messages = [ask("a"), ask("b"), say("b", "B1"), say("a", "A1"), say("b", "B2")]
    first, second = decode_websocket(messages)
    assert first.response is not None
    assert second.response is not None
    assert (first.response.text, second.response.text) == ("A1", "B1B2")


def test_rubbish_on_a_socket_is_no_exchange():
    messages = [
        ("received", b"\xff\x00"),
        ("received", "{}"),
        ("sent", '{"type":"response.steer"}'),
    ]
    assert decode_websocket(messages) == ()
