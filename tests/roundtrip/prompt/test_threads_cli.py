"""A replay leaves the threads of the agent alone: a LangGraph agent with a SQLite checkpointer."""

import sqlite3
import sys
from pathlib import Path

import pytest

from playhead.testing import Reply, ScriptedLLM, ToolCall

PROGRAM = Path(__file__).parent / "programs" / "thread_agent.py"
LOOK = Reply(text="Let me look.", tool_calls=[ToolCall(name="lookup", arguments={"order": "A-17"})])


def record(studio, database, question, replies):
    command = [sys.executable, str(PROGRAM), str(database), "user-1", question]
    words = ["record", "--store", str(studio.store), "--no-seal", "--", *command]
    with ScriptedLLM(replies) as llm:
        done = studio._run(words, llm.environ())
    assert done.returncode == 0, done.stderr
    return done.stdout


def threads(database):
    """Every checkpoint and write of every thread, and the files of the database."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        checkpoints = connection.execute("SELECT * FROM checkpoints").fetchall()
        writes = connection.execute("SELECT * FROM writes").fetchall()
    connection.close()
    beside = sorted(path.name for path in database.parent.glob(f"{database.name}*"))
    return checkpoints, writes, beside, database.read_bytes()


def rude(studio, *words):
    """Replay the last run with another prompt and a live model."""
    prompt = studio.folder.parent / "rude.txt"
    prompt.write_text("Be rude.")
    return studio.play(
        "replay", "--live", "llm", "--system-file", str(prompt), *words,
        replies=[Reply(text="Whatever.")],
    )  # fmt: skip


@pytest.mark.timeout(600)
def test_a_replay_leaves_no_trace_in_a_thread_of_the_project(studio):
    database = studio.folder / "threads.db"
    first = record(studio, database, "Where is A-17?", [LOOK, Reply(text="It has shipped.")])
    assert first == "4 It has shipped.\n"
    # The run to replay continues the thread: it finds four messages and adds two.
    second = record(studio, database, "Thanks!", [Reply(text="You are welcome.")])
    assert second == "6 You are welcome.\n"
    before = threads(database)
    done = studio.play("replay")
    assert (done.returncode, done.stdout) == (0, second), done.stderr
    assert "identical" in done.stderr
    assert threads(database) == before
    for words in (["--no-persist"], []):
        done = rude(studio, *words)
        assert (done.returncode, done.stdout) == (0, "6 Whatever.\n"), done.stderr
        # The live model saw the thread of then, not one that an earlier replay had left.
        assert [len(one.json["messages"]) for one in studio.requests] == [5]
        assert threads(database) == before
    assert len(studio.runs) == 2 + 2


@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", ["outside", "ignored"])
def test_a_replay_leaves_no_trace_in_a_thread_elsewhere(studio, tmp_path_factory, place):
    if place == "outside":
        database = tmp_path_factory.mktemp("home") / "threads.db"
    else:
        (studio.folder / ".git").mkdir()
        (studio.folder / ".gitignore").write_text("data/\nstore/\n")
        (studio.folder / "data").mkdir()
        database = studio.folder / "data" / "threads.db"
    record(studio, database, "Thanks!", [Reply(text="You are welcome.")])
    before = threads(database)
    done = rude(studio)
    assert (done.returncode, done.stdout) == (0, "2 Whatever.\n"), done.stderr
    assert threads(database) == before
