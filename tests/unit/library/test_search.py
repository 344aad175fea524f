import json

import pytest

from playhead import clock
from playhead.errors import UsageError
from playhead.library.annotate import change_tags, remove, rename, set_keep, set_note, set_tags
from playhead.library.library_json import found_json, page_json
from playhead.library.search import SORTS, Search, one, query
from playhead.testing import Reply, Usage

pytestmark = pytest.mark.usefixtures("wherever")

DAY = 86_400_000_000_000


def ids(store, **wanted):
    return [found.entry.id for found in query(store, Search(**wanted)).rows]


@pytest.fixture
def three(forge):
    """A cheap one that went well, a dear one that failed on a tool, one without a model."""
    now = clock.wall_ns()
    cheap = forge("cheap", started=now - 3 * DAY, tags={"env": "ci"}, name="alpha")
    cheap.llm("Where is parcel seven?", Reply(text="On its way.", usage=Usage(input=10, output=1)))
    cheap.end()
    dear = forge("dear", started=now - 2 * DAY, tags={"env": "prod"}, name="beta")
    usage = Usage(input=100_000, output=9_000)
    dear.llm("Refund order 7", Reply(text="I try.", usage=usage))
    dear.tool("issue_refund", {"order": 7}, error=ValueError("rate limit reached"))
    dear.end("failed", ValueError("no refund"))
    plain = forge("plain", started=now - DAY, name="gamma_x", project="/srv/else")
    plain.tool("lookup", {"n": 1}, value="parcel eight")
    plain.end()


def test_everything_is_found_newest_first(three, store):
    page = query(store, Search())
    assert [found.entry.id for found in page.rows] == ["plain", "dear", "cheap"]
    assert (page.total, page.next) == (3, None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"text": "parcel"}, ["plain", "cheap"]),
        ({"text": "parcel", "scope": "prompt"}, ["cheap"]),
        ({"text": "way", "scope": "response"}, ["cheap"]),
        ({"text": '"rate limit"', "scope": "error"}, ["dear"]),
        ({"text": "eight", "scope": "tool"}, ["plain"]),
        ({"text": "beta", "scope": "about"}, ["dear"]),
        ({"text": "parcel", "statuses": frozenset({"failed"})}, []),
        ({"statuses": frozenset({"failed", "interrupted"})}, ["dear"]),
        ({"models": ("claude-*",)}, ["dear", "cheap"]),
        ({"models": ("gpt-*",)}, []),
        ({"tools": ("issue_refund",)}, ["dear"]),
        ({"tags": (("env", None),)}, ["dear", "cheap"]),
        ({"tags": (("env", "ci"),)}, ["cheap"]),
        ({"name": "gamma_*"}, ["plain"]),
        ({"name": "gammaX?"}, []),
        ({"name": "alpha"}, ["cheap"]),
        ({"project": "/srv/else"}, ["plain"]),
        ({"min_cost": 0.1}, ["dear"]),
        ({"max_cost": 0.1}, ["cheap"]),
    ],
)
def test_a_filter_leaves_what_fits(three, store, wanted, found):
    assert ids(store, **wanted) == found
    assert query(store, Search(**wanted)).total == len(found)


def test_moments_cut_off_what_is_older_and_younger(three, store):
    now = clock.wall_ns()
    assert ids(store, since_ns=now - 5 * DAY // 2) == ["plain", "dear"]
    assert ids(store, until_ns=now - 5 * DAY // 2) == ["cheap"]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("started", ["cheap", "dear", "plain"]),
        ("-cost", ["dear", "cheap", "plain"]),
        ("cost", ["plain", "cheap", "dear"]),
        ("-tokens", ["dear", "cheap", "plain"]),
        ("name", ["cheap", "dear", "plain"]),
        ("-name", ["plain", "dear", "cheap"]),
    ],
)
def test_runs_can_be_sorted_by_what_is_known_of_them(three, store, sort, order):
    assert ids(store, sort=sort) == order


@pytest.mark.parametrize("sort", [*SORTS, *(f"-{one}" for one in SORTS)])
def test_pages_show_every_run_once_also_where_runs_tie(forge, store, sort):
    for number in range(7):
        forge(f"run{number}", name=f"n{number % 2}").end()
    seen, cursor = [], None
    while True:
        page = query(store, Search(sort=sort, limit=3, cursor=cursor))
        seen += [found.entry.id for found in page.rows]
        cursor = page.next
        if cursor is None:
            break
    assert sorted(seen) == [f"run{number}" for number in range(7)]
    assert page.total == 7


def test_a_run_that_comes_between_two_pages_doubles_and_hides_none(forge, store):
    now = clock.wall_ns()
    for number in range(4):
        forge(f"run{number}", started=now + number).end()
    first = query(store, Search(limit=2))
    forge("newest", started=now + 9).end()
    second = query(store, Search(limit=2, cursor=first.next))
    assert [found.entry.id for found in second.rows] == ["run1", "run0"]


@pytest.mark.parametrize("cursor", ["", "x", "!!", "WzEsMiwzXQ", "é", "W10"])
def test_a_cursor_that_is_none_is_a_usage_error(three, store, cursor):
    with pytest.raises(UsageError, match="is not a cursor"):
        query(store, Search(cursor=cursor))


def test_a_cursor_of_another_order_is_a_usage_error(three, store):
    cursor = query(store, Search(limit=1)).next
    with pytest.raises(UsageError, match="is not a cursor"):
        query(store, Search(limit=1, sort="name", cursor=cursor))


