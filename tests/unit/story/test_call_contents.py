import gzip
import json
import zlib

import pytest

from playhead.llm.anthropic.encode_anthropic import AnthropicEncoder
from playhead.llm.gemini.encode_gemini import GeminiEncoder
from playhead.llm.llm_script import ReceivedRequest
from playhead.llm.openai.encode_chat import OpenAiChatEncoder
from playhead.llm.openai.encode_responses import OpenAiResponsesEncoder
from playhead.llm.reply_encoder import IdSource
from playhead.story import tell
from playhead.story.call_contents import text_pieces
from playhead.tape.reader import Tape
from playhead.testing import Reply

REPLY = Reply(text="one two three four", thinking="hm, well", chunks=3)
WIRES = {
    "anthropic.messages": (AnthropicEncoder, "/v1/messages"),
    "openai.chat": (OpenAiChatEncoder, "/v1/chat/completions"),
    "openai.responses": (OpenAiResponsesEncoder, "/v1/responses"),
    "gemini.generate": (GeminiEncoder, "/v1beta/models/gemini-2.5-pro:streamGenerateContent"),
}


def frames_of(api, reply=REPLY):
    kind, path = WIRES[api]
    wire = kind()
    body = {"model": "m", "stream": True, "messages": [], "input": "hi", "contents": []}
    request = ReceivedRequest(
        method="POST", path=path, query={"alt": "sse"}, headers={}, body=b"", json=body, stream=True
    )
    request = wire.read(request)
    return list(wire.frames(request, wire.events(request, reply, IdSource(1, "x"))))


def spoken(forge, api, pieces, **headers):
    tape = forge()
    call = tape.call("llm", api, {"body": {"text": "{}"}}, api=api)
    tape.head(call, 200, **{"content_type": "text/event-stream", **headers})
    for at, piece in enumerate(pieces, 1):
        tape.now = float(at)
        tape.chunk(call, piece)
    tape.outcome(call)
    (item,) = tell(Tape(tape.path)).calls()
    return text_pieces(item)


def text_of(said):
    return "".join(one.text for one in said if not one.is_thought)


@pytest.mark.parametrize("api", WIRES)
def test_words_are_said_when_their_piece_came(forge, api):
    said = spoken(forge, api, frames_of(api))
    assert text_of(said) == "one two three four"
    assert len({one.at_ns for one in said if not one.is_thought}) == 3
    moments = [one.at_ns for one in said]
    assert moments == sorted(moments)


@pytest.mark.parametrize("api", ["anthropic.messages", "gemini.generate"])
def test_thoughts_are_told_apart(forge, api):
    said = spoken(forge, api, frames_of(api))
    assert "".join(one.text for one in said if one.is_thought) == "hm, well"


@pytest.mark.parametrize("size", [1, 7, 100])
def test_it_does_not_matter_where_a_stream_is_torn(forge, size):
    raw = b"".join(frames_of("anthropic.messages"))
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert text_of(spoken(forge, "anthropic.messages", pieces)) == "one two three four"


@pytest.mark.parametrize(
    ("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_a_compressed_stream_is_followed_too(forge, coding, compress):
    raw = compress(b"".join(frames_of("anthropic.messages")))
    pieces = [raw[at : at + 50] for at in range(0, len(raw), 50)]
    said = spoken(forge, "anthropic.messages", pieces, content_encoding=coding)
    assert text_of(said) == "one two three four"


def test_an_answer_that_is_no_stream_is_said_at_its_end(forge):
    body = {"type": "message", "content": [{"type": "text", "text": "all at once"}], "usage": {}}
    raw = json.dumps(body).encode()
    said = spoken(
        forge, "anthropic.messages", [raw[:10], raw[10:]], content_type="application/json"
    )
    assert [(one.text, one.at_ns) for one in said] == [("all at once", 2_000_000_000)]


@pytest.mark.parametrize(
    "junk", [b"", b"data: {\n\n", b"\xff\xfe", b"data: []\n\n", b"data: 5\n\n"]
)
def test_junk_says_nothing(forge, junk):
    assert spoken(forge, "anthropic.messages", [junk or b" "]) == []
