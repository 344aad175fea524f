"""What comes through the proxy: to the client, onto the tape, and from the tape again."""

import gzip
import json

import pytest

from playhead.replay.modes.edits import Rewrite
from playhead.replay.modes.replay_options import Policy, ReplayOptions, write_options
from playhead.testing import HttpSite, ScriptedLLM

LAST_CHUNK = b"0\r\n\r\n"


@pytest.fixture
def site():
    with HttpSite() as made:
        yield made


def test_a_stream_arrives_byte_for_byte_and_again_from_the_tape(room, wire, site):
    target = "/sse?n=5&torn=1"
    with wire(site.port) as direct:
        direct.ask(target)
        expected = direct.until(LAST_CHUNK)
    with room.recording(site.url) as then, wire(then.port) as client:
        client.ask(target)
        assert client.until(LAST_CHUNK) == expected
    (answer,) = then.answers()
    assert answer.how == "returned"
    assert b"".join(piece.data for piece in answer.pieces).count(b"event: tick") == 5
    with room.replaying(then) as now, wire(now.port) as client:
        client.ask(target)
        assert client.until(LAST_CHUNK) == expected
    assert len(site.requests) == 2


def test_what_has_come_is_passed_on_before_more_comes_and_a_client_may_leave(room, wire, site):
    with room.recording(site.url) as then, wire(then.port) as client:
        client.ask("/endless?gap_ms=20")
        assert b"event: tick" in client.until(b"\n\n\r\n")
    (answer,) = then.answers()
    assert answer.how == "left"


@pytest.mark.parametrize("target", ["/cut?after=3&mid=1", "/short?n=100&sent=40"])
def test_a_cut_stream_is_cut_again(room, wire, site, target):
    with room.recording(site.url) as then, wire(then.port) as client:
        client.ask(target)
        expected = client.rest()
    (answer,) = then.answers()
    assert answer.how == "cut"
    with room.replaying(then) as now, wire(now.port) as client:
        client.ask(target)
        assert client.rest() == expected


def test_an_error_keeps_its_status_and_headers(room, wire, site):
    target = "/status/503?retry_after=1"
    with room.recording(site.url) as then, wire(then.port) as client:
        client.ask(target)
        expected = client.until(b"503}")
    assert b"retry-after: 1" in expected
    with room.replaying(then) as now, wire(now.port) as client:
        client.ask(target)
        assert client.until(b"503}") == expected


def test_a_server_that_is_not_there_is_a_connection_that_breaks(room, wire):
    nobody = "http://127.0.0.1:1"
    with room.recording(nobody) as then, wire(then.port) as client:
        client.ask("/echo")
        assert client.rest() == b""
    (answer,) = then.answers()
    assert (answer.how, type(answer.error)) == ("raised", ConnectionRefusedError)
    with room.replaying(then) as now, wire(now.port) as client:
        client.ask("/echo")
        assert client.rest() == b""


def test_one_connection_serves_many_requests(room, wire, site):
    with room.recording(site.url) as then, wire(then.port) as client:
        for number in range(3):
            client.ask(f"/upload?n={number}", "POST", b"x" * 70_000)
            assert b'"length":70000' in client.until(b"}")
    assert [call.request["url"][-1] for call in then.loaded.calls] == ["0", "1", "2"]
    assert {request.headers["host"] for request in site.requests} == {f"127.0.0.1:{site.port}"}


def test_a_body_in_chunks_is_sent_on_whole(room, wire, site):
    with room.recording(site.url) as then, wire(then.port) as client:
        client.ask("/echo", "POST", transfer_encoding="chunked")
        client.socket.sendall(b"3\r\none\r\n4;x=y\r\n two\r\n0\r\nTrailer: t\r\n\r\n")
        assert b'"body":"one two"' in client.until(b"}")
    assert then.loaded.calls[0].request["body"] == {"text": "one two"}


