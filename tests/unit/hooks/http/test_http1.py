"""Answers on the wire, read and written, however the bytes are cut."""

import pytest

from playhead.hooks.http.http1 import AnswerReader, ChunkReader, NotHttp, blocks

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nX-A: 2\r\n\r\n"
    b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
)


def read(raw, size, method="GET"):
    reader = AnswerReader(method)
    pieces = [reader.read(raw[at : at + size]) for at in range(0, len(raw), size)]
    return reader, b"".join(pieces)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_a_body_is_the_same_however_the_bytes_are_cut(size):
    reader, body = read(PLAIN, size)
    assert (reader.head.status, reader.head.reason, reader.done) == (200, "OK", True)
    assert reader.head.headers == [("Content-Type", "text/plain"), ("Content-Length", "5")]
    assert body == b"hello"
    reader, body = read(CHUNKED, size)
    assert body == b"hello world"
    assert reader.done
    assert reader.chunks.sizes == [5, 6]
    assert reader.head.value("x-a") == "1, 2"


def test_what_is_on_the_way_is_not_the_answer():
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    reader, body = read(early + PLAIN, 1000)
    assert reader.head.status == 200
    assert body == b"hello"


@pytest.mark.parametrize(
    ("method", "status"), [("HEAD", b"200 OK"), ("GET", b"204 No Content"), ("GET", b"304 X")]
)
def test_answers_without_a_body_end_with_their_head(method, status):
    reader, body = read(b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\n", 1000, method)
    assert reader.done
    assert body == b""


def test_a_body_without_a_length_ends_with_the_connection():
    reader, body = read(b"HTTP/1.0 200 OK\n\nall of it", 1000)
    assert body == b"all of it"
    assert not reader.done
    assert reader.end()


def test_an_answer_that_ends_too_early_is_not_whole():
    reader, body = read(PLAIN[:-2], 1000)
    assert body == b"hel"
    assert not reader.end()


@pytest.mark.parametrize("raw", [b"SSH-2.0-OpenSSH", b"<html>", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_no_answer_is_refused(raw):
    with pytest.raises(NotHttp):
        AnswerReader("GET").read(raw)
    with pytest.raises(NotHttp):
        ChunkReader().read(b"xyz\r\n")


HEAD = {"status": 200, "reason": "OK", "http_version": "HTTP/1.1"}


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_what_is_written_is_read_as_it_was(size):
    pieces = [b"hello", b" ", b"world"]
    head = {**HEAD, "headers": [["Transfer-Encoding", "chunked"], ["X-Case", "Kept"]]}
    raw = b"".join(blocks(head, pieces, whole=True))
    reader, body = read(raw, size)
    assert body == b"hello world"
    assert reader.done
    assert reader.chunks.sizes == [5, 1, 5]
    assert reader.head.headers == [("Transfer-Encoding", "chunked"), ("X-Case", "Kept")]


def test_chunks_of_other_sizes_than_the_pieces_keep_both():
    head = {**HEAD, "headers": [["Transfer-Encoding", "chunked"]]}
    first, *rest = blocks(head, [b"hel", b"lo wor", b"ld"], whole=True, sizes=[5, 6])
    reader = AnswerReader("GET")
    assert reader.read(first) == b""
    assert [reader.read(block) for block in rest] == [b"hel", b"lo wor", b"ld", b""]
    assert reader.chunks.sizes == [5, 6]
    assert reader.done


def test_a_cut_body_stays_cut():
    head = {**HEAD, "headers": [["Transfer-Encoding", "chunked"]]}
    reader, body = read(b"".join(blocks(head, [b"hello"], whole=False)), 1000)
    assert body == b"hello"
    assert not reader.end()


def test_a_body_of_another_length_than_announced_is_found_whole():
    head = {**HEAD, "headers": [["Content-Length", "99"]]}
    reader, body = read(b"".join(blocks(head, [b"[redacted]"], whole=True)), 1000)
    assert body == b"[redacted]"
    assert reader.done
