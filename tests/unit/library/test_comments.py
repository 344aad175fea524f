"""Comments of people on a run: with names, kept under concurrent changes, and never from an invalid file."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from playhead.errors import RunNotFound, UsageError
from playhead.library.annotate import comment, keep_run, remove_comment, set_tags, write_note
from playhead.library.run_rows import authors_of, comments_of
from playhead.library.search import Search, query
from playhead.tape.annotations import Comment, joined
from playhead.tape.manifest import read_manifest


def said(path):
    return [(one["by"], one["text"]) for one in comments_of(read_manifest(path))]


def test_a_comment_has_a_name_and_a_time_and_is_found_by_its_words(forge, store):
    path = forge("run").end()
    made = comment(path, " The mail bounced zweimal.\n", by="Ada")
    comment(path, "Agreed.", by="Bob")
    assert said(path) == [("Ada", "The mail bounced zweimal."), ("Bob", "Agreed.")]
    assert made.at.endswith("Z")
    assert [one.entry.id for one in query(store, Search(text="zweimal")).rows] == ["run"]
    remove_comment(path, made.id)
    assert said(path) == [("Bob", "Agreed.")]
    assert "zweimal" not in (path / "marks.json").read_text()
    with pytest.raises(UsageError, match="has no comment"):
        remove_comment(path, made.id)


def test_concurrent_comments_are_all_kept_beside_other_marks(forge):
    path = forge("run").end()
    write_note(path, "a note", by="Ada")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: comment(path, f"comment {number}", by="Ada"), range(40)))
    assert sorted(text for _, text in said(path)) == sorted(
        f"comment {number}" for number in range(40)
    )
    assert read_manifest(path).extra["note"] == "a note"


def test_tags_and_notes_have_the_name_of_the_person_who_changed_them(forge, store):
    path = forge("run", tags={"env": "ci"}).end()
    set_tags(store, "run", {"env": "ci", "team": "shop"}, by="Ada")
    keep_run(path, True, by="Bob")
    authors = authors_of(read_manifest(path))
    assert {what: one["by"] for what, one in authors.items()} == {"tags.team": "Ada", "keep": "Bob"}


@pytest.mark.parametrize("text", ["", "  \n", "x" * 16_001])
def test_a_comment_without_text_or_without_end_is_refused(forge, text):
    path = forge("run").end()
    with pytest.raises(UsageError, match="needs a text"):
        comment(path, text, by="Ada")
    assert said(path) == []


def test_a_run_never_has_more_comments_than_can_be_read_again(forge):
    path = forge("run").end()
    for _ in range(65):
        comment(path, "x" * 16_000, by="Ada")
    with pytest.raises(UsageError, match="too many comments"):
        comment(path, "x" * 16_000, by="Ada")
    assert len(said(path)) == 65


def test_a_comment_on_a_deleted_run_is_an_error(tmp_path):
    with pytest.raises(RunNotFound):
        comment(tmp_path / "gone", "text", by="Ada")


def test_invalid_comments_of_another_person_are_left_out(forge):
    path = forge("run").end()
    whole = {"id": "1", "by": "Ada", "at": "2026", "text": "fine"}
    odd = [whole, {"id": 1}, None, "x", {**whole, "text": 7}, {**whole, "by": None}]
    (path / "marks.json").write_text(json.dumps({"comments": odd, "authors": {"note": [], "a": 3}}))
    assert said(path) == [("Ada", "fine")]
    assert authors_of(read_manifest(path)) == {}


def test_two_copies_join_their_comments_and_a_removed_one_stays_removed():
    def one(name, text):
        return Comment(id=name, by="Ada", at=f"2026-{name}", text=text)

    mine, theirs = (one("1", "first"), one("3", None)), (one("2", "second"), one("3", "third"))
    expected = (one("1", "first"), one("2", "second"), one("3", None))
    assert joined(mine, theirs) == joined(theirs, mine) == expected
