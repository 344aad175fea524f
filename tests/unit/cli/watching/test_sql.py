"""`playhead sql` and `export --parquet`: the figures of all runs, and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.analytics.duck import ask_parquet, write_parquet
from playhead.analytics.tape_tables import tape_rows
from playhead.library.annotate import set_note
from playhead.library.engine import database_of
from playhead.library.indexing import update
from playhead.story import Prices
from playhead.testing import Reply, Usage

DAY = 86_400_000_000_000
NOON = 1_794_571_200_000_000_000  # 2026-11-13 12:00 UTC


@pytest.fixture
def three(forge):
    for number, name in enumerate("aba"):
        tape = forge(f"run-{number}", name=name, tags={"env": "ci"}, started=NOON + number * DAY)
        tape.llm("hello", Reply(text="x", usage=Usage(input=1000, output=10)))
        tape.tool("look,up \"quoted\"\n'x'", {}, value="ok")
        tape.end()


@pytest.fixture
def ask(three, store, playhead):
    def run(query, *more):
        ended = playhead("sql", query, "--store", store, "--json", *more)
        assert ended.code == 0, ended.err
        return [tuple(one.values()) for one in json.loads(ended.out)]

    return run


def test_the_views_have_runs_models_tools_and_costs(ask, playhead, store):
    assert ask("select count(*), count(distinct name), sum(tokens) from runs") == [(3, 2, 3030)]
    days = ask("select day, id from runs order by day")
    assert days == [(f"2026-11-{13 + n}", f"run-{n}") for n in range(3)]
    assert ask("select distinct model from llm") == [("claude-sonnet-4-5",)]
    assert ask("select distinct tool from tools") == [("look,up \"quoted\"\n'x'",)]
    assert ask("select sum(calls), sum(failures) from tools") == [(3, 0)]
    costs = ask("select day, runs, calls, cost_usd from daily_cost order by day")
    assert [one[:3] for one in costs] == [(f"2026-11-{13 + n}", 1, 1) for n in range(3)]
    assert costs[0][3] > 0
    assert ask("select count(*) from tags where key = 'env' and value = 'ci'") == [(3,)]
    text = playhead("sql", "select id, tokens from runs order by id", "--store", store).out
    assert text.splitlines() == ["id     tokens", "run-0    1010", "run-1    1010", "run-2    1010"]
    lines = playhead("sql", "select id from runs order by 1", "--store", store, "--csv").out
    assert lines == "id\nrun-0\nrun-1\nrun-2\n"


@pytest.mark.parametrize("query", ["", " ", "-- only a comment"])
def test_an_empty_query_is_a_usage_error(three, store, playhead, query):
    ended = playhead("sql", "--store", store, "--", query)
    assert ended.code == 2
    assert "The query is empty." in ended.err


def test_parquet_files_answer_as_the_catalogue_does(ask, store, playhead, here):
    for _ in range(2):  # an earlier export is replaced
        ended = playhead("export", "--parquet", here / "stats", "--store", store)
        assert ended.code == 0, ended.err
        assert "3 runs" in ended.out
    assert sorted(one.name for one in (here / "stats" / "runs").iterdir()) == [
        f"day=2026-11-{13 + n}" for n in range(3)
    ]
    for query in (
        "select id, name, day, tokens, cost_usd from runs order by id",
        "select * from daily_cost",
        "select tool, sum(calls) from tools group by all",
        "select run, key, value from tags order by run",
    ):
        assert ask(query) == ask(query, "--parquet", str(here / "stats")), query
    assert not list((here / "stats").glob(".part*"))


def test_parquet_files_have_single_calls_turns_and_changed_files(forge, store, playhead, here):
    forge("alone").end()
    tape = forge("run", started=NOON)
    turn = tape.turn("refund", purpose="42")
    tape.llm("hello", Reply(text="x", usage=Usage(input=1000, output=10)))
    tape.tool("mail", {}, error=TimeoutError("late"))
    tape.turn_end(turn)
    tape.end()
    work = here / "work"
    work.mkdir()
    code = "open('made.txt', 'w').write('1234')"
    argv = [sys.executable, "-m", "playhead", "record", "--quiet", "--run-id", "files"]
    subprocess.run(
        [*argv, "--store", str(store), "--", sys.executable, "-c", code], cwd=work, check=True
    )
    stats = here / "stats"
    assert playhead("export", "--parquet", stats, "--store", store).code == 0

    def ask(query):
        ended = playhead("sql", query, "--parquet", stats, "--json")
        assert ended.code == 0, ended.err
        return [tuple(one.values()) for one in json.loads(ended.out)]

    calls = "select number, boundary, model, outcome, error, input_tokens from single_calls"
    model = "claude-sonnet-4-5"
    first, second = ask(f"{calls} where run = 'run' order by number")
    assert first == (1, "llm", model, "returned", None, 1000)
    assert second[1:] == ("tool", None, "raised", "TimeoutError", None)
    assert ask("select run, name, day from turns") == [("run", "refund", "2026-11-13")]
    assert ask("select run, path, change, size from files") == [("files", "made.txt", "added", 4)]
    ended = playhead("sql", "select * from turns", "--store", store)
    assert (ended.code, "`playhead sql --parquet DIR`" in ended.err) == (2, True)


def test_an_export_reads_only_tapes_that_have_changed(three, forge, store, playhead, here):
    home, read = store, []

    def rows_of(one):
        read.append(one.id)
        return tape_rows(one, home / "runs" / one.id, Prices())

    def counts():
        read.clear()
        update(home)
        return write_parquet(database_of(home), here / "stats", rows_of)

    assert (counts()["single_calls"], sorted(read)) == (6, ["run-0", "run-1", "run-2"])
    assert (counts()["single_calls"], read) == (6, [])
    tape = forge("run-3", started=NOON)
    tape.tool("later", {}, value="ok")
    tape.end()
    playhead("rm", "run-0", "--yes", "--store", store)
    set_note(home, "run-1", "changed")
    assert (counts()["single_calls"], sorted(read)) == (5, ["run-1", "run-3"])
    query = "select run, count(*) from single_calls group by all order by 1"
    assert ask_parquet(here / "stats", query).rows == [("run-1", 2), ("run-2", 2), ("run-3", 1)]


def test_a_store_without_runs_has_empty_tables(store, playhead, here, forge):
    forge("only").end()
    playhead("rm", "only", "--yes", "--store", store)
    assert playhead("export", "--parquet", here / "stats", "--store", store).code == 0
    ended = playhead("sql", "select count(*) from runs", "--parquet", here / "stats", "--json")
    assert json.loads(ended.out) == [{"count_star()": 0}]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("selec 1", "syntax error"),
        ("select * from nothing", "nothing"),
        ("copy runs to 'out.csv'", "disabled"),
        ("select * from read_csv('/etc/passwd')", "disabled"),
        ("install httpfs", "disabled"),
        ("set enable_external_access = true", "locked"),
        ("attach 'x.db'", "disabled"),
    ],
)
@pytest.mark.usefixtures("three")
def test_a_query_reads_the_tables_and_no_file(store, playhead, here, query, said):
    ended = playhead("sql", query, "--store", store)
    assert ended.code == 2
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert list(here.iterdir()) == []


def test_a_folder_with_other_files_is_left_alone(three, store, playhead, here):
    (here / "own.txt").write_text("mine")
    ended = playhead("export", "--parquet", here, "--store", store)
    assert ended.code == 2
    assert "has other files" in ended.err
    ended = playhead("sql", "select 1", "--parquet", here)
    assert "has no tables of Playhead" in ended.err
    assert "takes no RUN" in playhead("export", "run-1", "--parquet", here / "x").err
    assert [one.name for one in here.iterdir()] == ["own.txt"]


def test_the_notebook_of_the_examples_runs_on_an_export(three, store, playhead, here, capsys):
    playhead("export", "--parquet", "stats", "--store", store)
    notebook = Path(__file__).parents[4] / "examples" / "costs.ipynb"
    names = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    names["db"].close()
    printed = capsys.readouterr().out
    assert "claude-sonnet-4-5" in printed
    assert "0.0% of 2 runs failed" in printed
    assert (names["costs"][0][2], names["latency"][0][2]) == (1, 3)


def test_parquet_files_in_an_object_store_answer_as_those_on_a_disk(ask, store, playhead, tmp_path):
    url = (tmp_path / "bucket").as_uri()
    for _ in range(2):  # an earlier export is replaced
        assert playhead("export", "--parquet", url, "--store", store).code == 0
    query = "select day, id, tokens from runs order by id"
    assert ask(query, "--parquet", url) == ask(query)
    (tmp_path / "bucket" / "playhead.json").unlink()
    ended = playhead("sql", query, "--parquet", url)
    assert (ended.code, "has no tables of Playhead" in ended.err) == (2, True)
    ended = playhead("export", "--parquet", url, "--store", store)
    assert (ended.code, "has other files" in ended.err) == (2, True)
    ended = playhead("export", "--parquet", "ftp://host/x", "--store", store)
    assert (ended.code, "s3://bucket/prefix" in ended.err) == (2, True)