def test_a_compressed_request_counts_by_what_it_says(room, wire, site):
    def ask(client, level: int) -> None:
        body = gzip.compress(b"naive words, naive words", level, mtime=level)
        client.ask("/upload", "POST", body, content_encoding="gzip")

    with room.recording(site.url) as then, wire(then.port) as client:
        ask(client, 1)
        client.until(b"}")
    assert site.requests[0].body[:2] == b"\x1f\x8b"
    assert then.loaded.calls[0].request["body"] == {"text": "naive words, naive words"}
    with room.replaying(then) as now, wire(now.port) as client:
        ask(client, 9)
        assert client.until(b"}").startswith(b"HTTP/1.1 200 ")


def test_the_nth_of_identical_requests_gets_the_nth_answer(room, wire):
    script = [{"error": 529}, "At last."]
    with ScriptedLLM(script) as llm, room.recording(llm.url) as then, wire(then.port) as client:
        answers = [ask_llm(client), ask_llm(client)]
    with room.replaying(then) as now, wire(now.port) as client:
        assert [ask_llm(client), ask_llm(client)] == answers
    assert b"529" in answers[0]
    assert b"At last." in answers[1]


def ask_llm(client, text: str = "Hello?", **more) -> bytes:
    asked = {
        "model": "claude-opus-5-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": text}],
    }
    body = json.dumps({**asked, **more}).encode()
    headers = {"content_type": "application/json", "anthropic_version": "2023-06-01"}
    client.ask("/v1/messages", "POST", body, **headers)
    return client.until(b"}")


def test_what_the_tape_does_not_know_is_refused_in_words_and_parts_the_replay(room, wire):
    with ScriptedLLM(["Hello."]) as llm, room.recording(llm.url) as then, wire(then.port) as client:
        ask_llm(client)
    with room.replaying(then) as now, wire(now.port) as client:
        refused = ask_llm(client, "Something else?")
    assert refused.startswith(b"HTTP/1.1 400 ")
    assert b"x-should-retry: false" in refused
    assert b"messages[0].content differs" in refused
    (parting,) = now.mode.partings
    assert parting.kind == "missed"


def test_side_traffic_never_parts_a_replay(room, wire, site):
    with room.recording(site.url) as then, wire(then.port) as client:
        client.ask("/status/204")
        client.until(b"\r\n\r\n")
    with room.replaying(then) as now, wire(now.port) as client:
        client.ask("/api/hello", "HEAD")
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        client.ask("/api/event_logging/batch", "POST", b'{"events": []}')
        assert client.until(b"{}").startswith(b"HTTP/1.1 200 ")
    assert now.mode.partings == []
    assert [call.event.data["side"] for call in now.loaded.calls] == ["probe", "telemetry"]


def test_a_live_model_is_asked_what_was_wished_instead(room, wire):
    with ScriptedLLM(["From then.", "From now."]) as llm:
        with room.recording(llm.url) as then, wire(then.port) as client:
            ask_llm(client)
        policy = Policy(live=("llm",), rewrite=Rewrite(model="claude-sonnet-5-5"))
        options = write_options(ReplayOptions(policy=policy, mixed=True))
        with room.replaying(then, live=("llm",), options=options) as now, wire(now.port) as client:
            assert b"From now." in ask_llm(client)
        assert llm.requests[-1].model == "claude-sonnet-5-5"


def test_a_fault_is_served_in_place_of_the_taped_answer(room, wire):
    with ScriptedLLM(["Hello."]) as llm, room.recording(llm.url) as then, wire(then.port) as client:
        ask_llm(client)
    options = {"faults": ["llm:1=529"]}
    with room.replaying(then, options=options) as now, wire(now.port) as client:
        assert ask_llm(client).startswith(b"HTTP/1.1 529 ")


def test_what_is_no_http_is_told_so(room, wire, site):
    with room.recording(site.url) as then, wire(then.port) as client:
        client.socket.sendall(b"hello there\r\n\r\n")
        assert client.rest().startswith(b"HTTP/1.1 400 ")
