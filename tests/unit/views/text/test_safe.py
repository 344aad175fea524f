import json

import pytest

from playhead.views.text.safe import clean, clean_json, one_line, styled, unstyled, whole_line


@pytest.mark.parametrize(
    ("nasty", "shown"),
    [
        ("\x1b[2J", "␛[2J"),
        ("\x07", "␇"),
        ("\x7f", "␡"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("tag\U000e0041", "tag\\ue0041"),
        ("\rover", "␍over"),
    ],
)
def test_control_characters_are_shown_and_not_sent(nasty, shown):
    assert clean(nasty) == shown


def test_ordinary_text_is_left_alone():
    text = "naïve café — 日本語 👍🏽 ✓\n\tindented"
    assert clean(text) == text
    assert clean("a\r\nb") == "a\nb"


def test_one_line_is_one_line_and_no_longer_than_asked():
    assert one_line("a\n b\t c ") == "a b c"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("x" * 10_000_000, 5) == "xxxx…"
    assert one_line("  " * 1000 + "x", 5) == "…"
    assert one_line("a" + " " * 1000, 5) == "a"
    assert one_line("a" + " " * 1000 + "b", 5) == "a…"


def test_colours_and_progress_bars_are_taken_off_output():
    assert unstyled("\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain") == "red plain"
    assert unstyled("10%\r50%\r100%\ndone\r\n") == "100%\ndone\n"


def test_colours_stay_where_a_view_shows_them():
    assert (
        styled("\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b[2Kplain") == "\x1b[1;31mred\x1b[0m plain"
    )
    assert styled("\x1b[32m10%\r100%\x1b[0m\r\n") == "\x1b[32m100%\x1b[0m\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_json_that_was_cleaned_means_the_same(terminal):
    value = {"x": "\x1b[31m \u202e \x9b \U000e0041 é \u2028", "half": "\ud83d"}
    text = clean_json(json.dumps(value, ensure_ascii=False), terminal=terminal)
    assert json.loads(text) == value
    text.encode()
    if terminal:
        assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sh -c 'true # x\nevil'", "sh -c 'true # x␊evil'"),
        ("a\r\nb\tc", "a␍␊b␉c"),
        ("true" + " " * 9000 + "; evil", "true⟨9,000 blank characters⟩; evil"),
        ("true" + "\u3164\u2800\u00a0" * 300 + "; evil", "true⟨900 blank characters⟩; evil"),
        ("live\u202e txet", "live\\u202e txet"),
    ],
)
def test_a_whole_line_hides_nothing(text, shown):
    assert whole_line(text) == shown
