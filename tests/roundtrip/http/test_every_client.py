"""For every HTTP client: recording changes nothing, and a tape answers as the site did."""

import asyncio
import gzip
import json
import threading

import pytest

from playhead.testing import HttpSite


def seen_by(program, url, stop=None):
    """The pieces that a program got, and the kind of exception that ended them."""
    seen = []
    try:
        program.pieces(url, seen, stop)
    except Exception as error:  # noqa: BLE001 - whichever the client raises
        return seen, type(error), str(error)
    return seen, None, ""


def test_an_answer_is_on_the_tape_as_it_came(program, site, studio):
    with studio.record() as take:
        answer = program.ask("POST", f"{site.url}/echo?q=1", b'{"a": "\xc3\xa9"}')
    call = take.call
    assert call.call["boundary"] == "http"
    assert call.call["name"] == f"POST 127.0.0.1:{site.port}/echo"
    assert call.call["request"]["method"] == "POST"
    assert call.call["request"]["url"] == f"{site.url}/echo?q=1"
    assert call.call["request"]["body"] == {"text": '{"a": "é"}'}
    assert call.call["library"] in program.name or call.call["library"] in {
        "urllib3",
        "http.client",
    }
    assert (call.head["status"], call.head["reason"]) == (200, "OK")
    assert call.head["http_version"] == "HTTP/1.1"
    assert [tuple(pair) for pair in call.head["headers"]] == answer.headers
    assert call.body == answer.body
    assert call.how == "returned"
    assert call.outcome["status"] == 200


def test_recording_never_changes_an_answer(program, site, studio):
    bare = program.ask("POST", f"{site.url}/echo", b"hello")
    with studio.record():
        recorded = program.ask("POST", f"{site.url}/echo", b"hello")
    assert recorded == bare


def test_a_tape_answers_when_the_site_is_gone(program, site, studio):
    with studio.record() as take:
        recorded = program.ask("POST", f"{site.url}/echo", b"hello")
    url = site.url
    site.stop()
    with studio.replay(take) as mode:
        replayed = program.ask("POST", f"{url}/echo", b"hello")
    assert replayed == recorded
    assert mode.left == []
    assert [told.body for told in mode.take.calls] == [recorded.body]
    assert [told.how for told in mode.take.calls] == ["returned"]


STREAMS = [
    "/sse?n=5&gap_ms=15",
    "/sse?n=4&gap_ms=15&torn=1",
    "/gzip?n=4&gap_ms=15",
    "/gzip",
    "/bytes?n=40000&chunk=8000&gap_ms=10",
    "/until-close?n=3&gap_ms=15",
    "/bytes?n=0",
    "/status/204",
]


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_is_the_same_bare_recorded_and_from_the_tape(program, site, studio, path):
    bare = whole(seen_by(program, site.url + path))
    with studio.record() as take:
        recorded = whole(seen_by(program, site.url + path))
    url = site.url
    site.stop()
    with studio.replay(take):
        replayed = whole(seen_by(program, url + path))
    assert recorded == bare
    assert replayed == recorded
    assert take.call.how == "returned"
    assert take.call.body == recorded[0]


def whole(seen):
    """What was seen with its pieces joined: where they are cut is up to the network."""
    return b"".join(seen[0]), *seen[1:]


def test_pieces_are_cut_alike_bare_recorded_and_from_the_tape(program, studio):
    gate = threading.Semaphore()
    sent = [b"one ", b"two ", "naïve".encode()[:3], "naïve".encode()[3:], b" end"]

    class Acknowledged(list):
        """Each piece that the program has seen lets the next one go out."""

        def append(self, piece):
            super().append(piece)
            gate.release()

    async def one_by_one(exchange):
        await exchange.open_stream(200, [("content-type", "text/event-stream")])
        for piece in sent:
            await asyncio.to_thread(gate.acquire)
            await exchange.send(piece)
        await asyncio.to_thread(gate.acquire)
        await exchange.finish()

    def read(url):
        seen = Acknowledged()
        program.pieces(f"{url}/one-by-one", seen)
        while gate.acquire(blocking=False):
            continue
        gate.release()
        return list(seen)

    with HttpSite({"/one-by-one": one_by_one}) as site:
        url = site.url
        assert read(url) == sent
        with studio.record() as take:
            assert read(url) == sent
    assert take.call.stream() == sent
    with studio.replay(take):
        assert read(url) == sent


BROKEN = [
    "/cut?after=3&gap_ms=10&how=close",
    "/cut?after=2&gap_ms=10&how=close&mid=1",
    "/cut?after=2&gap_ms=10&how=reset",
    "/short?n=100&sent=40",
    "/short?n=100&sent=40&how=reset",
]


@pytest.mark.parametrize("path", BROKEN)
def test_a_cut_answer_is_cut_in_the_same_way_from_the_tape(program, site, studio, path):
    bare = whole(seen_by(program, site.url + path))
    with studio.record() as take:
        recorded = whole(seen_by(program, site.url + path))
    url = site.url
    site.stop()
    with studio.replay(take):
        replayed = whole(seen_by(program, url + path))
    assert recorded[:2] == bare[:2]
    assert replayed == recorded
    assert take.call.how == "cut"


