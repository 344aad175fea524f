"""File diffs below a call, as text."""

import pytest
from tests.unit.views.conftest import ForgedWorkspace

from playhead.story.files.file_steps import count_lines, files_of_call, patch_of
from playhead.tape.reader import Tape
from playhead.views.text.file_changes import diff_lines, print_call_files
from playhead.workspace.history import read_history


@pytest.fixture
def changes(told):
    """`changes(tape, 3)`: the history of its files, and those that call 3 changed."""

    def of(tape, number):
        history = read_history(Tape(tape.path), tape.home)
        story = told(tape)
        return history, files_of_call(story, history, story.call(number))

    return of


def test_a_diff_stands_below_its_file(edited, changes, capsys):
    print_call_files(*changes(edited, 2), full=False)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Files",
        "    M app.py +1 −1",
        "      @@ -1,4 +1,4 @@",
        "       import os",
        "      -PORT = 8000",
        "      +PORT = 9000  # <script>",
        "       ",
        "       main()",
    ]


def test_nothing_that_a_stranger_named_reaches_the_terminal(edited, changes, capsys):
    print_call_files(*changes(edited, 3), full=True)
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "A a <img src=x onerror=alert(2)>␛[31m" in text
    assert "+</script>␛[2J" in text
    assert "logo.bin binary" in text
    assert ".env not stored" in text
    assert ".git: 1 files" in text


def test_a_changed_mode_is_shown_without_a_diff(forge, changes):
    tape = forge()
    files = ForgedWorkspace(tape, run=b"x\n")
    files.change({b"run": b"x\n"}, tape.tool("chmod", {}, value=""), mode=0o100755)
    history, (one,) = changes(tape, 1)
    shown = [line.plain for line in diff_lines(history, one, most=9)]
    assert shown == ["old mode 100644", "new mode 100755"]


def test_a_long_diff_is_cut_and_says_how_much_is_missing(forge, changes):
    tape = forge()
    files = ForgedWorkspace(tape)
    files.change({b"long": b"x\n" * 100}, tape.tool("write", {}, value=""))
    history, (one,) = changes(tape, 1)
    assert [line.plain for line in diff_lines(history, one, most=3)] == [
        "@@ -0,0 +1,100 @@",
        "+x",
        "+x",
        "… 98 more lines (--full shows them)",
    ]
    assert len(list(diff_lines(history, one, most=None))) == 101


def test_a_form_feed_does_not_end_a_line(forge, changes):
    tape = forge()
    files = ForgedWorkspace(tape, page=b"one\x0ctwo\nend\n")
    files.change({b"page": b"one\x0ctwo!\nend\n"}, tape.tool("edit", {}, value=""))
    history, (one,) = changes(tape, 1)
    assert patch_of(history, one.change).split("\n")[3:] == [
        "@@ -1,2 +1,2 @@",
        "-one\x0ctwo",
        "+one\x0ctwo!",
        " end",
        "",
    ]


def test_a_file_of_many_equal_lines_is_compared_in_a_moment(forge, changes):
    tape = forge()
    files = ForgedWorkspace(tape, log=b"".join(b"x\n" if n % 2 else b"y\n" for n in range(40_000)))
    files.change({b"log": b"z\n" + b"x\ny\n" * 20_000 + b"z\n"}, tape.tool("edit", {}, value=""))
    history, (one,) = changes(tape, 1)
    lines = count_lines(history, one.change)
    assert lines.added is not None
    assert lines.removed is not None
    assert lines.added - lines.removed == 2
