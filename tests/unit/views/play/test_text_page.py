import pytest
from rich.cells import cell_len
from rich.text import Text

from playhead.views.play.text_page import TextPage


def written(pieces, width=20, hang="  "):
    page = TextPage(width)
    page.begin(Text("> "), Text(hang))
    for piece in pieces:
        page.write(piece)
    return [line.plain.rstrip() for line in page.lines]


def test_lines_are_broken_between_words():
    assert written(["the quick brown fox jumps over"]) == ["> the quick brown", "  fox jumps over"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_it_does_not_matter_in_which_pieces_text_comes(size):
    text = "the quick brown fox jumps over the lazy dog, twice and twice again"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert written(pieces) == written([text])
    assert " ".join(" ".join(written(pieces)).split())[2:] == text


def test_a_word_that_is_longer_than_a_line_is_cut():
    lines = written(["x" * 50])
    assert "".join(line.lstrip("> ") for line in lines) == "x" * 50
    assert max(map(len, lines)) <= 20


def test_newlines_and_tabs_are_kept():
    assert written(["one\n\n\ttwo"]) == ["> one", "", "      two"]


def test_wide_letters_count_twice():
    lines = written(["日本語のとても長い文章です。改行される。"])
    assert all(cell_len(line) <= 20 for line in lines)
    assert (
        "".join(line.lstrip("> ") for line in lines) == "日本語のとても長い文章です。改行される。"
    )


def test_control_characters_are_shown_and_not_written():
    assert written(["a\x1b[31mb\u202ec"], width=40) == ["> a␛[31mb\\u202ec"]


def test_our_own_words_are_cut_at_the_edge():
    page = TextPage(20)
    page.begin(Text("00:00.0  "))
    page.put(Text("a name that is too long"))
    assert page.lines[-1].plain == "00:00.0  a name tha…"
    assert page.room == 0


def test_text_that_hangs_too_far_in_still_has_room():
    page = TextPage(20)
    page.begin(Text(" " * 15))
    page.write("some words that need a few lines")
    assert max(line.cell_len for line in page.lines) <= 20