@pytest.mark.parametrize("wanted", [{"sort": "mood"}, {"sort": "--name"}, {"text": "(("}])
def test_what_cannot_be_asked_is_a_usage_error(three, store, wanted):
    with pytest.raises(UsageError):
        query(store, Search(**wanted))


@pytest.mark.parametrize("typed", ["' OR 1=1 --", "%", "_", "\\", "x'); DROP TABLE runs; --"])
def test_what_people_type_is_never_part_of_a_statement(three, store, typed):
    for wanted in (
        {"name": typed},
        {"name": f"*{typed}*"},
        {"models": (typed,)},
        {"project": typed},
    ):
        found = ids(store, **wanted)
        assert found == (["plain"] if wanted == {"name": "*_*"} else [])
    assert len(ids(store, tags=((typed, typed),))) == 0
    assert len(ids(store)) == 3


def test_a_row_says_what_was_asked_who_answered_and_what_it_cost(three, store):
    row = found_json(one(store, "dear"))
    assert row["models"] == ["claude-sonnet-4-5"]
    assert row["tools"] == ["issue_refund"]
    assert (row["llm_calls"], row["tool_calls"], row["failed_calls"]) == (1, 1, 1)
    assert row["tokens"] == 109_000
    assert row["cost_usd"] == pytest.approx(0.435)
    assert row["failure"] == "ValueError: no refund"
    assert row["tags"] == {"env": "prod"}


def test_a_hit_is_told_with_the_words_around_it(three, store):
    (row,) = page_json(query(store, Search(text="rate limit")))["runs"]
    (said,) = row["snippets"]
    assert said["in"] == "error"
    assert [said["text"][start:end] for start, end in said["hits"]] == ["rate", "limit"]


def test_an_unknown_run_is_none_and_an_empty_store_has_none(three, store, tmp_path):
    assert one(store, "nobody") is None
    assert one(tmp_path / "nowhere", "x") is None
    assert query(tmp_path / "nowhere", Search()).total == 0
    assert not (tmp_path / "nowhere").exists()


def test_a_live_run_is_found_by_what_it_has_just_said(forge, store):
    tape = forge("alive", pid=clock.pid())
    assert ids(store, text="pelican") == []
    tape.tool("find", {"bird": "pelican"})
    assert ids(store, text="pelican") == ["alive"]
    assert one(store, "alive").summary.calls == 1
    assert ids(store, statuses=frozenset({"running"})) == ["alive"]


def test_a_run_that_ended_or_went_is_seen_on_the_next_look(forge, store):
    tape = forge("run", pid=clock.pid())
    assert ids(store, statuses=frozenset({"running"})) == ["run"]
    tape.end("failed", ValueError("no"))
    assert ids(store, statuses=frozenset({"failed"})) == ["run"]
    remove(store, "run")
    assert ids(store) == []
    assert ids(store, text="refund") == []


def test_what_is_said_about_a_run_is_found(three, store):
    ids(store, text="parcel")
    rename(store, "cheap", "delta")
    set_note(store, "cheap", "An albatross was seen.")
    set_tags(store, "cheap", {"bird": "albatross"})
    set_keep(store, "cheap", True)
    assert ids(store, name="delta") == ["cheap"]
    assert ids(store, tags=(("bird", "albatross"),)) == ["cheap"]
    assert ids(store, tags=(("env", "ci"),)) == []
    assert ids(store, text="albatross seen", scope="about") == ["cheap"]
    row = found_json(one(store, "cheap"))
    assert (row["kept"], row["note"]) == (True, "An albatross was seen.")


def test_hostile_names_and_texts_are_held_as_they_can_be(forge, store):
    tape = forge("run", name="a\x1b[31m")
    tape.tool("find", {"n": "pe\x02li\x03can"}, value="\x00 owl")
    path = tape.end()
    half = json.dumps({**json.loads((path / "manifest.json").read_text()), "name": "a\ud800b"})
    (path / "manifest.json").write_text(half)
    change_tags(path, {"x": "é" * 200})
    assert ids(store, text="owl") == ["run"]
    assert ids(store, text="owl", tools=("find*",)) == ["run"]


def test_runs_that_began_at_the_same_moment_are_two(forge, store):
    for name in ("a", "b", "c"):
        forge(name, started=5).end()
    assert ids(store) == ["c", "b", "a"]
    assert ids(store, text="refund-agent") == ["c", "b", "a"]


@pytest.mark.parametrize(
    "wanted",
    [
        {"name": "\ud800*"},
        {"project": "\ud800"},
        {"tags": (("\ud800", "\ud800"),)},
        {"models": ("\ud800",)},
        {"text": "\ud800 nobody"},
        {"text": "word " * 5000},
        {"since_ns": 10**30},
        {"until_ns": -(10**30)},
        {"min_cost": float("nan")},
        {"max_cost": float("-inf")},
        {"limit": 10**12, "name": "nobody"},
        {"limit": -1, "name": "nobody"},
    ],
)
def test_what_no_run_can_be_finds_none(three, store, wanted):
    assert ids(store, **wanted) == []
    assert one(store, "\ud800") is None


def test_numbers_that_no_database_can_hold_are_held_as_the_largest(forge, store):
    tape = forge("run")
    tape.llm("hello", Reply(text="hi", usage=Usage(input=10**30, output=1)))
    path = tape.end()
    huge = json.loads((path / "manifest.json").read_text()) | {
        "duration_s": 10**400,
        "started_ns": 10**40,
    }
    (path / "manifest.json").write_text(json.dumps(huge))
    assert ids(store, sort="-tokens") == ["run"]
    assert ids(store, text="hello") == ["run"]
