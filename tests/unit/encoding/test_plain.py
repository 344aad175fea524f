"""What JSON holds exactly is plain; everything else is not, and asking never takes long."""

import collections
import enum
import json
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.encoding.jsonbytes import encode_std, msgspec_encoder
from playhead.encoding.plain import Keys, is_plain
from playhead.encoding.values import freeze
from playhead.redact import Redactor


class Text(str):
    __slots__ = ()


class Colour(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63),
        2**63 - 1,
        0.0,
        -1.5,
        1e-4,
        9e15,
        "",
        "ü",
        [],
        {},
        {"a": [1, {"b": None}]},
    ],
)
def test_what_json_holds_is_plain(value):
    assert is_plain(value)
    assert is_plain([value])
    assert is_plain({"k": {"k": [[[[value]]]]}})


@pytest.mark.parametrize(
    "value",
    [
        *(2**63, -(2**63) - 1, math.nan, math.inf, 1e-5, 1e16, -1e300),
        *(b"", (), {1}, {1: 2}, {None: 1}, {"$a": 1}, {"a": {"b$": 1}}),
        *(Text("a"), Colour.RED, collections.OrderedDict(), object()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_does_not_hold_exactly_is_not_plain(value):
    assert not is_plain(value)
    assert not is_plain([value])
    assert not is_plain({"k": {"k": [[[[value]]]]}})


def test_keys_that_are_words_of_an_enum_are_their_text_to_every_encoder():
    value = {Text("a"): 1, Colour.RED: 2}
    assert is_plain(value)
    assert encode_std(value) == encode_std(freeze(value)) == b'{"a":1,"red":2}'
    assert msgspec_encoder()(value) == encode_std(value)


def test_a_cycle_is_not_plain():
    ring = []
    ring.append(ring)
    deep = {"a": {}}
    deep["a"]["b"] = deep
    assert not is_plain(ring)
    assert not is_plain(deep)


def test_what_is_too_deep_is_not_plain():
    value = "x"
    for _ in range(90):
        value = [value]
    assert is_plain(value)
    for _ in range(100_000):
        value = [value]
    assert not is_plain(value)


def test_a_few_lists_that_unfold_without_end_are_not_plain():
    value = ["x"]
    for _ in range(60):
        value = [value, value]
    assert not is_plain(value)


def test_names_of_secrets_are_not_plain_to_a_redactor():
    keys = Redactor(key=b"k").safe_keys
    assert is_plain({"user": 1, "deep": [[[[[{"user": 1}]]]]]}, keys)
    assert not is_plain({"password": 1}, keys)
    assert not is_plain({"deep": [[[[[{"password": 1}]]]]]}, keys)


@pytest.mark.parametrize("keys", [Keys(), Redactor(key=b"k").safe_keys])
def test_keys_are_remembered_but_not_for_ever(keys):
    for number in range(30_000):
        assert keys.learn([f"key{number}"])
    assert keys.learn(["x" * 10_000])
    assert len(keys.known) < 20_000
    assert "x" * 10_000 not in keys.known


floats = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=25,
)


@given(plain)
def test_whatever_is_plain_is_the_same_bytes_in_every_encoder_and_comes_back(value):
    if is_plain(value):
        encoded = encode_std(value)
        assert msgspec_encoder()(value) == encoded
        assert json.loads(encoded) == value


@given(floats)
def test_a_plain_float_is_spelled_alike_by_every_encoder(value):
    if is_plain(value):
        assert encode_std(value) == msgspec_encoder()(value) == repr(value).encode()


def test_asking_while_another_thread_changes_the_value_does_no_harm():
    value = {"a": {}}
    stop = threading.Event()

    def change():
        number = 0
        while not stop.is_set():
            number += 1
            value["a"][str(number % 100)] = number
            value["a"].pop(str((number * 7) % 100), None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(2_000):
            try:
                is_plain(value)
            except RuntimeError:  # the recorder then goes the slow way
                continue
    finally:
        stop.set()
        thread.join()
