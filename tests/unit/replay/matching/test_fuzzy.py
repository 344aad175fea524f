"""Likeness that can be trusted: ordered by it, with scores between 0 and 1."""

from hypothesis import given
from hypothesis import strategies as st

from playhead.replay.modes.mixed import FuzzyIndex, likeness

PROSE = "find the cheapest flight from Paris to Lisbon next Tuesday with one bag and a window seat"


def test_the_most_alike_is_first():
    index = FuzzyIndex(
        [(1, "delete every mail"), (2, PROSE), (3, PROSE.replace("Lisbon", "Porto"))]
    )
    found = index.like(PROSE.replace("Tuesday", "Monday"), 0.7)
    assert [one.key for one in found] == [2, 3]
    assert found[0].score > found[1].score >= 0.7


def test_nothing_below_the_threshold_is_given():
    assert FuzzyIndex([(1, "delete every mail")]).like(PROSE, 0.7) == []


def test_only_those_that_may_be_chosen_are():
    index = FuzzyIndex([(1, PROSE), (2, PROSE)])
    assert [one.key for one in index.like(PROSE, 0.7, among=[2])] == [2]


def test_a_text_of_one_word_finds_itself():
    assert FuzzyIndex([(1, "hello")]).like("hello", 0.9)[0].score == 1.0


@given(st.text(), st.text())
def test_likeness_is_between_none_and_all_and_all_for_equals(left, right):
    assert 0 <= likeness(left, right) <= 1
    assert likeness(left, left) == 1
