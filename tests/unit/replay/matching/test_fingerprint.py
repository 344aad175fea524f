"""When are two requests the same?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.replay.matching.fingerprint import canonical_text, normalised_text, plain_key

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(plain, plain)
def test_keys_are_equal_exactly_where_requests_are(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    if 0 not in (_zeros(one) + _zeros(other)):
        assert (plain_key(one) == plain_key(other)) == same
    hash(plain_key(one))
    assert plain_key(one) == plain_key(json.loads(json.dumps(one)))


def _zeros(value):
    """-0.0 and 0.0 are equal, and spelled apart: nobody asks for either."""
    if isinstance(value, dict):
        return [zero for item in value.values() for zero in _zeros(item)]
    if isinstance(value, list):
        return [zero for item in value for zero in _zeros(item)]
    return [0] if isinstance(value, float) and value == 0 else []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": 1.0}),
        ({"a": 1}, [["a", 1]]),
        ("x" * 65, ["str", hash("x" * 65)]),
        ([], {}),
        (None, "None"),
        ([[1], 2], [[1, 2]]),
    ],
)
def test_what_python_calls_equal_is_not_always_the_same(one, other):
    assert plain_key(one) != plain_key(other)


def test_json_inside_a_text_counts_by_what_it_says():
    one = {"body": {"text": '{"b": 1, "a": [1.0]}'}}
    other = {"body": {"text": '{"a":[1.0],"b":1}'}}
    assert canonical_text(one) == canonical_text(other)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        "[" * 5000 + "]" * 5000,
        "{bad}",
        '{"a": -Infinity}',
    ],
)
def test_text_that_is_no_proper_json_is_a_text(text):
    assert canonical_text({"body": {"text": text}})
    assert normalised_text({"body": text})


def test_what_changes_from_run_to_run_is_renamed_in_order_of_appearance():
    one = normalised_text("id 3f2b8c1e-9a4d-4e2f-8b7a-1c2d3e4f5a6b at 2026-11-15T07:11:05Z")
    other = normalised_text("id 00000000-9a4d-4e2f-8b7a-1c2d3e4f5a6b at 2027-01-01T00:00:00Z")
    assert one == other
    mixed = "{0} {1} {0}"
    first, second = "/tmp/abc", "/tmp/xyz"
    assert normalised_text(mixed.format(first, second)) == normalised_text(
        mixed.format(second, first)
    )
    assert normalised_text(f"{first} {second} {first}") != normalised_text(
        f"{first} {second} {second}"
    )


def test_renaming_takes_time_in_proportion_to_the_text():
    for unit in ("a", "a1", "0x", "2026-", "/tmp/", "ab_", "1.0 "):
        normalised_text(unit * (400_000 // len(unit)))


def test_a_name_made_of_a_moment_and_letters_is_renamed_as_a_whole():
    then = normalised_text({"argv": ["source /x/snapshot-bash-1794795457815-gi7875.sh"]})
    now = normalised_text({"argv": ["source /x/snapshot-bash-1794795470007-ckqyzz.sh"]})
    assert then == now


def test_a_rounded_wall_time_does_not_count_and_other_whole_seconds_do():
    said = "Exit code: 0\nWall time: {} seconds\nOutput:\nSuccess."
    assert normalised_text(said.format("0")) == normalised_text(said.format("0.1"))
    assert normalised_text("wait 30 seconds") != normalised_text("wait 60 seconds")
