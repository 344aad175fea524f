from types import SimpleNamespace

import pytest

from playhead.story.items import DEEPEST, family


def items(**parents):
    return {name: SimpleNamespace(parent=parent) for name, parent in parents.items()}


def everybody(children):
    return sorted(name for below in children.values() for name in below)


def test_children_stand_under_their_parents_in_order():
    found = family(items(a=None, b="a", c="b", d="a", e="nobody"))
    assert found == {None: ("a", "e"), "a": ("b", "d"), "b": ("c",)}


def test_a_cause_comes_before_what_encloses():
    asked = {"llm": SimpleNamespace(parent=None), "tool": SimpleNamespace(parent=None, cause="llm")}
    assert family(asked) == {None: ("llm",), "llm": ("tool",)}


@pytest.mark.parametrize(
    "circle",
    [items(a="a"), items(a="b", b="a"), items(a="b", b="c", c="a", d="c"), items(a="b", b="b")],
)
def test_a_circle_is_opened_and_nobody_is_lost(circle):
    found = family(circle)
    assert everybody(found) == sorted(circle)
    reached, waiting = set(), list(found[None])
    while waiting:
        name = waiting.pop()
        assert name not in reached
        reached.add(name)
        waiting += found.get(name, ())
    assert reached == set(circle)


def test_a_tree_that_is_too_deep_is_flat_from_there_on():
    deep = {str(at): SimpleNamespace(parent=str(at - 1) if at else None) for at in range(50_000)}
    found = family(deep)
    assert len(found) == DEEPEST + 1
    assert everybody(found) == sorted(deep)
