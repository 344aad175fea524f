"""What PostgreSQL does in another way than SQLite, and must not."""

import gc
import json
import threading

import pytest
from sqlalchemy import func, select

from playhead.errors import StoreError
from playhead.library import engine
from playhead.library.database import FILE
from playhead.library.engine import runs
from playhead.library.indexing import reindex, update
from playhead.library.library_json import page_json, stats_json
from playhead.library.postgres import PostgresDatabase
from playhead.library.search import Search, query
from playhead.library.stats import stats
from playhead.testing import Reply, Usage


def ids(store, **wanted):
    return sorted(found.entry.id for found in query(store, Search(**wanted)).rows)


@pytest.fixture
def said(forge):
    """Runs whose tools said this."""
    for run, text in {
        "apart": "the rate of the limit",
        "together": "Café: rate limit, it's 5% of /srv/ordersystem",
    }.items():
        tape = forge(run)
        tape.tool("speak", {}, value=text)
        tape.end()


def test_the_catalogue_is_on_the_server_and_in_no_file(said, store, postgres):
    assert ids(store) == ["apart", "together"]
    with postgres.reading() as connection:
        assert connection.execute(select(func.count()).select_from(runs)).scalar_one() == 2
    assert not (store / FILE).exists()


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("rate limit", ["apart", "together"]),
        ('"rate limit"', ["together"]),
        ("RATE", ["apart", "together"]),
        ("cafe", ["together"]),
        ("CAFÉ", ["together"]),
        ("lim*", ["apart", "together"]),
        ("lim", []),
        ("order*", ["together"]),
        ("it's 5%", ["together"]),
        ("rate_limit", ["together"]),
        ("srv/ordersystem", ["together"]),
        ("rate:* & limit", ["apart", "together"]),
        ("rate | nothing", []),
        ("!rate", ["apart", "together"]),
        ("a'b\"c", []),
        ("'; DROP TABLE runs; --", []),
    ],
)
@pytest.mark.usefixtures("wherever")
def test_words_mean_the_same_everywhere(said, store, typed, found):
    assert ids(store, text=typed, scope="tool") == found
    assert ids(store, text=typed) == found


@pytest.mark.usefixtures("wherever")
def test_a_hit_is_shown_with_the_words_around_it_everywhere(said, store):
    (found,) = query(store, Search(text='"rate limit" order*')).rows
    (snippet,) = found.snippets
    shown = [snippet.text[start:end] for start, end in snippet.hits]
    assert (snippet.scope, shown) == ("tool", ["rate limit", "ordersystem"])


@pytest.mark.usefixtures("wherever")
def test_a_wildcard_takes_large_letters_for_small_ones_everywhere(forge, store):
    forge("one", name="Refund-Agent").end()
    assert ids(store, name="refund-*") == ["one"]
    assert ids(store, name="refund-agent") == []


@pytest.mark.usefixtures("wherever")
def test_names_are_sorted_by_their_letters_and_not_by_a_language(forge, store):
    for number, name in enumerate(("b", "A", "a", "_", "ä", "B")):
        forge(f"run{number}", name=name).end()
    page = query(store, Search(sort="name"))
    assert [found.entry.manifest.name for found in page.rows] == ["A", "B", "_", "a", "b", "ä"]


@pytest.mark.usefixtures("wherever")
def test_a_character_that_a_server_cannot_hold_is_replaced(forge, store):
    tape = forge("nul", name="a\0b", tags={"k\0": "v\0"})
    tape.tool("too\0l", {"x": "y\0"}, value="z\0 word")
    tape.end()
    assert ids(store, text="word") == ["nul"]
    assert ids(store, name="a*b", tags=(("k\0", None),)) == ["nul"]
    assert ids(store, tools=("too*l",)) == ["nul"]


@pytest.mark.usefixtures("wherever")
def test_sums_are_whole_numbers_and_fit_for_json(forge, store):
    for run in ("one", "two"):
        tape = forge(run)
        tape.llm("a", Reply(text="x", usage=Usage(input=1000, output=10)))
        tape.end()
    told = stats_json(stats(store, by="model"))
    assert json.loads(json.dumps(told))["groups"][0]["tokens"] == 2020
    assert json.loads(json.dumps(stats_json(stats(store, by="day"))))["total"]["tokens"] == 2020
    assert json.dumps(page_json(query(store, Search(sort="-cost"))))


@pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning")
def test_writers_take_their_turn(said, store, postgres):
    """Two that make the catalogue anew, each with connections of its own."""
    other = PostgresDatabase(store, postgres.url)
    failed = []

    def work() -> None:
        try:
            reindex(store)
        except StoreError as error:
            failed.append(error)

    threads = [threading.Thread(target=work)]
    threads[0].start()
    engine.use(store, other)
    threads.append(threading.Thread(target=work))
    threads[1].start()
    for thread in threads:
        thread.join(60)
    other.close()
    engine.use(store, postgres)
    update(store)
    # `use` closes idle connections only: one that the first thread held is left to the garbage collector.
    gc.collect()
    assert failed == []
    assert ids(store, text="rate") == ["apart", "together"]


def test_tables_that_are_gone_come_back(said, store, postgres):
    update(store)
    with postgres.writing() as connection:
        connection.exec_driver_sql("DROP TABLE calls, texts")
    assert ids(store, text="rate") == ["apart", "together"]