def test_an_endless_stream_is_recorded_until_the_agent_leaves(program, site, studio):
    with studio.record() as take:
        seen, error, _ = seen_by(program, f"{site.url}/endless?gap_ms=1", stop=3)
    assert error is None
    assert take.call.how == "left"
    assert take.call.body.startswith(b"".join(seen))
    url = site.url
    site.stop()
    with studio.replay(take):
        again, error, _ = seen_by(program, f"{url}/endless?gap_ms=1", stop=3)
    assert error is None
    assert len(again) == 3
    assert take.call.body.startswith(b"".join(again))


def test_a_streamed_upload_is_teed_and_taken_again(program, site, studio):
    pieces = [b"one,", b"two,", b"three"]
    with studio.record() as take:
        answer = program.upload(f"{site.url}/upload", pieces)
    assert json.loads(answer.body)["length"] == 13
    assert take.call.call["request"]["body"] == {"streamed": True}
    assert b"".join(take.call.stream("sent")) == b"one,two,three"
    url = site.url
    site.stop()
    with studio.replay(take) as mode:
        assert program.upload(f"{url}/upload", pieces) == answer
    assert b"".join(mode.take.call.stream("sent")) == b"one,two,three"


def test_concurrent_questions_to_one_address_keep_their_own_answers(program, site, studio):
    bodies = [b"question %d" % number for number in range(20)]
    with studio.record() as take:
        answers = program.together(f"{site.url}/echo", bodies)
    assert [json.loads(answer.body)["body"].encode() for answer in answers] == bodies
    told = {call.call["request"]["body"]["text"].encode(): call.body for call in take.calls}
    assert told == {body: answer.body for body, answer in zip(bodies, answers, strict=True)}
    url = site.url
    site.stop()
    with studio.replay(take) as mode:
        assert program.together(f"{url}/echo", bodies) == answers
    assert mode.left == []


def test_a_refused_connection_is_raised_again(program, site, studio):
    url = site.url
    site.stop()
    with studio.record() as take, pytest.raises(Exception) as first:
        program.ask("GET", f"{url}/echo")
    assert take.call.how == "raised"
    with studio.replay(take), pytest.raises(Exception) as again:
        program.ask("GET", f"{url}/echo")
    assert type(again.value) is type(first.value)
    assert str(again.value) == str(first.value)


def test_an_answer_that_never_begins_is_raised_again(program, studio, silent_site):
    with studio.record() as take, pytest.raises(Exception) as first:
        program.ask("POST", f"{silent_site}/x", b"hello")
    assert take.calls[0].how == "raised"
    with studio.replay(take), pytest.raises(Exception) as again:
        program.ask("POST", f"{silent_site}/x", b"hello")
    assert type(again.value) is type(first.value)
    assert str(again.value) == str(first.value)


def test_an_untaped_request_is_a_divergence_and_nothing_goes_out(program, site, studio):
    with studio.record() as take:
        program.ask("POST", f"{site.url}/echo", b"taped")
    asked = len(site.requests)
    with studio.replay(take), pytest.raises(Exception) as raised:
        program.ask("POST", f"{site.url}/echo", b"another")
    assert "No taped call matches" in str(raised.value)
    assert len(site.requests) == asked


def test_one_call_goes_live_beside_another_from_the_tape(program, site, studio):
    with studio.record() as take:
        taped = program.ask("POST", f"{site.url}/echo", b"taped")
    asked = len(site.requests)
    with studio.replay(take, live=("upload",)):
        assert program.ask("POST", f"{site.url}/echo", b"taped") == taped
        live = program.ask("POST", f"{site.url}/upload", b"live")
    assert json.loads(live.body)["length"] == 4
    assert len(site.requests) == asked + 1


def test_redirects_are_exchanges_of_their_own(follower, site, studio):
    with studio.record() as take:
        answer = follower.ask("GET", f"{site.url}/redirect?n=2")
    assert [call.head["status"] for call in take.calls] == [302, 302, 200]
    assert [call.how for call in take.calls] == ["returned"] * 3
    url = site.url
    site.stop()
    with studio.replay(take):
        assert follower.ask("GET", f"{url}/redirect?n=2") == answer


def test_secrets_in_headers_do_not_reach_the_tape(program, site, studio, redactor):
    with studio.record(redactor=redactor) as take:
        program.ask("POST", f"{site.url}/cookies", b"x")
    assert "abc123" not in json.dumps(take.call.head)
    assert [name for name, _ in take.call.head["headers"]].count("set-cookie") == 2


def test_binary_bodies_are_kept_byte_by_byte(program, site, studio):
    body = gzip.compress(b"naive" * 100)
    with studio.record() as take:
        answer = program.ask("POST", f"{site.url}/upload", body)
    assert json.loads(answer.body)["length"] == len(body)
    assert "b64" in take.call.call["request"]["body"]
    url = site.url
    site.stop()
    with studio.replay(take):
        assert program.ask("POST", f"{url}/upload", body) == answer
