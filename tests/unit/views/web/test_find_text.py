import gzip

import pytest

from playhead.testing import Reply
from playhead.views.web.api.run_reading import find


@pytest.fixture
def story(forge, told):
    tape = forge()
    turn = tape.turn("greet", "say Grüße")
    tape.llm('He said "zebra".', Reply(text="An Okapi, surely."), parent=turn)
    tape.tool("count", {"of": ["quagga"]}, value={"found": 7}, parent=turn)
    call = tape.call("http", "GET x", {"url": "http://x"}, parent=turn)
    tape.chunk(call, gzip.compress(b"not readable as it is"))
    tape.event("animal:seen", {"kind": "tapir"})
    tape.end()
    return told(tape)


@pytest.mark.parametrize(
    "text", ["grüße", '"ZEBRA"', "okapi", "quagga", "tapir", "animal:seen", "found"]
)
def test_a_text_is_found_wherever_it_stands(story, text):
    assert len(find(story, text)) >= 1


def test_what_is_not_there_is_not_found_and_nothing_finds_nothing(story):
    assert find(story, "unicorn") == []
    assert find(story, "  ") == []


def test_no_more_than_asked_for_are_found(story):
    assert len(find(story, "e", limit=2)) == 2
