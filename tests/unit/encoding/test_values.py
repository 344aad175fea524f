"""Whatever a host hands over becomes JSON, and comes back as what it was, or as what it looked like."""

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import json
import math
import pathlib
import signal
import sys
import types
import uuid
from unittest import mock

import attrs
import msgspec
import numpy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.encoding.jsonbytes import encode_std, msgspec_encoder
from playhead.encoding.values import Frozen, freeze, safe_str, thaw, type_name

ENCODERS = [encode_std, msgspec_encoder()]


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(str, enum.Enum):
    PLAN = "plan"


class Point(collections.namedtuple("Point", "x y")):  # noqa: PYI024  the oldest kind there is
    __slots__ = ()


@dataclasses.dataclass
class Order:
    id: int
    lines: list[str]
    note: str = dataclasses.field(init=False)


@attrs.define
class Customer:
    name: str
    born: datetime.date


class Refund(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    amount: decimal.Decimal
    reason: str | None = None


class Event(msgspec.Struct):
    kind: str
    data: bytes


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**64), 10**30),
        *(0.0, -0.0, 1.5, 1e-5, 1e16, -1e300, math.inf, -math.inf, 5e-324),
        *("", "text", "ünïcödé 🙂", "\x00\x1f", "\ud800", "a\udcffb"),
        *(b"", b"\x00\xff", bytearray(b"ab"), (1, 2), (), {1, 2}, frozenset({2})),
        *([], [1, [2]], {}, {"a": {"b": None}}, {"$a": 1}, {"a": 1, "$b": 2}, {1: 2, None: 3}),
        *({("a", 1): "b"}, {"\ud800": 1}, 1 + 2j, decimal.Decimal("1.10"), decimal.Decimal("NaN")),
        *(pathlib.Path("/a/b"), pathlib.Path("a\udcff"), uuid.UUID(int=7)),
        *(datetime.date(2026, 11, 15), datetime.time(7, 11, 5, 6), datetime.timedelta(-1, 2, 3)),
        datetime.datetime(2026, 11, 15, 7, 11, 5, 123456),  # noqa: DTZ001  naive is the point
        datetime.datetime(2026, 11, 15, 7, 11, tzinfo=datetime.timezone.utc),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(minutes=-90))),
    ],
    ids=ascii,
)
def test_a_value_with_a_codec_comes_back_equal(value):
    frozen = freeze(value)
    for encode in ENCODERS:
        back = thaw(json.loads(encode(frozen)))
        assert back == value or (value != value and back != back)  # noqa: PLR0124  not a number
        assert type(back) is type(value) or isinstance(value, pathlib.Path)


def test_not_a_number_comes_back_as_none():
    assert math.isnan(thaw(freeze(math.nan)))


@pytest.mark.parametrize("digits", [4_000, 5_000])
def test_an_integer_of_any_length_comes_back(digits):
    value = 10**digits + 7
    assert thaw(freeze(value)) == value


def test_types_of_ours_come_back_when_they_are_named_and_as_their_fields_otherwise():
    for value, fields in [
        (
            Customer("bob", datetime.date(2000, 1, 1)),
            {"name": "bob", "born": datetime.date(2000, 1, 1)},
        ),
        (Refund(amount="1.10"), {"amount": decimal.Decimal("1.10"), "reason": None}),
        (Event(kind="x", data=b"y"), {"kind": "x", "data": b"y"}),
        (Point(1, 2), {"x": 1, "y": 2}),
    ]:
        frozen = freeze(value)
        assert thaw(frozen) == fields
        assert thaw(frozen, {type_name(type(value)): type(value)}) == value


def test_enums_come_back_when_they_are_named_and_as_their_values_otherwise():
    for value in (Colour.RED, Level.HIGH, Word.PLAN):
        assert freeze(value)["name"] == value.name
        assert thaw(freeze(value)) == value.value
        assert thaw(freeze(value), {type_name(type(value)): type(value)}) is value


def test_a_field_that_was_never_set_is_left_out():
    assert freeze(Order(1, ["a"]))["fields"] == {"id": 1, "lines": ["a"]}


def test_what_a_pydantic_model_holds_beside_its_fields_is_kept():
    assert freeze(Refund(amount=1, later="x"))["fields"]["later"] == "x"


def test_numpy_scalars_and_arrays_are_kept():
    assert freeze(numpy.float64(1.5)) == 1.5
    assert freeze(numpy.int32(7)) == {"$numpy": "int32", "value": 7}
    assert freeze(numpy.bool_(True))["value"] is True
    array = freeze(numpy.arange(6, dtype="int16").reshape(2, 3))
    assert (array["$ndarray"], array["shape"]) == ("int16", [2, 3])
    assert base64.b64decode(array["data"]) == numpy.arange(6, dtype="int16").tobytes()


