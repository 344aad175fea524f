"""Arguments by name, as a call is written."""

import pytest

from playhead.hooks.tools.tool_calls import binder, is_method


def plain(a, b=2, *, c=3): ...
def starred(a, *rest, **named): ...
def only(a, /, b): ...


class Thing:
    def method(self, a): ...

    @staticmethod
    def static(a): ...


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "arguments"),
    [
        (plain, (1,), {}, {"a": 1}),
        (plain, (1, 5), {"c": 6}, {"a": 1, "b": 5, "c": 6}),
        (plain, (), {"a": 1}, {"a": 1}),
        (starred, (1, 2, 3), {"k": 4}, {"a": 1, "rest": [2, 3], "k": 4}),
        (only, (1, 2), {}, {"a": 1, "b": 2}),
        (plain, (1, 2, 3, 4), {}, {"a": 1, "b": 2, "args": [3, 4]}),
        (print, ("a", "b"), {"sep": "-"}, {"args": ["a", "b"], "sep": "-"}),
    ],
)
def test_a_call_is_bound_as_it_is_written(function, args, kwargs, arguments):
    assert binder(function, method=False)(args, kwargs) == arguments


def test_the_object_of_a_method_is_no_argument():
    assert binder(Thing.method, method=True)((Thing(), 1), {}) == {"a": 1}


def test_a_method_is_told_from_a_function():
    assert is_method(Thing.method)
    assert not is_method(Thing.static)
    assert not is_method(plain)

    def self_made(self): ...

    assert not is_method(self_made)
