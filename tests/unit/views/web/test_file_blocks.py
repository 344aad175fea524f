"""The files of a run in a page of one file."""

from tests.unit.views.web.test_page_blocks import unpacked, whole

from playhead.tape.reader import Tape
from playhead.views.web.file_blocks import file_blocks
from playhead.workspace.history import read_history


def blocks_of(tape, told, **limits):
    return file_blocks(told(tape), read_history(Tape(tape.path), tape.home), **limits)


def test_every_version_that_a_change_names_is_in_the_page(edited, told):
    blocks = blocks_of(edited, told)
    form = blocks["files"]
    texts = {}
    for name, number in form["held"].items():
        group = blocks[f"file-texts-{number}"]
        texts[name] = unpacked(group["items"][name], whole(group["texts"]))
    change = form["steps"][0]["changes"][0]
    assert texts[change["before"]["id"]]["text"] == "import os\nPORT = 8000\n\nmain()\n"
    assert texts[change["after"]["id"]]["text"] == "import os\nPORT = 9000  # <script>\n\nmain()\n"
    assert form["versions_left_out"] == 0
    assert not any(name.startswith("hash:") for name in texts)


def test_versions_beyond_the_limit_are_left_out_and_counted(edited, told):
    form = blocks_of(edited, told, most_text=100)["files"]
    whole_form = blocks_of(edited, told)["files"]
    assert 0 < len(form["held"]) < len(whole_form["held"])
    assert form["versions_left_out"] == len(whole_form["held"]) - len(form["held"])
    assert form["steps"] == whole_form["steps"]


def test_a_run_that_changed_nothing_adds_no_blocks(forge, told):
    tape = forge()
    tape.end()
    assert blocks_of(tape, told) == {}