def test_arrays_of_objects_and_texts_hold_values_and_no_addresses():
    assert freeze(numpy.array([1, "a"], dtype=object))["items"] == [1, "a"]
    assert freeze(numpy.array(["ab", "c"]))["items"] == ["ab", "c"]
    assert "items" not in freeze(numpy.longdouble(1))


def test_subclasses_of_plain_types_lose_their_class_and_nothing_else():
    class Text(str):
        __slots__ = ()

    class Number(int):
        pass

    assert freeze(
        [Text("a"), Number(7), collections.OrderedDict(a=1), collections.Counter("a")]
    ) == [
        "a",
        7,
        {"a": 1},
        {"a": 1},
    ]


def test_exceptions_keep_their_message_arguments_state_place_and_causes():
    try:
        try:
            {}["missing"]
        except KeyError as error:
            problem = OSError(2, "No such file", "/etc/x")
            problem.hint = "look elsewhere"
            raise problem from error
    except OSError as error:
        frozen = freeze(error)
    assert frozen["$exception"] == "builtins:FileNotFoundError"
    assert frozen["args"] == [2, "No such file"]
    assert (frozen["errno"], frozen["filename"]) == (2, "/etc/x")
    assert frozen["state"] == {"hint": "look elsewhere"}
    assert frozen["traceback"][-1].endswith(
        "test_exceptions_keep_their_message_arguments_state_place_and_causes"
    )
    assert frozen["cause"]["$exception"] == "builtins:KeyError"


def test_a_context_that_was_suppressed_is_no_cause():
    error = ValueError("b")
    error.__context__ = KeyError("a")
    assert freeze(error)["cause"]["$exception"] == "builtins:KeyError"
    error.__suppress_context__ = True
    assert "cause" not in freeze(error)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="only on Python 3.11 and later")
def test_groups_of_exceptions_keep_every_member():
    group = ExceptionGroup("two", [ValueError("a"), TypeError("b")])  # noqa: F821  3.11
    kinds = [one["$exception"] for one in freeze(group)["args"][1]]
    assert kinds == ["builtins:ValueError", "builtins:TypeError"]


def test_a_chain_of_a_thousand_exceptions_ends():
    error = None
    for number in range(1000):
        following = ValueError(number)
        following.__cause__ = error
        error = following
    assert len(json.dumps(freeze(error))) < 100_000


def test_a_cycle_is_named_by_how_far_up_it_leads():
    inner = {}
    outer = {"inner": inner}
    inner["outer"] = outer
    assert freeze(outer) == {"inner": {"outer": {"$cycle": 2}}}
    ring = ValueError("a")
    ring.__context__ = other = ValueError("b")
    other.__context__ = ring
    assert freeze(ring)["cause"]["cause"] == {"$cycle": 2}


def test_what_is_too_deep_is_cut_off_and_said():
    value = []
    for _ in range(100_000):
        value = [value]
    text = json.dumps(freeze(value))
    assert '"why": "too deep"' in text


def test_a_few_lists_that_unfold_without_end_are_cut_off():
    value = ["x"]
    for _ in range(60):
        value = [value, value]
    with mock.patch("playhead.encoding.values._MOST_PARTS", 10_000):
        text = json.dumps(freeze(value))
    assert '"why": "too large"' in text


class Hostile:
    """Everything about it raises."""

    def __repr__(self):
        raise RuntimeError("repr")

    def __str__(self):
        raise RuntimeError("str")

    def __eq__(self, other):
        raise RuntimeError("eq")

    def __hash__(self):
        raise RuntimeError("hash")

    def __bool__(self):
        raise RuntimeError("bool")

    def __len__(self):
        raise RuntimeError("len")

    def __iter__(self):
        raise RuntimeError("iter")

    def __getattr__(self, name):
        raise RuntimeError(name)

    @property
    def __class__(self):
        raise RuntimeError("class")

    @property
    def __dict__(self):
        raise RuntimeError("dict")


class Meta(type):
    def __getattribute__(cls, name):
        raise RuntimeError(name)


class Strange(metaclass=Meta):
    pass


class Endless(dict):
    def items(self):
        return ((str(n), n) for n in itertools.count())

    def __iter__(self):
        return itertools.count()

    keys = values = __iter__


class EndlessList(list):
    def __iter__(self):
        return itertools.count()


class EndlessSet(set):
    def __iter__(self):
        return itertools.count()


