import gzip
import json

import pytest

from playhead.story import tell
from playhead.story.story_json import call_json, item_at, run_json, story_json
from playhead.tape.reader import Tape
from playhead.testing import Reply
from playhead.views.web.outline import outline


@pytest.fixture
def told():
    return lambda tape: tell(Tape(tape.path))


def of(tape, told, seq):
    return item_at(told(tape), f"{tape.pid}:{seq}")


def test_streams_are_whole_and_their_pieces_have_sizes_and_times(forge, told):
    tape = forge()
    call = tape.call("process", "grep", {"argv": ["grep"]})
    for text in ("ab", "c"):
        tape.now += 1
        tape.chunk(call, text.encode(), "stdout")
    tape.outcome(call, exit_code=0)
    tape.end()
    made = of(tape, told, call)
    assert made["streams"] == {"stdout": {"text": "abc"}}
    assert made["pieces"] == [[0, 1_000_000_000, 2], [0, 2_000_000_000, 1]]
    assert made["outcome"] == {"exit_code": 0}


def test_a_compressed_body_is_readable_too(forge, told):
    tape = forge()
    call = tape.call("http", "GET x", {"method": "GET", "url": "http://x"})
    tape.head(call, content_encoding="gzip")
    tape.chunk(call, gzip.compress(b"plain words"))
    tape.outcome(call, status=200)
    tape.end()
    assert of(tape, told, call)["plain_body"] == {"text": "plain words"}


def test_parts_of_an_answer_say_what_they_are_and_when_they_came(forge, told):
    tape = forge()
    call = tape.llm("Hello?", Reply(text="Hello there, you.", thinking="They greet."))
    tape.end()
    made = of(tape, told, call)
    parts = made["llm"][0]["response"]["parts"]
    assert [part["type"] for part in parts] == ["thinking", "text"]
    assert sum(length for _, length, thought in made["speech"] if not thought) == len(
        "Hello there, you."
    )
    json.dumps(made)


def test_rows_of_an_item_mean_the_item_and_a_stranger_is_nothing(forge, told):
    tape = forge()
    turn = tape.turn("answer", "be kind", {"to": "you"})
    tape.seam(turn, "begun")
    tape.turn_end(turn)
    tape.end()
    made = item_at(told(tape), f"{tape.pid}:{turn}~0")
    assert made["type"] == "turn"
    assert made["input"] == {"to": "you"}
    assert [seam["name"] for seam in made["seams"]] == ["begun"]
    assert item_at(told(tape), "1:1") is None


def test_the_api_the_page_and_the_commands_have_one_form_of_a_call(forge, told):
    tape = forge()
    seq = tape.llm("Hello?", Reply(text="Hello there, you."))
    tape.end()
    story = told(tape)
    (call,) = story.calls()
    whole = item_at(story, f"{tape.pid}:{seq}")
    as_call = call_json(story, call)
    assert whole is not None
    assert {name: as_call[name] for name in whole} == whole
    assert as_call.keys() - whole.keys() == {"chunks", "children"}
    (node,) = story_json(story)["tree"]
    assert {name: whole[name] for name in node if name != "children"} == {
        name: node[name] for name in node if name != "children"
    }


def test_the_page_has_the_run_as_the_commands_have_it(forge, told):
    tape = forge()
    tape.call("tool", "slow", {"arguments": {}})
    tape.end()
    story = told(tape)
    page, run = outline(story), run_json(story)
    beside = {name: page[name] for name in ("totals", "failure", "last_seam", "damage")}
    assert {**page["run"], **beside}.items() >= {
        (name): run[name] for name in run if name not in ("in_flight", "failed_turn")
    }.items()
    assert (run["in_flight"], page["in_flight"]) == ([1], [story.calls()[0].ref])
