"""`playhead sql` and `export --parquet`: the figures of all runs, and nothing else."""

import json

import pytest

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