class Liar(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError

    def encode(self, *_):
        raise RuntimeError


class Reprs:
    def __repr__(self):
        return Liar("x")


class NotText:
    def __repr__(self):
        return 7


@dataclasses.dataclass
class Trap:
    a: int = 1

    @property
    def b(self):
        raise RuntimeError


class BadError(Exception):
    @property
    def args(self):
        raise RuntimeError

    def __str__(self):
        raise RuntimeError


def no_module():
    class Lost:
        pass

    Lost.__module__ = property(lambda self: 1 / 0)
    return Lost()


HOSTILE = {
    "hostile": Hostile(),
    "metaclass": Strange(),
    "endless dict": Endless(a=1),
    "endless list": EndlessList([1]),
    "endless set": EndlessSet([1]),
    "endless iterator": itertools.count(),
    "generator": (n for n in itertools.count()),
    "repr of a str subclass": Reprs(),
    "repr of a number": NotText(),
    "dataclass with a trap": Trap(),
    "exception": BadError("x"),
    "no module": no_module(),
    "mock": mock.MagicMock(),
    "module": types,
    "class": Colour,
    "function": functools.partial(print, 1),
    "fraction": fractions.Fraction(1, 3),
    "memory": memoryview(bytearray(range(10)))[::2],
    "file": sys.stdin,
    "namespace": types.SimpleNamespace(a=1),
    "key that raises": {1: 2, "a": Hostile()},
}


@pytest.mark.parametrize("name", HOSTILE)  # pytest itself would stumble over the values
def test_hostile_values_become_json_all_the_same(name):
    value = HOSTILE[name]
    for planted in (value, [value], {"a": value}, (value,), {"x": [{"y": value}]}):
        frozen = freeze(planted)
        assert encode_std(frozen) == msgspec_encoder()(frozen)
        json.dumps(thaw(frozen), default=repr)


def test_what_subclasses_of_containers_say_of_themselves_is_not_asked():
    assert freeze(Endless(a=1)) == {"a": 1}
    assert freeze(EndlessList([1, 2])) == [1, 2]
    assert freeze(EndlessSet([1])) == {"$set": [1]}
    assert freeze(BadError("x"))["args"] == ["x"]


def test_a_long_look_is_cut_and_its_length_said():
    class Long:
        def __repr__(self):
            return "x" * 5000

    frozen = freeze(Long())
    assert (len(frozen["repr"]), frozen["repr_length"]) == (2000, 5000)


def test_text_of_an_object_whose_str_raises():
    assert "__str__ raised RuntimeError" in safe_str(Hostile())


def test_what_was_frozen_elsewhere_is_taken_as_it_stands():
    assert freeze({"a": Frozen({"$exception": "x:Y"})}) == {"a": {"$exception": "x:Y"}}


def test_a_time_limit_that_strikes_inside_a_hosts_repr_reaches_the_host():
    class Slow:
        def __repr__(self):
            signal.raise_signal(signal.SIGUSR1)
            return "slow"

    def limit(number, frame):
        raise TimeoutError("over")

    before = signal.signal(signal.SIGUSR1, limit)
    try:
        with pytest.raises(TimeoutError, match="over"):
            freeze([Slow()])
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "frozen",
    [
        {"$bytes": "[redacted:field:0a1b2c3d]"},
        {"$bytes": 7},
        {"$datetime": "never"},
        {"$decimal": "x"},
        {"$uuid": "x"},
        {"$int": "x"},
        {"$complex": []},
        {"$set": [{}]},
        {"$map": [[[], 1]]},
        {"$map": 3},
        {"$tuple": None},
        {"$dict": []},
        {"$timedelta": ["a"]},
        {"$path": None},
        {"$unheard": 1},
        {"$enum": "a:B"},
        {"$": None},
    ],
    ids=str,
)
def test_what_a_strangers_tape_holds_is_given_back_as_it_stands(frozen):
    assert thaw(frozen) == (None if frozen == {"$enum": "a:B"} else frozen)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, categories=None), max_size=10)
    | st.binary(max_size=10)
    | st.datetimes().map(lambda moment: moment.replace(fold=0))
    | st.dates()
    | st.timedeltas()
    | st.decimals()
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(anything)
def test_every_frozen_value_gives_the_same_bytes_in_every_encoder(value):
    frozen = freeze(value)
    assert encode_std(frozen) == msgspec_encoder()(frozen)
    assert freeze(frozen) == freeze(json.loads(encode_std(frozen)))


@given(anything)
def test_every_value_comes_back_with_the_same_look(value):
    assert repr(thaw(json.loads(encode_std(freeze(value))))) == repr(value)
