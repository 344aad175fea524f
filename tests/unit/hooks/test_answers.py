"""What a taped call gave comes back as what it was, or not at all."""

import builtins
import enum
from dataclasses import dataclass, field
from typing import NamedTuple

import attrs
import pydantic
import pytest

from playhead.encoding.values import freeze
from playhead.errors import Divergence
from playhead.hooks.answers import classes, classes_of, error_of, value_of


class Colour(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Line:
    ends: tuple[Point, Point]
    colour: Colour
    made: int = field(init=False, default=7)

    def __post_init__(self) -> None:
        if self.colour is None:
            raise ValueError("never run in a replay")


@attrs.define
class Box:
    lines: list[Line]


class Label(pydantic.BaseModel):
    text: str = pydantic.Field(alias="labelText")
    box: object = None


class Refused(Exception):
    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


NAMED = classes(Colour, Point, Line, Box, Label, Refused)


def again(value, named=NAMED):
    return value_of(freeze(value), named, what="draw")


def error_again(error, named=NAMED):
    return error_of(freeze(error), named, what="draw")


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True]},
        (1, {2, 3}, b"\x00", frozenset("a")),
        {"$looks": "like a codec"},
        {1: "keys", (2, 3): "of any kind"},
        Line((Point(0, 0), Point(1, 1)), Colour.RED),
        Box([Line((Point(0, 0), Point(1, 1)), Colour.RED)]),
        Label(labelText="by alias", box=Point(1, 2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_comes_back_equal_and_of_its_own_class(value):
    served = again(value)
    assert served == value
    assert type(served) is type(value)


def test_a_class_that_is_not_named_is_a_divergence_that_names_it():
    with pytest.raises(Divergence, match=r"draw cannot be served.*Line, a class that the program"):
        again({"deep": [Line((Point(0, 0), Point(1, 1)), Colour.RED)]}, {})


def test_a_value_without_a_codec_is_a_divergence_that_names_its_class():
    with pytest.raises(Divergence, match=r"holds builtins\.object, which has no codec"):
        again([object()])


@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong", 7),
        KeyError("k"),
        FileNotFoundError(2, "No such file", "/a/b"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        SystemExit(3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_of_the_language_comes_back_as_it_was(error):
    served = error_again(error)
    assert type(served) is type(error)
    assert served.args == error.args
    assert str(served) == str(error)


def test_an_exception_of_the_program_comes_back_with_its_state_and_without_its_constructor():
    served = error_again(Refused(code=403))
    assert type(served) is Refused
    assert (str(served), served.code) == ("code 403", 403)


def test_a_group_comes_back_with_the_exceptions_in_it():
    group = builtins.ExceptionGroup("several", [ValueError("a"), Refused(code=1)])
    served = error_again(group)
    assert [type(one) for one in served.exceptions] == [ValueError, Refused]


def test_an_exception_whose_class_is_not_named_is_a_divergence_that_says_what_it_was():
    with pytest.raises(Divergence, match=r"raised .*Refused \(code 1\)"):
        error_again(Refused(code=1), {})


def draw() -> dict[str, list[Box] | None]:
    """Names Box, and through it Line, Point and Colour."""


def test_a_function_names_the_classes_of_its_annotation_and_of_their_fields():
    named = classes_of(draw)
    for kind in (Box, Line, Colour, Point):
        assert kind in named.values()


def test_a_function_whose_annotations_cannot_be_followed_still_names_its_module_s():
    def odd() -> "NoSuchClass":  # noqa: F821
        ...

    assert Refused in classes_of(odd).values()
