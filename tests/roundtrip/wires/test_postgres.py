"""Clients on libpq: every statement is on the tape, and comes back without the server."""

import psycopg
import pytest
from tests import postgres_server

SYNC = """
import sys, psycopg
with psycopg.connect(sys.argv[1]) as c:
    c.add_notice_handler(lambda notice: print("notice", notice.message_primary))
    print(c.info.host, c.info.dbname)
    c.execute("create table if not exists t (id serial primary key, w text, at timestamptz default now())")
    with c.cursor() as cur:
        cur.executemany("insert into t (w) values (%s)", [("a",), ("b",), ("é",)])
        print(cur.execute("select id, w, at from t order by id desc limit 3").fetchall())
        cur.execute("do $$ begin raise notice 'hello'; end $$")
        with cur.copy("copy t (w) from stdin") as copy:
            for word in "xyz":
                copy.write_row((word,))
        with cur.copy("copy (select repeat(w, 100000) from t order by id desc limit 9) to stdout") as copy:
            print([len(row[0]) for row in copy.rows()])
    with c.cursor("srv") as cur:
        cur.execute("select w from t order by id desc limit 10")
        print(cur.fetchone(), cur.fetchmany(2), len(cur.fetchall()))
    try:
        with c.transaction():
            c.execute("select * from nowhere")
    except psycopg.errors.UndefinedTable as error:
        print(error.sqlstate, error.diag.message_primary)
    with c.pipeline():
        first, second = c.execute("select 1"), c.execute("select %s::int + 1", (41,))
    print(first.fetchone(), second.fetchone())
    print([c.execute("select %s::int", (n,), binary=True).fetchone() for n in range(7)])
try:
    psycopg.connect("host=127.0.0.1 port=1 user=x")
except psycopg.OperationalError as error:
    print(error)
"""
ASYNC = """
import asyncio, sys, psycopg
async def one(n):
    async with await psycopg.AsyncConnection.connect(sys.argv[1], autocommit=True) as c:
        await c.execute("insert into t (w) values (%s)", (f"w{n}",))
        cur = await c.execute("select count(*) from t, pg_sleep(%s)", (n * 0.02,))
        print(n, await cur.fetchone())
        async with c.cursor() as cur:
            async for row in cur.stream("select generate_series(1,3)"):
                print(n, row)
async def main():
    c = await psycopg.AsyncConnection.connect(sys.argv[1], autocommit=True)
    await c.execute("create table if not exists t (id serial primary key, w text)")
    await asyncio.gather(*[one(n) for n in (3, 1, 2)])
    try:
        await asyncio.wait_for(c.execute("select pg_sleep(9)"), 0.1)
    except asyncio.TimeoutError:
        print("timeout")
    await c.execute("listen ch")
    await c.execute("notify ch, 'hello'")
    async for note in c.notifies(timeout=5, stop_after=1):
        print(note.channel, note.payload)
    await c.close()
asyncio.run(main())
"""
PSYCOPG2 = """
import io, sys, psycopg2, psycopg2.extras
from sqlalchemy import create_engine, text
c = psycopg2.connect(sys.argv[1])
with c, c.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cur:
    cur.execute("create table if not exists t (id serial primary key, w text)")
    cur.execute("insert into t (w) values (%s) returning w", ("two",))
    print(cur.fetchone())
    cur.execute("do $$ begin raise notice 'hello'; end $$")
    cur.copy_expert("copy t (w) from stdin", io.StringIO("c1\\nc2\\n"))
    out = io.StringIO()
    cur.copy_expert("copy (select w from t order by id desc limit 2) to stdout", out)
    print(c.notices, out.getvalue())
with c.cursor("srv") as cur:
    cur.itersize = 2
    cur.execute("select w from t order by id desc limit 5")
    print(list(cur))
try:
    with c, c.cursor() as cur:
        cur.execute("select * from nowhere")
except psycopg2.errors.UndefinedTable as error:
    print(error.pgcode, error.diag.message_primary)
c.close()
for driver in ("psycopg", "psycopg2"):
    engine = create_engine(f"postgresql+{driver}://playhead@/postgres?host={sys.argv[2]}&port={sys.argv[3]}")
    with engine.begin() as c:
        print(c.execute(text("insert into t (w) values (:w) returning w"), {"w": "three"}).all())
    with engine.connect().execution_options(stream_results=True) as c:
        print(c.execute(text("select generate_series(1,5)")).fetchmany(2))
    engine.dispose()
"""
CHECKPOINTS = """
import operator, sys
from typing import Annotated, TypedDict
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
class State(TypedDict):
    words: Annotated[list, operator.add]
graph = StateGraph(State)
graph.add_node("a", lambda state: {"words": ["a"]})
graph.add_edge(START, "a")
graph.add_edge("a", END)
with PostgresSaver.from_conn_string(sys.argv[1]) as saver:
    saver.setup()
    app = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "one"}}
    print(app.invoke({"words": ["hi"]}, config))
    print(app.invoke({"words": ["again"]}, config))
    print(len(list(app.get_state_history(config))))
"""


@pytest.fixture(scope="module")
def server():
    with postgres_server.running(on_tcp=True) as (folder, port):
        yield folder, port


@pytest.fixture
def tcp(server):
    return f"host=127.0.0.1 port={server[1]} user=playhead dbname=postgres"


@pytest.fixture
def counted(server):
    """The number of rows and of transactions of the server, past every hook."""

    def count(table="t"):
        where = f"host={server[0]} port={server[1]} user=playhead dbname=postgres"
        with psycopg.connect(where, autocommit=True) as c:
            return c.execute(f"select count(*) from {table}").fetchone()[0]

    return count


@pytest.mark.parametrize("implementation", ["binary", "python"])
def test_statements_of_psycopg_come_back_and_insert_nothing(play, tcp, counted, implementation):
    taken = play.record(SYNC, tcp, PSYCOPG_IMPL=implementation)
    before = counted()
    play.assert_identical(taken, PSYCOPG_IMPL=implementation)
    assert counted() == before >= 6
    play.edit('("b",)', '("changed",)')
    again = play.replay("--in-place", PSYCOPG_IMPL=implementation)
    assert again.returncode == 3
    assert "changed" in again.stderr.partition("2. ")[0]  # the cause comes first
    assert counted() == before


def test_concurrent_statements_timeouts_and_notifications_of_async_psycopg_come_back(
    play, tcp, counted
):
    taken = play.record(ASYNC, tcp)
    assert "timeout\nch hello\n" in taken.stdout
    before = counted()
    play.assert_identical(taken)
    assert counted() == before


def test_psycopg2_and_sqlalchemy_come_back_over_tcp_and_unix_sockets(play, server, tcp, counted):
    taken = play.record(PSYCOPG2, tcp, *server)
    before = counted()
    play.assert_identical(taken)
    assert counted() == before


def test_checkpoints_of_langgraph_come_back_and_insert_nothing(play, server, counted):
    taken = play.record(CHECKPOINTS, f"postgresql://playhead@127.0.0.1:{server[1]}/postgres")
    before = counted("checkpoints")
    play.assert_identical(taken)
    assert counted("checkpoints") == before >= 6
