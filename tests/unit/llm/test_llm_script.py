"""The words of a script: what a reply is when little is said, and how texts are cut up."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.llm.llm_script import pieces, stop_reason_of
from playhead.testing import Reply, ToolCall


@given(st.text(), st.none() | st.integers(min_value=1, max_value=40))
def test_pieces_joined_are_the_text(text, count):
    assert "".join(pieces(text, count)) == text


@given(st.text(min_size=1), st.integers(min_value=1, max_value=40))
def test_there_are_as_many_pieces_as_asked_for_or_as_letters(text, count):
    parts = pieces(text, count)
    assert len(parts) == min(count, len(text))
    assert all(parts)


def test_an_empty_text_has_no_pieces():
    assert pieces("", 3) == []


def test_a_reply_stops_for_its_tools_unless_the_script_says_why():
    calls = [ToolCall(name="ls")]
    assert stop_reason_of(Reply(text="Done.")) == "end_turn"
    assert stop_reason_of(Reply(tool_calls=calls)) == "tool_use"
    assert stop_reason_of(Reply(tool_calls=calls, stop_reason="max_tokens")) == "max_tokens"


def test_a_reply_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Reply().text = "other"
