"""Sources become one, in order, and none is opened before its turn."""

from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.reading.merged_rows import merge

keys = st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 2), st.integers(0, 5))


def source(items, opened=None):
    first = items[0][0] if items else (0, 0, 0, 0)

    def open_it():
        if opened is not None:
            opened.append(first)
        return iter(items)

    return first, open_it


@given(st.lists(st.lists(keys).map(sorted)))
def test_ordered_sources_give_an_ordered_whole(lists):
    sources = [source([(key, (key, number)) for key in one]) for number, one in enumerate(lists)]
    merged = list(merge(sources))
    assert [key for key, _ in merged] == sorted(key for one in lists for key in one)
    for number, one in enumerate(lists):
        assert [key for key, owner in merged if owner == number] == one


@given(st.lists(st.lists(keys)))
def test_items_of_one_source_keep_their_order_whatever_their_keys_say(lists):
    sources = [
        source([(key, (n, at)) for at, key in enumerate(one)]) for n, one in enumerate(lists)
    ]
    merged = list(merge(sources))
    for number, one in enumerate(lists):
        assert [at for owner, at in merged if owner == number] == list(range(len(one)))


def test_a_source_is_opened_when_its_turn_comes():
    opened = []
    early = [((0, at, 0, 0), at) for at in range(3)]
    late = [((0, 10 + at, 0, 0), 10 + at) for at in range(3)]
    merged = merge([source(late, opened), source(early, opened)])
    assert [next(merged) for _ in range(3)] == [0, 1, 2]
    assert opened == [(0, 0, 0, 0)]
    assert list(merged) == [10, 11, 12]


def test_nothing_merged_is_nothing():
    assert list(merge([])) == []
    assert list(merge([source([]), source([])])) == []
