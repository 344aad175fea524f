"""Requests that are on the tape to the letter, and those that are nearly so."""

import asyncio
import gzip
import json
from itertools import count

import httpx
import httpx2
import pytest
import requests

from playhead.errors import Divergence
from playhead.recording import lanes
from playhead.redact import Redactor

URL = "http://shop.example/orders"
BODIES = ((b"one", b"", b"tw", b"o"), (b"whole",), ())


@pytest.fixture(params=[httpx, httpx2], ids=lambda library: library.__name__)
def library(request):
    return request.param


@pytest.fixture(params=["sync", "async"])
def program(request, library):
    """What a program sees of the answers to some requests, each by `(method, url, options)`."""

    class Shop(library.BaseTransport, library.AsyncBaseTransport):
        def __init__(self):
            self.numbers = count(1)

        def handle_request(self, request):
            number = next(self.numbers)
            return library.Response(
                201 + number,
                headers=[(b"X-Order", b"\xe9"), (b"x-order", b"twice")],
                stream=Pieces(BODIES[number % 3]),
                extensions={"http_version": b"HTTP/2", "reason_phrase": b"Fine"},
            )

        async def handle_async_request(self, request):
            return self.handle_request(request)

    class Pieces(library.SyncByteStream, library.AsyncByteStream):
        def __init__(self, pieces):
            self.pieces = pieces

        def __iter__(self):
            yield from self.pieces

        async def __aiter__(self):
            for piece in self:
                yield piece

    def seen(got, pieces):
        return got.status_code, got.reason_phrase, got.http_version, got.headers.raw, pieces

    def ask(*asked, live=False):
        with library.Client(transport=Shop() if live else None) as client:
            answers = []
            for method, url, options in asked:
                with client.stream(method, url, **options) as got:
                    answers.append(seen(got, list(got.iter_raw())))
            return answers

    async def ask_async(*asked, live=False):
        async with library.AsyncClient(transport=Shop() if live else None) as client:
            answers = []
            for method, url, options in asked:
                async with client.stream(method, url, **options) as got:
                    answers.append(seen(got, [piece async for piece in got.aiter_raw()]))
            return answers

    if request.param == "sync":
        return ask
    return lambda *asked, live=False: asyncio.run(ask_async(*asked, live=live))


def post(text, **options):
    return "POST", URL, {"content": text.encode(), **options}


def test_answers_are_the_same_to_the_last_piece(studio, program):
    asked = [post("x" * 100), post("short"), post("short"), ("GET", URL, {}), post("x" * 100)]
    with studio.record() as take:
        recorded = program(*asked, live=True)
    assert [len(answer[-1]) for answer in recorded] == [1, 0, 3, 1, 0]
    with studio.serve(take) as again:
        assert program(*asked) == recorded
    told = [call.call for call in again.calls]
    assert [one["match"]["number"] for one in told] == [1, 2, 3, 4, 5]
    assert all(one["match"]["quiet"] and one["match"]["rung"] == "exact" for one in told)
    assert [one["name"] for one in told] == [call.call["name"] for call in take.calls]
    assert not any("request" in one for one in told)


def test_each_taped_answer_is_given_once(studio, program):
    with studio.record() as take:
        recorded = program(post("same"), post("same"), live=True)
    with studio.serve(take):
        assert program(post("same"), post("same")) == recorded
        with pytest.raises(Divergence):
            program(post("same"))


def test_a_body_with_other_spacing_and_key_order_is_found(studio, program):
    then, now = '{"a": 1, "b": [2]}', '{"b":[2],"a":1}'
    with studio.record() as take:
        recorded = program(post(then), post("plain"), live=True)
    with studio.serve(take) as again:
        assert program(post(now), post("plain")) == recorded
    assert [call.call["match"]["number"] for call in again.calls] == [1, 2]


def test_another_address_method_or_compared_header_is_another_request(studio, program):
    with studio.record() as take:
        program(post("body"), live=True)
    for other in (
        ("POST", f"{URL}/2", {"content": b"body"}),
        ("PUT", URL, {"content": b"body"}),
        post("body", headers={"accept": "text/csv"}),
        post("body "),
    ):
        with studio.serve(take), pytest.raises(Divergence):
            program(other)
    with studio.serve(take):
        program(post("body", headers={"user-agent": "another", "x-request-id": "7"}))


def test_each_lane_gets_its_own(studio, program):
    with studio.record() as take:
        with lanes.lane("one"):
            first = program(post("same"), live=True)
        with lanes.lane("two"):
            program(post("same"), live=True)
    with studio.serve(take) as again:
        with lanes.lane("two"):
            program(post("same"))
        with lanes.lane("three"):  # left alone, it takes what is left
            assert program(post("same")) == first
    assert [call.call["match"]["number"] for call in again.calls] == [2, 1]


def test_secrets_do_not_keep_a_request_from_its_answer(studio, program):
    asked = [
        post("plain", headers={"authorization": "Bearer sk-" + "a1B2" * 10}),
        ("POST", f"{URL}?api_key={'a1B2' * 10}", {"content": b"plain"}),
        post(json.dumps({"api_key": "sk-" + "a1B2" * 10, "n": 1})),
    ]
    redactor = Redactor(key=b"k" * 16)
    with studio.record(redactor=redactor) as take:
        recorded = program(*asked, live=True)
    with studio.serve(take, redactor) as again:
        assert program(*asked) == recorded
    assert "a1B2" not in (take.run / f"tape-{take.events[0].pid}.jsonl").read_text()
    assert "a1B2" not in (again.run / f"tape-{again.events[0].pid}.jsonl").read_text()


def test_an_llm_call_is_recognised_by_its_body(studio, program):
    def messages(**body):
        url = "http://llm.example/v1/messages"
        headers = {"anthropic-version": "2023-06-01"}
        return "POST", url, {"content": json.dumps(body).encode(), "headers": headers}

    asked = [
        messages(model="large", messages=[1]),
        messages(nothing=1),
        messages(model="small", messages=[1]),
    ]
    with studio.record() as take:
        recorded = program(*asked, live=True)
    with studio.serve(take) as again:
        assert program(*asked) == recorded
    names = ["anthropic.messages large", "POST llm.example/v1/messages", "anthropic.messages small"]
    assert [call.call["name"] for call in again.calls] == names
    assert [call.call["boundary"] for call in again.calls] == ["llm", "http", "llm"]


def test_binary_and_compressed_bodies_are_found(studio, program):
    packed = gzip.compress(b"text", mtime=0)
    asked = [
        ("POST", URL, {"content": packed, "headers": {"content-encoding": "gzip"}}),
        ("POST", URL, {"content": b"\xff\xfe"}),
    ]
    with studio.record() as take:
        recorded = program(*asked, live=True)
    with studio.serve(take):
        assert program(*asked) == recorded


def test_requests_is_served_below_its_own_code(studio, site):
    def ask():
        with requests.Session() as session:
            got = [
                session.post(f"{site.url}/echo", data=b"body"),
                session.get(f"{site.url}/echo"),
                session.get(f"{site.url}/sse?count=3"),
            ]
            return [(one.status_code, dict(one.headers), one.content, one.reason) for one in got]

    with studio.record() as take:
        recorded = ask()
    with studio.serve(take) as again:
        assert ask() == recorded
    assert [call.call["match"]["number"] for call in again.calls] == [1, 2, 3]
    with studio.serve(take), pytest.raises(Divergence):
        requests.post(f"{site.url}/echo", data=b"another")
