"""A run as text: its head, and its tree."""

import dataclasses

from playhead.story import tell
from playhead.story.shape import Failure
from playhead.tape.reader import Tape
from playhead.views.text.story import head_of, place_of
from playhead.views.text.tree import details, tree_lines


def test_the_place_of_a_failure_is_relative_to_the_folder_of_the_run():
    lines = ("/srv/shop/agent.py:9 main", "/srv/shop/tools/weather.py:6 weather")
    failure = Failure(type="RuntimeError", message="down", traceback=lines)
    assert place_of(failure, "/srv/shop") == "tools/weather.py:6 weather"
    assert place_of(failure, "") == "/srv/shop/tools/weather.py:6 weather"


def test_the_time_before_the_first_call_has_a_line_of_its_own_where_the_first_is_too_narrow(forge):
    tape = forge()
    tape.tool("lookup_order", {}, value=1, took=0.5)
    tape.end()
    story = dataclasses.replace(
        tell(Tape(tape.path)), start_up_ns=25_000_000_000, duration_ns=29_600_000_000
    )
    said = "25.0 s before its first call"
    wide = [line.plain for line in head_of(story, 120)]
    narrow = [line.plain for line in head_of(story, 80)]
    assert wide[0].endswith(f"({said})")
    assert narrow[0].endswith("ok after 29.6 s")
    assert narrow[1] == f"  {said}"


def test_output_is_joined_into_lines_and_hooks_are_left_out(forge):
    tape = forge()
    tape.event("hook", {"boundary": "process", "library": "os"})
    for text in ("I am ", "sorry", " to hear that.\nLet me ", "look.\n"):
        tape.event("output", {"stream": "stdout", "text": text})
    tape.event("output", {"stream": "stderr", "text": "one warning\n"})
    tape.event("output", {"stream": "stdout", "text": "\n"})
    tape.end()
    lines = list(tree_lines(tell(Tape(tape.path)), output=True))
    shown = [(one.item.data["stream"], one.item.data["text"]) for one in lines if one.item]
    assert shown == [
        ("stdout", "I am sorry to hear that.\nLet me look.\n"),
        ("stderr", "one warning\n"),
    ]
    assert [text.plain for text in details(lines[0].item, 60)] == ["Let me look."]
