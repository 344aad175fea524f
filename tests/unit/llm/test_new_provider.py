"""A new LLM API needs one provider and one row in the table: everything else works with it at once."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest

import playhead
from playhead import llm
from playhead.llm.llm_exchange import LlmMessage, LlmRequest, LlmResponse, Text, Usage
from playhead.llm.llm_script import ReceivedRequest, joined
from playhead.llm.provider import Json, Provider
from playhead.llm.providers import api_of, provider_of, registered
from playhead.llm.reply_encoder import ReplyEncoder, count
from playhead.recording.calls import Call
from playhead.replay.modes.edits import Rewrite, edited, parse_edit
from playhead.replay.modes.fault_mode import answer_for
from playhead.replay.modes.faults import parse_fault
from playhead.story import tell
from playhead.story.call_contents import text_pieces
from playhead.tape.reader import Tape
from playhead.testing import Failure, Reply, ScriptedLLM


class ToyEncoder(ReplyEncoder):
    name = "toy"
    default_model = "toy-1"
    serves = ("POST …/say",)
    key_variable = "TOY_API_KEY"

    def endpoint(self, path):
        return "generate" if path.endswith("/say") else None

    def environ(self, url):
        return {"TOY_BASE_URL": url}

    def fake_key(self, ids):
        return f"toy-{ids.secret(20)}"

    def read(self, request: ReceivedRequest) -> ReceivedRequest:
        body = request.json
        said = joined([("user", line) for line in body["lines"]])
        return replace(
            request, wire=self.name, model=body["model"], stream=body["live"], messages=said
        )

    def whole(self, request, reply, ids):
        counts = count(request, reply)
        return {"answer": reply.text, "read": counts.prompt, "wrote": counts.output}

    def events(self, request, reply, ids):
        for word in reply.text.split():
            yield {"word": f"{word} "}

    def error(self, failure, ids):
        return TOY.error_body(failure.status, failure.message)


class Toy(Provider):
    api = "toy.say"
    price_id = "anthropic"
    endpoints = {"say": None}  # noqa: RUF012  read only
    tool_words = (b'"call"',)
    messages_field = "lines"

    def decode_request(self, body: bytes) -> LlmRequest:
        asked = json.loads(body)
        lines = tuple(LlmMessage(role="user", parts=(Text(text=one),)) for one in asked["lines"])
        return LlmRequest(api=self.api, model=asked["model"], messages=lines, stream=asked["live"])

    def decode_response(self, status, content_type, body, *, only=()) -> LlmResponse:
        if "event-stream" in content_type:
            events = [json.loads(one[6:]) for one in body.split(b"\n\n") if one]
            whole = {"answer": "".join(one["word"] for one in events), "read": 3, "wrote": 2}
        else:
            whole = json.loads(body)
        usage = Usage(input_tokens=whole.get("read"), output_tokens=whole.get("wrote"))
        said = (Text(text=whole.get("answer", "")),)
        return LlmResponse(api=self.api, status=status, parts=said, usage=usage)

    def streamed_text(self, event: Json) -> Iterator[tuple[str, bool]]:
        yield event["word"], False

    def set_system(self, body: Json, text: str) -> None:
        body["mood"] = text

    def replace_text(self, body: Json, text: str) -> Json:
        return {**body, "answer": text}

    def error_body(self, status, message=None, *, request_id=None, retry_after=None) -> Json:
        return {"oops": status, "because": message or "the toy is broken"}

    def reply_encoder(self) -> ReplyEncoder:
        return ToyEncoder()


TOY = Toy()
MODEL = "claude-sonnet-4-5"


@pytest.fixture(autouse=True)
def toy():
    with registered(TOY):
        yield
    assert provider_of("toy.say") is None


def ask(url: str, *, live: bool = False) -> bytes:
    body = json.dumps({"model": MODEL, "lines": ["Hello, toy"], "live": live}).encode()
    request = urllib.request.Request(f"{url}/say", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return answer.read()


def test_it_is_scripted_recorded_decoded_and_priced(tmp_path):
    with ScriptedLLM(["Hello, child."]) as server:
        assert server.environ()["TOY_BASE_URL"] == server.url
        assert server.environ()["TOY_API_KEY"].startswith("toy-")
        with playhead.record(intercept=True, store=tmp_path) as run:
            ask(server.url)
    (call,) = tell(Tape(run.path)).calls()
    assert (call.boundary, call.api, call.name) == ("llm", "toy.say", f"toy.say {MODEL}")
    (exchange,) = call.llm
    assert exchange.request.messages[0].text == "Hello, toy"
    assert exchange.response is not None
    assert exchange.response.text == "Hello, child."
    assert call.cost is not None
    assert call.cost.usd > 0


def test_a_stream_shows_its_text_piece_by_piece(tmp_path):
    with (
        ScriptedLLM([Reply(text="one two", chunk_delay=0.01)]) as server,
        playhead.record(intercept=True, store=tmp_path) as run,
    ):
        ask(server.url, live=True)
    (call,) = tell(Tape(run.path)).calls()
    assert [one.text for one in text_pieces(call)] == ["one ", "two "]


def test_scripted_failures_and_injected_faults_have_its_error_form():
    with ScriptedLLM([Reply(error=Failure(status=418))]) as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(server.url)
        assert json.loads(refused.value.read()) == {"oops": 418, "because": "the toy is broken"}
    call = Call(boundary="llm", name="toy.say", request={}, facts={"api": "toy.say"}, at=None)
    taped = answer_for(parse_fault("llm:1=529"), call, None)
    assert json.loads(taped.pieces[0].data)["oops"] == 529


def test_its_requests_are_rewritten_and_its_answers_edited():
    body = json.dumps({"model": "a", "lines": ["1", "2", "3"], "live": False}).encode()
    rewritten = json.loads(Rewrite(model="b", system="cheerful").apply("toy.say", body))
    assert (rewritten["model"], rewritten["mood"]) == ("b", "cheerful")
    call = Call(boundary="llm", name="toy.say", request={}, facts={"api": "toy.say"}, at=None)
    taped = answer_for(parse_fault("llm:1=500"), call, None)
    changed = edited(taped, parse_edit("llm:1.response.text=Bye"), "toy.say")
    assert json.loads(changed.pieces[0].data)["answer"] == "Bye"


def test_other_requests_to_the_same_path_are_not_its_calls():
    assert api_of("POST", "http://x/say", {}, b'{"lines": []}') == "toy.say"
    assert api_of("POST", "http://x/say", {}, b'{"verses": []}') is None
    assert api_of("GET", "http://x/say", {}, None) is None
    assert llm.decode_request("toy.say", b"not JSON").complete is False
