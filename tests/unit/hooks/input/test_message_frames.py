"""Where HTTP/1 messages begin and end in the bytes of a connection."""

import pytest

from playhead.hooks.input.message_frames import MessageFrames

POST = b"POST /ask?q=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nGET /not HTTP/1.1\r\n\r\n"[
    :-1
]
GET = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"PUT /c HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;name=x\r\nab\r\nc\r\n0\r\nTrailer: 1\r\n\r\n"
REQUESTS = POST + GET + CHUNKED + b"\r\n" + GET


@pytest.mark.parametrize("size", [1, 7, len(REQUESTS)])
def test_each_request_is_found_however_the_bytes_are_cut(size):
    frames = MessageFrames(is_answer=False)
    found = []
    for at in range(0, len(REQUESTS), size):
        found += frames.feed(REQUESTS[at : at + size])
    end = ("ends", "")
    names = ["POST /ask", "GET /x", "PUT /c", "GET /x"]
    assert found == [one for name in names for one in (("begins", name), end)]
    assert frames.is_between


def test_answers_without_a_body_end_with_their_head():
    frames = MessageFrames(is_answer=True)
    for method in ("HEAD", "GET", "POST"):
        frames.expect(method)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n"
    empty = b"HTTP/1.1 204 No Content\r\n\r\n"
    late = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"
    assert [text for kind, text in frames.feed(head + empty + late) if kind == "begins"] == [
        *("200", "204", "201")
    ]
    assert frames.is_between


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ["HTTP/2 connection"]),
        (b"\x16\x03\x01\x02\x00\n" + GET, []),
        (b"x" * 200_000 + b"\n" + GET, []),
        (b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n" + GET, ["GET /"]),
    ],
)
def test_bytes_of_another_protocol_have_no_requests(data, names):
    found = MessageFrames(is_answer=False).feed(data)
    assert [text for kind, text in found if kind == "begins"] == names


def test_a_connection_that_becomes_a_websocket_has_no_further_answers():
    frames = MessageFrames(is_answer=True)
    frames.expect("GET")
    found = frames.feed(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x05")
    assert found == [("begins", "101")]
    assert frames.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") == []
