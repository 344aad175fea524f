"""One event, one line: what is written is read, whichever decoder is at hand."""

import json
import string
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import TapeDamaged
from playhead.events import Event
from playhead.tape.format import (
    FORMAT_VERSION,
    NotAnEvent,
    close_line,
    decode_std,
    decoder,
    newer_format,
    open_line,
    segment_file,
    segment_name,
)

REQUIRED = {"seq": 1, "kind": "x", "wall": 2, "mono": 3, "pid": 4}

texts = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip
members = st.fixed_dictionaries(
    {name: st.integers(0, 2**63 - 1) for name in ("seq", "wall", "mono", "pid")} | {"kind": texts},
    optional={
        "thread": st.integers(0, 2**63 - 1),
        "lane": texts,
        "at": st.none() | texts,
        "parent": st.none() | texts | st.integers(0, 2**40),
        "user": st.booleans(),
        "data": values,
        "unheard": values,
    },
)


def encoded(told):
    return json.dumps(told, ensure_ascii=False).encode()


@given(members)
def test_both_decoders_give_the_same_event(told):
    event = decoder()(encoded(told))
    assert event == decode_std(encoded(told))
    for name, value in told.items():
        if name != "unheard":
            assert getattr(event, name) == value


# Bytes near to what a line is, rather than any bytes: those fail at the first character.
nearly = st.lists(
    st.sampled_from([*string.printable, "\\u00e9", "\\ud83d", "é", '"seq":', "1e999", "NaN", "-0"]),
    max_size=30,
).map("".join)


@given(nearly, st.sampled_from(["data", "why", "seq", "thread", "user", "cause"]))
def test_both_decoders_refuse_the_same_lines(text, name):
    line = encoded(REQUIRED)[:-1] + f',"{name}":{text}}}'.encode()
    outcomes = []
    for decode in (decoder(), decode_std):
        try:
            outcomes.append(decode(line))
        except NotAnEvent:
            outcomes.append(None)
    assert outcomes[0] == outcomes[1]


@given(st.binary(max_size=60), st.integers(0, 2**32 - 1))
def test_opening_a_line_is_the_inverse_of_closing_it(body, before):
    line, crc = close_line(body, before)
    assert open_line(line) == (body, crc)
    assert crc == crc32(body, before)


def test_the_worked_example_of_the_page_on_the_format():
    first, crc = close_line(b'{"seq":0,"kind":"a"', 0)
    second, _ = close_line(b'{"seq":1,"kind":"b"', crc)
    assert first == b'{"seq":0,"kind":"a","crc":"b6bf1851"}\n'
    assert second == b'{"seq":1,"kind":"b","crc":"0de530da"}\n'


@pytest.mark.parametrize("line", [b"", b"{}", b'{"a":1,"crc":"0000000"}', b'{"crc":"zzzzzzzz"}'])
def test_a_line_without_a_checksum_is_no_line(line):
    with pytest.raises(NotAnEvent):
        open_line(line)


def test_defaults_are_those_of_an_event():
    assert decode_std(encoded(REQUIRED)) == Event(**REQUIRED)


@pytest.mark.parametrize(
    ("file", "name"),
    [("tape-17.jsonl", "17"), ("tape-17-2.jsonl", "17-2"), ("tape-17.jsonl.part", None),
     ("tape.jsonl.zst", None), ("manifest.json", None)],
)  # fmt: skip
def test_a_segment_is_known_by_the_name_of_its_file(file, name):
    assert segment_name(file) == name
    if name is not None:
        assert segment_file(name) == file


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "x\0", "x" * 200])
def test_no_path_hides_in_the_name_of_a_segment(name):
    with pytest.raises(TapeDamaged):
        segment_file(name)


NEWER = FORMAT_VERSION + 1


def start(version, **more):
    return encoded({"kind": "segment.start", "data": {"format": version}, **more})


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (start(NEWER), NEWER),
        (close_line(start(NEWER)[:-1], 0)[0], NEWER),
        (close_line(start(98)[:-1], 0)[0].replace(b"98", b"99", 1), None),  # damage, not news
        (start(FORMAT_VERSION), None),
        (start(1), None),
        (start(True), None),
        (start(NEWER, user=True), None),
        (start(str(NEWER)), None),
        (b"[%d]" % NEWER, None),
        (b"?", None),
    ],
)
def test_a_newer_format_is_told_by_the_first_line(line, found):
    assert newer_format(line) == found
