import pytest

from playhead.encoding.values import freeze
from playhead.views.text.words import arguments, compact, pretty


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("two words", '"two words"'),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (b"\x00", "b'\\x00'"),
        ((1, 2), "(1, 2)"),
        ({1, 2}, "{1, 2}"),
    ],
)
def test_values_are_written_as_a_programmer_would(value, shown):
    assert compact(freeze(value)) == shown


@pytest.mark.parametrize(
    ("frozen", "shown"),
    [
        ({"$hash": "ab", "size": 12}, "(not kept: 12 bytes)"),
        ({"$blob": "ab", "size": 70_000}, "(blob, 70000 bytes)"),
        ({"$opaque": "x", "repr": "<lock>"}, "<lock>"),
        ({"$datetime": "no date"}, None),
        ({"$bytes": 5}, None),
        ({"$unheard": 1}, None),
    ],
)
def test_what_cannot_be_thawed_is_shown_all_the_same(frozen, shown):
    assert compact(frozen) == shown if shown else compact(frozen)


def test_a_large_value_costs_a_line_and_no_more():
    assert len(compact({"x": "y" * 10_000_000, "z": list(range(1_000_000))})) <= 400
    assert len(compact(["x" * 5_000_000] * 100)) <= 400


def test_arguments_are_written_as_a_call():
    assert arguments({"order": "A-1", "limit": 3}) == '(order="A-1", limit=3)'
    assert arguments(None) == "()"
    assert arguments([1, 2]) == "([1, 2])"


def test_short_values_stay_on_one_line_and_long_ones_do_not():
    assert pretty({"a": 1}) == '{"a": 1}'
    assert pretty({"a": "x" * 100}).count("\n") == 2
    assert pretty("as it is") == "as it is"
