"""What stands in for parts of the standard library does what they do."""

import functools
import sys
from typing import NamedTuple as TypedTuple

import pytest

from playhead.host import lean


def original(first: int, *, second: str = "b") -> bool:
    """What it is for."""
    return bool(first) and bool(second)


original.note = "kept"


def test_a_wrapper_goes_by_the_name_of_what_it_wraps():
    def made(*args, **kwargs):
        return original(*args, **kwargs)

    theirs = functools.update_wrapper(lambda *_, **__: None, original)
    ours = lean.wrapping(made, original)
    names = ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__dict__")
    assert ours is made
    assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names]


class Ours(lean.NamedTuple):
    first: int
    second: str = "b"


class Theirs(TypedTuple):
    first: int
    second: str = "b"


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_a_named_tuple_is_one(kind):
    made = kind(1)
    assert made == (1, "b") == tuple(kind(first=1))
    assert (made.first, made.second, kind._fields) == (1, "b", ("first", "second"))
    assert made._replace(second="c") == (1, "c")
    assert repr(made) == f"{kind.__name__}(first=1, second='b')"
    for wrong in (kind, lambda: kind(1, "b", 3), lambda: kind(1, third=3)):
        with pytest.raises(TypeError):
            wrong()


def test_what_is_handed_on_is_the_very_same():
    assert lean.partial is functools.partial
    assert lean.ModuleType is type(sys)
