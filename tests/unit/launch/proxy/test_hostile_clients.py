"""Clients that are no processes of the run: web pages, other users, and requests that two servers read differently."""

import gzip
import socket
import threading

import pytest

from playhead.testing.site import HttpSite


@pytest.fixture
def site():
    async def answer(exchange):
        await exchange.answer_json(200, {})

    with HttpSite({"/v1/messages": answer}) as one:
        yield one


def said(port: int, raw: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(raw)
        answer = b""
        while block := line.recv(65536):
            answer += block
    return answer


GOOD = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /~~http~127.0.0.1:%d/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /~~http~169.254.169.254:80~guess/x HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
        GOOD + b"Origin: https://evil.test\r\n\r\n",
        GOOD + b"Sec-Fetch-Site: cross-site\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.test:%d\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.evil.test.:%d@x\r\nOrigin: null\r\n\r\n",
        GOOD + b"Content-Length: +3\r\n\r\nabc",
        GOOD + b"Content-Length: 3_0\r\n\r\nabc",
        GOOD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        GOOD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        GOOD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        GOOD + b"Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
        GOOD + b"Transfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n\r\n",
        GOOD + b"Content-Length: 99999999999\r\n\r\n",
        GOOD + b"X: a\nEvil: b\r\n\r\n",
        GOOD + b"X : a\r\n\r\n",
        GOOD + b" folded\r\n\r\n",
        b"GET /v1\nX HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
        b"GET /v1/messages HTTP/1.7\r\nHost: 127.0.0.1:%d\r\n\r\n",
        b"CONNECT evil.test\nX:%d HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT evil.test\tX:%d HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_a_request_that_no_agent_sends_is_refused_and_reaches_nobody(room, site, head):
    with room.recording(site.url) as then:
        answer = said(then.port, head % then.port)
    assert not answer.startswith(b"HTTP/1.1 2")
    assert site.requests == []
    assert then.loaded.calls == []


def test_a_plain_request_reaches_the_usual_server(room, site):
    with room.recording(site.url) as then:
        answer = said(
            then.port, GOOD % then.port + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"
        )
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_body_that_expands_without_end_does_not_stop_others(room, site):
    bomb = gzip.compress(bytes(150_000_000), 1)
    head = GOOD + b"Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    with room.recording(site.url) as then:
        attacker = threading.Thread(
            target=said, args=(then.port, head % (then.port, len(bomb)) + bomb)
        )
        attacker.start()
        meanwhile = 0
        while attacker.is_alive():
            answer = said(
                then.port, GOOD % then.port + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"
            )
            assert answer.startswith(b"HTTP/1.1 200")
            meanwhile += attacker.is_alive()
        attacker.join()
    # A proxy that expands the body in its loop answers nothing until it has finished.
    assert meanwhile > 1
