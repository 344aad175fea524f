from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.llm.body_frames import SseEvent, SseParser, looks_like_sse, parse_sse

STREAM = (
    b": keep-alive\n\nevent: greeting\nid: 7\ndata: Gr\xc3\xbcezi\ndata:\ndata:  wohl\n\n"
    b"retry: 3000\ndata: second\r\n\r\ndata: third\r\rdata: \xf0\x9f\x8c\xa6\n\n"
)
EVENTS = [
    SseEvent(event="greeting", id="7", data="Grüezi\n\n wohl"),
    SseEvent(data="second", id="7"),
    SseEvent(data="third", id="7"),
    SseEvent(data="🌦", id="7"),
]


def test_fields_comments_and_every_kind_of_line_end_are_understood():
    assert parse_sse(STREAM) == (EVENTS, "")


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_however_the_stream_is_chunked(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    parser = SseParser()
    events = []
    for start, end in pairwise(edges):
        events += parser.feed(STREAM[start:end])
    last = parser.close()
    assert [*events, *([last] if last else [])] == EVENTS


def test_one_byte_at_a_time_is_enough():
    parser = SseParser()
    events = [event for at in range(len(STREAM)) for event in parser.feed(STREAM[at : at + 1])]
    assert events == EVENTS
    assert parser.close() is None


def test_an_event_without_its_blank_line_is_partial():
    events, _ = parse_sse(b"data: one\n\nevent: x\ndata: tw")
    assert events == [SseEvent(data="one"), SseEvent(event="x", data="tw", partial=True)]


def test_a_blank_line_of_a_single_return_at_the_end_still_ends_the_event():
    assert parse_sse(b"data: one\r\r")[0] == [SseEvent(data="one")]
    assert parse_sse(b"data: one\r")[0] == [SseEvent(data="one", partial=True)]


def test_a_character_cut_in_the_middle_is_held_back():
    assert parse_sse(b"data: Z\xc3")[0] == [SseEvent(data="Z", partial=True)]


def test_lines_that_are_no_sse_are_kept_aside():
    events, stray = parse_sse(b'data: {}\n\n{"error":\n{"code": 503}}\n')
    assert events == [SseEvent(data="{}")]
    assert stray == '{"error":\n{"code": 503}}'


def test_an_event_without_data_is_no_event():
    assert parse_sse(b"event: ping\n\nid: 4\n\n")[0] == []


def test_a_byte_order_mark_is_skipped():
    assert parse_sse(b"\xef\xbb\xbfdata: x\n\n")[0] == [SseEvent(data="x")]


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_fail(body):
    events, _ = parse_sse(body)
    assert all(isinstance(event.data, str) for event in events)


@pytest.mark.parametrize("body", [b"data: x", b"event: x", b": hi", b"\r\n\ndata:x", b"id: 1"])
def test_an_event_stream_is_known_by_its_opening(body):
    assert looks_like_sse(body)


@pytest.mark.parametrize("body", [b"", b'{"data": 1}', b"<html>", b"database"])
def test_other_bodies_are_not_taken_for_event_streams(body):
    assert not looks_like_sse(body)
