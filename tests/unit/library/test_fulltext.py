import sqlite3

import pytest

from playhead.library.fulltext import BEGIN, END, SCOPES, TABLE, question, snippets


@pytest.fixture
def texts():
    db = sqlite3.connect(":memory:")
    db.execute(TABLE)
    db.execute("INSERT INTO texts (rowid, prompt, error) VALUES (1, 'the rate of the limit', '')")
    db.execute(
        "INSERT INTO texts (rowid, prompt, error) VALUES (2, 'Café', 'rate limit: it''s 5%')"
    )
    yield db
    db.close()


def found(db, typed, scope=None):
    ask = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid"
    return [row for (row,) in db.execute(ask, (question(typed, scope),))]


@pytest.mark.parametrize(
    ("typed", "runs"),
    [
        ("rate limit", [1, 2]),
        ('"rate limit"', [2]),
        ('"rate limit', [2]),
        ("RATE", [1, 2]),
        ("cafe", [2]),
        ("lim*", [1, 2]),
        ("lim", []),
        ('"rate lim*"', []),
        ("it's 5%", [2]),
        ("rate_limit", [2]),
    ],
)
def test_words_have_to_be_there_and_words_in_quotes_side_by_side(texts, typed, runs):
    assert found(texts, typed) == runs


@pytest.mark.parametrize(
    "typed",
    ["AND", "rate AND", "NOT rate", "NEAR(rate", "prompt:rate", "^rate", "rate) OR (x", "a'b\"c",
     "{prompt}: x", '"', '""rate', "*rate", "-rate", "rate + limit", "a\0b", "'; DROP TABLE texts; --"],
)  # fmt: skip
def test_nothing_that_people_type_is_an_operator_or_an_error(texts, typed):
    asked = question(typed)
    if asked is not None:
        texts.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (asked,)).fetchall()
    assert texts.execute("SELECT count(*) FROM texts").fetchone() == (2,)


@pytest.mark.parametrize("typed", ["", "  ", '""', "( ) *", "---"])
def test_what_has_no_word_in_it_is_no_question(typed):
    assert question(typed) is None


def test_a_scope_leaves_out_what_stands_elsewhere(texts):
    assert found(texts, "rate", "error") == [2]
    assert found(texts, "rate limit", "prompt") == [1]


def test_a_snippet_says_where_the_words_are_in_it():
    said = f"over the {BEGIN}rate{END}\n  {BEGIN}limit{END} again"
    (one,) = snippets(tuple(said if scope == "error" else "nothing" for scope in SCOPES))
    assert one.scope == "error"
    assert one.text == "over the rate limit again"
    assert [one.text[start:end] for start, end in one.hits] == ["rate", "limit"]


def marked(text, *words):
    for word in words:
        text = text.replace(word, f"{BEGIN}{word}{END}")
    return tuple(text if scope == "tool" else None for scope in SCOPES)


def test_a_snippet_shows_the_stretch_in_which_most_of_the_words_stand():
    text = (
        "rate of one thing. " + "filler words " * 100 + "the rate limit was met. " + "more " * 100
    )
    (one,) = snippets(marked(text, "rate", "limit"))
    assert "rate limit was met" in one.text
    assert one.text.startswith("…")
    assert one.text.endswith("…")
    assert len(one.text) < 260
    assert [one.text[start:end] for start, end in one.hits] == ["rate", "limit"]


@pytest.mark.parametrize(
    "text", ["x" * 5000 + "rate" + "y" * 5000, "rate", "rate " * 9000, " rate\n"]
)
def test_a_snippet_of_an_odd_text_is_short_and_has_the_word(text):
    (one,) = snippets(marked(text, "rate"))
    assert {one.text[start:end] for start, end in one.hits} == {"rate"}
    assert len(one.text) < 400
    assert BEGIN not in one.text
    assert END not in one.text
