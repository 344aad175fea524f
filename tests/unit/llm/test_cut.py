"""A recording may end at any byte: every prefix of every sample must be readable."""

import gzip
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.llm import ToolUse, decode_request, decode_response, tool_calls_of

SAMPLES = Path(__file__).parent / "samples"
API_OF = {
    "anthropic": "anthropic.messages",
    "chat": "openai.chat",
    "openai": "openai.chat",
    "responses": "openai.responses",
    "gemini": "gemini.generate",
}


def api_of_sample(path: Path) -> str:
    return API_OF[path.name.partition("_")[0]]


ANSWERS = sorted(
    path for path in SAMPLES.iterdir() if "request" not in path.name and "socket" not in path.name
)
REQUESTS = sorted(SAMPLES.glob("*_request.json"))


def decode(path: Path, body: bytes, **headers: str):
    status = 429 if "limit" in path.name or "quota" in path.name else 200
    kind = "text/event-stream" if path.suffix == ".sse" else "application/json"
    return decode_response(api_of_sample(path), status, {"content-type": kind, **headers}, body)


def assert_is_beginning(part, whole):
    # Google says that a text is a thought only after the text: a first part may be either.
    guessed = whole.api == "gemini.generate" and whole.thinking.startswith(part.text)
    assert whole.text.startswith(part.text) or (guessed and not part.thinking)
    assert whole.thinking.startswith(part.thinking)
    assert (whole.refusal or "").startswith(part.refusal or "")
    assert part.id in (None, whole.id)
    assert part.model in (None, whole.model)
    assert part.stop_reason in (None, whole.stop_reason)
    assert len(part.tool_calls) <= len(whole.tool_calls)
    for call, full in zip(part.tool_calls, whole.tool_calls, strict=False):
        assert call.id in (None, full.id)
        assert call.name in (None, full.name)
        if call.complete:
            assert call.arguments == full.arguments
        else:
            assert isinstance(call.arguments, (str, dict, type(None)))


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.name)
def test_every_prefix_is_the_beginning_of_the_whole(path):
    body = path.read_bytes()
    whole = decode(path, body)
    grown = ""
    for end in range(len(body)):
        part = decode(path, body[:end])
        assert_is_beginning(part, whole)
        json.dumps(asdict(part))  # everything in it can be shown, nothing of ours leaks
        # What has arrived once does not go away again.
        assert len(part.text + part.thinking) >= len(grown) or part.error
        grown = part.text + part.thinking
        assert part.complete == (part.reason is None)
        if part.complete and part.error is None:
            assert (part.parts, part.usage) == (whole.parts, whole.usage)


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.name)
def test_a_prefix_without_its_last_word_is_not_complete(path):
    body = path.read_bytes().rstrip()
    for end in (len(body) // 2, len(body) * 3 // 4, len(body) - 2):
        assert not decode(path, body[:end]).complete


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.name)
def test_every_prefix_of_a_request_is_readable(path):
    body = path.read_bytes()
    whole = decode_request(api_of_sample(path), body)
    assert whole.complete
    for end in range(len(body) - 1):
        part = decode_request(api_of_sample(path), body[:end])
        assert not part.complete or not body[end:].strip()
        assert part.model in (None, whole.model)
        assert len(part.messages) <= len(whole.messages)
        assert (whole.system or "").startswith(part.system or "")


@given(path=st.sampled_from(ANSWERS), data=st.data())
def test_a_cut_in_the_compressed_bytes_is_a_cut_like_any_other(path, data):
    body = path.read_bytes()
    packed = gzip.compress(body)
    end = data.draw(st.integers(0, len(packed)))
    assert_is_beginning(
        decode(path, packed[:end], **{"Content-Encoding": "gzip"}), decode(path, body)
    )


@given(path=st.sampled_from(ANSWERS), data=st.data())
def test_calls_are_named_only_when_they_are_whole(path, data):
    body = path.read_bytes()
    end = data.draw(st.integers(0, len(body)))
    headers = {"content-type": "text/event-stream" if path.suffix == ".sse" else ""}
    calls = tool_calls_of(api_of_sample(path), 200, headers, body[:end])
    assert all(isinstance(call, ToolUse) and call.complete for call in calls)
    assert calls == decode(path, body).tool_calls[: len(calls)]


@given(path=st.sampled_from(ANSWERS), data=st.data())
def test_a_damaged_byte_never_makes_the_decoder_fail(path, data):
    body = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    answer = decode(path, bytes(body))
    assert not (answer.reason or "").startswith("cannot be decoded")
