import base64
import json
import struct
import zlib

from hypothesis import given
from hypothesis import strategies as st

from playhead.llm import decode_response, tool_calls_of
from playhead.llm.body_frames import parse_eventstream, parse_sse

CONTENT_TYPE = {"content-type": "application/vnd.amazon.eventstream"}


def amazon_frame(payload: bytes, headers: dict[str, str]) -> bytes:
    block = b"".join(
        struct.pack(">B", len(name))
        + name.encode()
        + struct.pack(">BH", 7, len(value))
        + value.encode()
        for name, value in headers.items()
    )
    block += b"\x04flag\x00"  # a header that is no text
    prelude = struct.pack(">II", 12 + len(block) + len(payload) + 4, len(block))
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + block + payload
    return frame + struct.pack(">I", zlib.crc32(frame))


def wrapped(event: str) -> bytes:
    payload = json.dumps({"bytes": base64.b64encode(event.encode()).decode(), "p": "abcdef"})
    return amazon_frame(payload.encode(), {":event-type": "chunk", ":message-type": "event"})


def as_bedrock(sse: bytes) -> bytes:
    return b"".join(wrapped(event.data) for event in parse_sse(sse)[0])


def test_bedrock_says_the_same_as_anthropic_itself(sample):
    body = sample("anthropic_tools.sse")
    direct = decode_response("anthropic.messages", 200, {}, body)
    through = decode_response("anthropic.messages", 200, CONTENT_TYPE, as_bedrock(body))
    assert through == direct
    calls = tool_calls_of("anthropic.messages", 200, CONTENT_TYPE, as_bedrock(body))
    assert calls == direct.tool_calls


def test_an_exception_of_bedrock_is_the_error_of_the_answer(sample):
    body = as_bedrock(sample("anthropic_tools.sse")[:1200])
    body += amazon_frame(
        b'{"message":"Too many tokens"}',
        {":exception-type": "throttlingException", ":message-type": "exception"},
    )
    answer = decode_response("anthropic.messages", 200, CONTENT_TYPE, body)
    assert answer.error is not None
    assert answer.error.message == "Too many tokens"
    assert answer.error.type == "throttlingException"
    assert not answer.complete


def test_a_cut_stream_keeps_every_whole_frame(sample):
    body = as_bedrock(sample("anthropic_tools.sse"))
    full = decode_response("anthropic.messages", 200, CONTENT_TYPE, body)
    for end in range(0, len(body), 7):
        answer = decode_response("anthropic.messages", 200, CONTENT_TYPE, body[:end])
        assert full.text.startswith(answer.text)
        assert not answer.complete


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_fail(body):
    messages, _ = parse_eventstream(body)
    assert len(messages) <= len(body)
