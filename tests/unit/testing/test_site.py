"""The site's ready routes, seen by several HTTP clients."""

import asyncio
import gzip
import hashlib
import json
import socket
import zlib

import httpx
import httpx2
import pytest
import requests
from websockets.sync.client import connect

from playhead.testing import HttpSite


@pytest.fixture
def site():
    with HttpSite() as running:
        yield running


@pytest.fixture
def client(site):
    with httpx2.Client(base_url=site.url) as one:
        yield one


def chunks_of(site, target):
    """The chunks of an answer as they were framed, whatever TCP made of them on the way."""
    with socket.create_connection((site.host, site.port)) as wire, wire.makefile("rb") as lines:
        wire.sendall(f"GET {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        while lines.readline().strip():
            continue
        chunks = []
        while size := int(lines.readline() or b"0", 16):
            chunks.append(lines.read(size))
            lines.readline()
        return chunks


def test_echo_tells_what_was_asked(client, site):
    told = client.put("/echo?a=1&b=", content="ü", headers={"X-Thing": "yes"}).json()
    assert (told["method"], told["path"], told["query"]) == ("PUT", "/echo", {"a": "1", "b": ""})
    assert told["headers"]["x-thing"] == "yes"
    assert told["body"] == "ü"
    assert client.post("/echo", content=b"\xff\xfe").json()["body_base64"] == "//4="
    assert [request.number for request in site.requests] == [1, 2]


@pytest.mark.parametrize("library", [httpx, httpx2, requests])
def test_a_connection_is_kept_for_the_next_request(site, library):
    with library.Session() if library is requests else library.Client() as session:
        first, second = (session.get(f"{site.url}/echo").json() for _ in range(2))
    assert first["path"] == second["path"] == "/echo"


def test_connections_are_closed_when_the_client_says_so(client):
    answer = client.get("/echo", headers={"connection": "close"})
    assert answer.headers["connection"] == "close"


def test_events_come_one_a_chunk_and_torn_ones_in_two(site):
    whole = chunks_of(site, "/sse?n=3&gap_ms=1")
    torn = chunks_of(site, "/sse?n=3&torn=1")
    assert len(whole) == 3
    assert whole[1].startswith(b"id: 1\nevent: tick\ndata: ")
    assert len(torn) == 6
    assert b"".join(torn) == b"".join(whole)
    with pytest.raises(UnicodeDecodeError):
        torn[0].decode()


def test_an_endless_stream_ends_with_its_client(site):
    with httpx2.stream("GET", f"{site.url}/endless?gap_ms=0") as response:
        events = [line for line, _ in zip(response.iter_lines(), range(30), strict=False)]
    assert len(events) == 30
    assert httpx2.get(f"{site.url}/echo").status_code == 200


@pytest.mark.parametrize("query", ["after=3", "after=3&mid=1", "after=3&how=reset"])
def test_a_cut_stream_breaks(client, query):
    with client.stream("GET", f"/cut?{query}") as response, pytest.raises(httpx2.TransportError):
        response.read()


def test_a_stalled_stream_runs_into_the_timeout(site):
    stall = httpx2.stream("GET", f"{site.url}/cut?after=1&how=stall", timeout=1)
    with stall as response, pytest.raises(httpx2.ReadTimeout):
        response.read()
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.get(f"{site.url}/hold", timeout=0.2)


def test_a_body_may_be_shorter_than_promised(client):
    with client.stream("GET", "/short?n=100&sent=40") as response:
        assert response.headers["content-length"] == "100"
        with pytest.raises(httpx2.RemoteProtocolError, match="received 40 bytes, expected 100"):
            response.read()


def test_bodies_and_streams_may_be_compressed(site, client):
    assert client.get("/gzip").json()["text"].startswith("naïve →")
    chunks = chunks_of(site, "/gzip?n=4")
    assert gzip.decompress(b"".join(chunks)).count(b"event: tick") == 4
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert unpacker.decompress(chunks[0]).startswith(b"id: 0")


def test_bytes_are_the_same_each_time(site, client):
    whole = client.get("/bytes?n=100000").content
    assert len(whole) == 100_000
    assert whole == client.get("/bytes?n=100000&chunk=4096").content
    assert len(chunks_of(site, "/bytes?n=100000&chunk=4096")) == 25


@pytest.mark.parametrize("code", [200, 204, 304, 404, 429, 503, 599])
def test_any_status_can_be_had(client, code):
    answer = client.get(f"/status/{code}?retry_after=7")
    assert answer.status_code == code
    assert answer.headers["retry-after"] == "7"
    assert client.get("/echo").status_code == 200


def test_redirects_lead_to_their_place_over_several_hops(client):
    answer = client.get("/redirect?n=3&to=/echo", follow_redirects=True)
    assert answer.json()["path"] == "/echo"
    assert len(answer.history) == 3
    kept = client.post("/redirect?code=307&to=/echo", content="kept", follow_redirects=True)
    assert kept.json()["body"] == "kept"


@pytest.mark.parametrize("chunked", [False, True])
def test_uploads_arrive_whole(client, chunked):
    body = bytes(range(256)) * 2000
    told = client.post(
        "/upload", content=iter([body[:300_000], body[300_000:]]) if chunked else body
    )
    assert told.json() == {
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "content_type": None,
        "chunked": chunked,
    }


def test_an_upload_that_waits_for_leave_gets_it(site):
    with socket.create_connection((site.host, site.port)) as wire, wire.makefile("rb") as lines:
        wire.sendall(b"POST /upload HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        assert lines.readline() == b"HTTP/1.1 100 Continue\r\n"
        wire.sendall(b"ab")
        assert lines.readline() == b"\r\n"
        assert lines.readline() == b"HTTP/1.1 200 OK\r\n"


def test_a_body_may_end_with_the_connection(client):
    answer = client.get("/until-close?n=3")
    assert answer.text == "line 0\nline 1\nline 2\n"
    assert "content-length" not in answer.headers
    assert "transfer-encoding" not in answer.headers


def test_an_old_client_gets_no_chunks(site):
    with socket.create_connection((site.host, site.port)) as wire, wire.makefile("rb") as lines:
        wire.sendall(b"GET /sse?n=1 HTTP/1.0\r\n\r\n")
        head, _, body = lines.read().partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body.startswith(b"id: 0\n")


def test_two_cookies_come_in_two_headers(client):
    answer = client.get("/cookies")
    assert len(answer.headers.get_list("set-cookie")) == 2
    assert client.get("/cookies").json()["cookie"] == "session=abc123; theme=dark"


def test_a_head_request_gets_the_length_and_no_body(client):
    answer = client.head("/bytes?n=500")
    assert (answer.headers["content-length"], answer.content) == ("500", b"")
    assert client.get("/slow?ms=1").text == "late"


def test_a_websocket_says_back_what_it_hears(site, client):
    with connect(f"ws://{site.host}:{site.port}/ws") as wire:
        for message in ("hello", "ü" * 100, "x" * 70_000):
            wire.send(message)
            assert wire.recv(timeout=10) == message
        wire.send(["in ", "two ", "frames"])
        assert wire.recv(timeout=10) == "in two frames"
    assert client.get("/ws").status_code == 426


def test_routes_of_ones_own_join_the_ready_ones():
    async def mine(exchange):
        await exchange.answer(200, b"mine")

    async def broken(exchange):
        raise LookupError("lost")

    with HttpSite({"/mine": mine, "/broken": broken}) as site:
        assert httpx2.get(f"{site.url}/mine").text == "mine"
        assert httpx2.get(f"{site.url}/echo").status_code == 200
        failed = httpx2.get(f"{site.url}/broken")
        assert failed.status_code == 500
        assert failed.json()["error"]["message"] == "HttpSite failed: LookupError: lost"
        assert "There are: /broken, /bytes" in httpx2.get(f"{site.url}/nowhere").json()["error"]


NO_REQUESTS = [
    b"nonsense\r\n\r\n",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
]


@pytest.mark.parametrize("sent", NO_REQUESTS)
def test_what_is_no_http_is_refused_and_the_site_goes_on(site, sent):
    with socket.create_connection((site.host, site.port)) as wire, wire.makefile("rb") as lines:
        wire.sendall(sent)
        assert lines.readline() == b"HTTP/1.1 400 Bad Request\r\n"
    assert httpx2.get(f"{site.url}/echo").status_code == 200


def test_a_client_that_leaves_half_way_does_not_disturb_the_site(site):
    with socket.create_connection((site.host, site.port)) as wire:
        wire.sendall(b"POST /upload HTTP/1.1\r\ncontent-length: 100\r\n\r\nhalf")
    assert httpx2.get(f"{site.url}/echo").status_code == 200


def test_many_clients_are_served_at_once(site):
    async def all_at_once():
        async with httpx2.AsyncClient(base_url=site.url) as client:
            gets = [client.get(f"/sse?n=5&gap_ms=1&me={number}") for number in range(40)]
            return await asyncio.gather(*gets)

    answers = asyncio.run(all_at_once())
    assert {answer.text.count("event: tick") for answer in answers} == {5}
    assert json.loads(httpx2.get(f"{site.url}/echo").text)["method"] == "GET"
