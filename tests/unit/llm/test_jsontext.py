import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.llm.jsontext import parse, parse_many

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "id", "content", "input", "n"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


def test_whole_json_is_whole():
    parsed = parse(' {"a": [1, "x"]} ')
    assert parsed.value == {"a": [1, "x"]}
    assert parsed.whole


@pytest.mark.parametrize(
    ("cut", "value"),
    [
        ('{"text": "Hel', {"text": "Hel"}),
        ('{"text": "Hel\\', {"text": "Hel"}),
        ('{"text": "a\\\\', {"text": "a\\"}),
        ('{"text": "Hel\\u00', {"text": "Hel"}),
        ('{"text": "Z\\u00fc', {"text": "Zü"}),
        ('{"text": "a", "te', {"text": "a"}),
        ('{"text": "a", "text2"', {"text": "a"}),
        ('{"text": "a", "n":', {"text": "a"}),
        ('{"text": "a", "n": 12', {"text": "a"}),
        ('{"text": "a", "n": 12,', {"text": "a", "n": 12}),
        ('{"n": tru', {}),
        ('{"n": true ', {"n": True}),
        ('{"id": "msg_01', {}),
        ('[{"id": "msg_01"}, {"id": "ms', [{"id": "msg_01"}, {}]),
        ('["one", "tw', ["one"]),
        ("[[1, 2], [3, 4", [[1, 2], [3]]),
        ('{"a": {"b": {"text": "x', {"a": {"b": {"text": "x"}}}),
        ('{"a": {}, "b"', {"a": {}}),
        ("{", {}),
        ("[", []),
    ],
)
def test_a_cut_text_gives_what_surely_arrived(cut, value):
    parsed = parse(cut)
    assert parsed.value == value
    assert not parsed.whole
    assert parsed.reason == "the JSON is cut off"


@pytest.mark.parametrize("key", ["input", "args"])
def test_cut_arguments_stay_raw_text_so_that_they_do_not_look_whole(key):
    cut = '{"q": "wea", "n": {"deep": [1'
    parsed = parse('{"content": [{"name": "f", "' + key + '": ' + cut)
    assert parsed.value == {"content": [{"name": "f", key: cut}]}


@pytest.mark.parametrize("text", ["", "   ", "hello", "<html>", '{"a" "b"}', '{"a": }', "}", '"'])
def test_what_is_no_json_says_so(text):
    parsed = parse(text)
    assert parsed.value is None
    assert parsed.reason


def test_deep_nesting_is_refused_with_a_reason():
    for text in ("[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000):
        assert parse(text).value is None
        assert "deep" in (parse(text).reason or "")


def test_a_long_string_without_an_end_is_read_in_reasonable_time():
    text = '{"text": "' + "a\\n" * 200_000
    assert parse(text).value == {"text": "a\n" * 200_000}


@given(values, st.data())
def test_no_cut_makes_the_reader_fail_or_invent(value, data):
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text)))]
    parsed = parse(cut)
    if parsed.value is not None and isinstance(value, (dict, list)):
        assert _is_beginning(parsed.value, value)


def _is_beginning(part, whole):
    """Whether nothing in `part` is missing from or different in `whole`."""
    if isinstance(part, str) and isinstance(whole, (dict, list)):
        return True  # raw arguments
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and _is_beginning(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(_is_beginning, part, whole))
    if isinstance(part, str) and isinstance(whole, str):
        # The first half of a pair of escapes may have lost its second.
        return whole.startswith(re.sub("[\ud800-\udbff]$", "", part))
    return part == whole


def test_values_end_to_end_are_read_one_by_one():
    assert parse_many('{"a": 1}\n{"b": 2}[3] {"c"') == ([{"a": 1}, {"b": 2}, [3]], '{"c"')
    assert parse_many("") == ([], "")
