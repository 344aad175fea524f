"""Nobody vouches for what is on the wire: wrong types, depths and bytes must all be readable."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.llm import (
    LlmRequest,
    LlmResponse,
    api_of,
    decode_request,
    decode_response,
    summary,
    tool_calls_of,
)
from playhead.llm.anthropic import decode_anthropic as anthropic
from playhead.llm.body_frames import parse_sse
from playhead.llm.gemini import decode_gemini as gemini
from playhead.llm.openai import decode_chat as openai_chat
from playhead.llm.openai import decode_responses as openai_responses
from playhead.llm.providers import all_providers

APIS = tuple(one.api for one in all_providers())
SAMPLES = Path(__file__).parent / "samples"
PROTOCOL_OF = {
    "anthropic": anthropic,
    "chat": openai_chat,
    "openai": openai_chat,
    "responses": openai_responses,
    "gemini": gemini,
}
DOCUMENTS = sorted(SAMPLES.glob("*.json"))
STREAMS = sorted(SAMPLES.glob("*.sse"))
WRONG: list[Any] = [None, True, -1, 1e400, "x", "\ud83d", [], [[None]], {}, {"a": {"b": []}}]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def assert_readable(answer: LlmRequest | LlmResponse) -> None:
    """All derived views work, and text can be printed."""
    summary(answer).encode()
    json.dumps(asdict(answer))
    if isinstance(answer, LlmResponse):
        (answer.text + answer.thinking + (answer.refusal or "")).encode()
        assert isinstance(answer.tool_calls, tuple)
        for amount in (
            (answer.usage.input_tokens, answer.usage.output_tokens) if answer.usage else ()
        ):
            assert amount is None or (type(amount) is int and amount >= 0)
    else:
        (answer.system or "").encode()
        "".join(message.text for message in answer.messages).encode()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_wrong_type_in_any_field_of_a_document_is_survived(path):
    # The modules themselves, without the guard of the facade: it must never be needed.
    protocol = PROTOCOL_OF[path.name.partition("_")[0]]
    document = json.loads(path.read_bytes())
    for place in places(document):
        for wrong in WRONG:
            body = json.dumps(changed(document, place, wrong)).encode()
            if "request" in path.name:
                assert_readable(protocol.decode_request(body))
            else:
                assert_readable(protocol.decode_response(200, "application/json", body))


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.name)
def test_a_wrong_type_in_any_field_of_an_event_is_survived(path):
    protocol = PROTOCOL_OF[path.name.partition("_")[0]]
    events = [event.data for event in parse_sse(path.read_bytes())[0] if event.data != "[DONE]"]
    seen = set()
    for at, text in enumerate(events):
        document = json.loads(text)
        for place in places(document):
            shape = (document.get("type"), place)
            if shape in seen:
                continue  # the next delta is like this one
            seen.add(shape)
            for wrong in WRONG:
                events[at] = json.dumps(changed(document, place, wrong))
                body = "".join(f"data: {event}\n\n" for event in events).encode()
                assert_readable(protocol.decode_response(200, "text/event-stream", body))
        events[at] = text


@pytest.mark.parametrize("api", APIS)
@given(body=st.binary(max_size=300), status=st.integers(100, 599))
def test_random_bytes_are_an_answer_that_cannot_be_read(api, body, status):
    answer = decode_response(api, status, None, body)
    assert_readable(answer)
    assert answer.parts == ()
    assert not answer.complete or answer.error is not None
    assert_readable(decode_request(api, body))
    assert tool_calls_of(api, status, None, body) == ()


@pytest.mark.parametrize("api", APIS)
@given(value=json_values)
def test_any_json_is_survived(api, value):
    body = json.dumps(value).encode()
    for payload in (body, b"data: " + body + b"\n\n", b"[" + body + b"]"):
        answer = decode_response(api, 200, {}, payload)
        assert_readable(answer)
        assert not (answer.reason or "").startswith("cannot be decoded")
    request = decode_request(api, body)
    assert_readable(request)
    assert not (request.reason or "").startswith("cannot be decoded")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"content":' * 100_000,
        b"data: " + b'{"a":' * 100_000 + b"\n\n",
        b'{"content":[{"type":"tool_use","input":' + b'{"a":' * 100_000,
        b'{"usage":{"input_tokens":' + b"9" * 100_000 + b"}}",
    ],
    ids=["open", "closed", "objects", "event", "arguments", "number"],
)
def test_endless_nesting_and_numbers_are_refused_with_a_reason(api, body):
    answer = decode_response(api, 200, {}, body)
    assert not answer.complete
    assert answer.reason
    assert_readable(answer)
    request = decode_request(api, body)
    assert not request.complete
    assert request.reason


@given(method=st.text(max_size=5), url=st.text(max_size=60), body=st.none() | st.binary())
def test_recognising_never_fails(method, url, body):
    assert api_of(method, url, {}, body) in (None, *APIS)
    assert api_of("POST", url + "/v1/messages", [("a", "b")], body) in (None, *APIS)
