"""What PostgreSQL does in another way than SQLite, and must not."""

import gc
import json
import threading
import warnings
from contextlib import suppress

import psycopg
import pytest
from sqlalchemy import func, select, text
from sqlalchemy.event import listen

from playhead.errors import StoreError
from playhead.library import engine, text_index
from playhead.library.database import FILE
from playhead.library.engine import runs
from playhead.library.fulltext import SCOPES
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
    for run, words in {
        "apart": "the rate of the limit",
        "together": "Café: rate limit, it's 5% of /srv/ordersystem",
    }.items():
        tape = forge(run)
        tape.tool("speak", {}, value=words)
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # of tests before this one, which the collection below would report here
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


def test_a_server_stops_counting_and_says_so(said, store, postgres, monkeypatch):
    assert not query(store, Search(text="rate")).has_more
    monkeypatch.setattr(PostgresDatabase, "most_counted", 1)
    for most in (text_index.MOST_COUNTED, 1):  # found by their numbers, and by the order of runs
        monkeypatch.setattr(text_index, "MOST_COUNTED", most)
        page = query(store, Search(text="rate"))
        assert (len(page.rows), page.total, page.has_more) == (2, 1, True)
        assert [one.entry.id for one in page.rows] == ["together", "apart"]
    assert query(store, Search(models=("none",))).has_more is False


def test_a_search_takes_as_many_queries_for_one_hit_as_for_many(said, store, postgres):
    asked = []
    query(store, Search(text="rate"))  # brings the catalogue up to date
    listen(postgres._engine, "before_cursor_execute", lambda *said: asked.append(said[2]))
    assert len(query(store, Search(text="rate"), updated=True, complete=False).rows) == 2
    assert len(asked) == 6


@pytest.mark.parametrize("word", ["rate", "CAFÉ", '"rate limit"', "lim*"])
def test_tables_of_version_2_find_the_same_after_their_migration(said, store, server, word):
    """That version had an index for each scope, and no column of all words."""
    schema = f"before_{abs(hash(word))}"
    old = PostgresDatabase(store, server, schema)
    engine.use(store, old)
    found = ids(store, text=word), ids(store, text=word, scope="tool"), ids(store, text="speak")
    with old.writing() as connection:
        connection.execute(text("ALTER TABLE texts DROP COLUMN lexemes"))
        connection.execute(text("UPDATE schema_version SET version = 2"))
        for scope in SCOPES:
            connection.execute(
                text(f"CREATE INDEX texts_by_{scope} ON texts USING gin ({scope}_words)")
            )
    engine.use(store, PostgresDatabase(store, server, schema))
    again = ids(store, text=word), ids(store, text=word, scope="tool"), ids(store, text="speak")
    engine.use(store, None)
    assert (again, bool(found[0])) == (found, True)


def test_a_run_with_more_words_than_a_vector_holds_is_found(forge, store, postgres):
    tape = forge("long")
    for number in range(3):
        letter = "äöü"[number]
        many = " ".join(f"{letter * 3}{at:05}" for at in range(11_000))
        tape.tool(f"read{number}", {}, value=many)
    tape.end()
    assert ids(store, text="äää00001") == ids(store, text="read0", scope="tool") == ["long"]


def test_many_readers_of_one_process_get_connections(said, store, postgres):
    """A server answers 40 people at once; the pool of SQLAlchemy has 15 connections unless told otherwise."""
    query(store, Search(text="rate"))
    together = threading.Barrier(40)
    found = []

    def read():
        with postgres.reading() as connection:
            together.wait(60)
            found.append(connection.execute(select(func.count()).select_from(runs)).scalar_one())

    readers = [threading.Thread(target=read) for _ in range(40)]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    postgres.close()
    assert found == [2] * 40


def test_a_client_waits_for_a_connection_of_a_crowded_server(said, store, postgres, server):
    """The usual server accepts 97 clients. The others get theirs when one of these leaves."""
    postgres.close()
    address = server.replace("+psycopg", "")
    held = []
    with suppress(psycopg.OperationalError):
        while True:
            held.append(psycopg.connect(address))
    with pytest.raises(psycopg.OperationalError, match=r"clients|slots"):
        psycopg.connect(address)
    found = []
    waiting = threading.Thread(target=lambda: found.append(ids(store, text="rate")))
    waiting.start()
    for one in held:
        one.close()
    waiting.join()
    assert found == [["apart", "together"]]
