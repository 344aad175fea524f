"""A request that comes again with another body is on the tape as if it were the first of its kind."""

import json

import httpx
import pytest

from playhead.hooks.http.exchange import (
    STREAMED,
    HttpAdapter,
    Request,
    call_of,
    recording_deck,
)
from playhead.recording import deck
from playhead.recording.deck import Deck
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor
from playhead.tape.reader import Tape

URL = "https://api.example.com/v1/things"
SECRET = "sk-ant-api03-" + "Zq7w" * 10
CHAT = "https://api.example.com/v1/chat/completions"


class Announced(HttpAdapter):
    """A client that hands out its exchange, so that a test can report the answer."""

    def live(self, crossing):
        return self.begin(crossing)

    def observe(self, crossing, result):
        return result


def begin(*, library, method, url, headers, body=None):
    request = Request(library, method, url, headers, body)
    open_deck = recording_deck()
    return open_deck.perform(call_of(open_deck, request), Announced(request))


@pytest.fixture
def taping(tmp_path):
    made = Recorder(run=tmp_path, run_id="run", who="test", redactor=Redactor(key=b"k" * 32))
    opened = Deck(made)
    deck.activate(opened)
    yield tmp_path
    made.close()
    deck.deactivate(opened)


def ask(body, *, url=URL, headers=(), method="POST", library="httpx"):
    length = [("Content-Length", str(len(body)))] if isinstance(body, bytes) else []
    pairs = [("Host", "api.example.com"), *length, ("User-Agent", "agent/1"), *headers]
    exchange = begin(library=library, method=method, url=url, headers=pairs, body=body)
    exchange.head(200, "OK", "HTTP/1.1", [("Content-Length", "2")])
    exchange.chunk(b"{}")
    exchange.returned()


def calls(folder):
    tape = Tape(folder)
    return [tape.whole(one).data for one in tape.events() if one.kind == "call"]


def test_every_request_of_a_kind_says_the_same_but_for_its_body(taping):
    bodies = [json.dumps({"n": "x" * n, "quoted": 'a "b" \\ é \n'}).encode() for n in range(5)]
    for body in bodies:
        ask(body)
    told = calls(taping)
    assert [one["request"]["body"] for one in told] == [{"text": one.decode()} for one in bodies]
    lengths = [dict(one["headers"])["Content-Length"] for one in told]
    assert lengths == [str(len(one)) for one in bodies]
    for one in told:
        one["request"].pop("body")
        one["headers"] = [pair[0] for pair in one["headers"]]
    assert all(list(one) == list(told[0]) and one == told[0] for one in told)


def test_headers_come_in_the_order_in_which_they_were_sent(taping):
    for n in range(4):
        ask(b"x" * (n + 1))
    assert {tuple(pair[0] for pair in one["headers"]) for one in calls(taping)} == {
        ("Host", "Content-Length", "User-Agent")
    }


@pytest.mark.parametrize("body", [None, b"", STREAMED], ids=["none", "empty", "streamed"])
def test_requests_without_a_body_of_their_own_are_all_alike(taping, body):
    for _ in range(4):
        ask(body, method="GET")
    first, *others = calls(taping)
    assert others == [first] * 3
    assert first["request"]["body"] == ({"streamed": True} if body is STREAMED else None)


def test_a_secret_in_the_body_of_a_known_request_is_taken_out(taping):
    for n in range(3):
        ask(json.dumps({"n": n}).encode())
    ask(json.dumps({"api_key": SECRET}).encode())
    assert SECRET not in (taping / next(taping.glob("tape-*.jsonl")).name).read_text()
    assert "redacted" in calls(taping)[-1]["request"]["body"]["text"]


def test_a_secret_that_is_learnt_later_is_taken_out_of_what_is_known(taping, monkeypatch):
    value = "correct horse battery staple"
    for n in range(3):
        ask(b"%d" % n, headers=[("X-Phrase", value)])
    monkeypatch.setenv("AGENT_PASSWORD", value)
    ask(b"3", headers=[("X-Phrase", value)])
    told = [dict(one["headers"])["X-Phrase"] for one in calls(taping)]
    assert told[:3] == [value] * 3
    assert "redacted" in told[3]


def test_a_body_that_is_no_text_and_one_that_is_large_are_kept_whole(taping):
    bodies = [b"a", b"b", b"c", b"\xff\x00", b"x" * 200_000, b"\n" * 60_000]
    for body in bodies:
        ask(body)
    told = [one["request"]["body"] for one in calls(taping)]
    assert told[3] == {"b64": "/wA="}
    assert [told[n]["text"] for n in (0, 1, 2, 4, 5)] == [
        bodies[n].decode() for n in (0, 1, 2, 4, 5)
    ]


def test_each_model_at_one_address_is_a_call_of_its_own_name(taping):
    def chat(model):
        return json.dumps({"model": model, "messages": []}).encode()

    for model in ("small", "small", "small", "large", "large", "large", "small"):
        ask(chat(model), url=CHAT)
    ask(b'{"not": "a chat"}', url=CHAT)
    told = [(one["boundary"], one["name"], one.get("model")) for one in calls(taping)]
    small = ("llm", "openai.chat small", "small")
    large = ("llm", "openai.chat large", "large")
    other = ("http", "POST api.example.com/v1/chat/completions", None)
    assert told == [small, small, small, large, large, large, small, other]


def test_addresses_methods_libraries_and_headers_tell_requests_apart(taping):
    ways = [
        {},
        {"url": f"{URL}?page=2"},
        {"method": "PUT"},
        {"library": "aiohttp"},
        {"headers": [("Accept", "text/html")]},
        {"headers": [("X-Other", "1")]},
    ]
    for n in range(4):
        for way in ways:
            ask(b"%d" % n, **way)
    told = calls(taping)
    for number, way in enumerate(ways):
        for one in told[number :: len(ways)]:
            assert one["request"]["url"] == way.get("url", URL)
            assert one["request"]["method"] == way.get("method", "POST")
            assert one["library"] == way.get("library", "httpx")
            assert one["request"]["headers"] == (
                {"accept": "text/html"} if way.get("headers") == [("Accept", "text/html")] else {}
            )
            assert (["X-Other", "1"] in one["headers"]) == (
                way.get("headers") == ways[-1]["headers"]
            )


def test_headers_may_come_as_bytes(taping):
    request = httpx.Request(
        "POST", URL, json={"a": 1}, headers={"X-Place": "Orléans".encode("latin-1")}
    )
    for _ in range(4):
        begin(
            library="httpx",
            method="POST",
            url=URL,
            headers=request.headers.raw,
            body=request.content,
        ).returned()
    first, *others = calls(taping)
    assert others == [first] * 3
    assert ["X-Place", "Orléans"] in first["headers"]
