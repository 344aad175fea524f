"""A replay leaves the threads of the agent alone: a LangGraph agent with a SQLite checkpointer."""

import sqlite3
import sys
from pathlib import Path

import pytest

from playhead.testing import Reply, ScriptedLLM, ToolCall

PROGRAM = Path(__file__).parent / "programs" / "thread_agent.py"
LOOK = Reply(text="Let me look.", tool_calls=[ToolCall(name="lookup", arguments={"order": "A-17"})])


def record(studio, databases, question, replies):
    command = [sys.executable, str(PROGRAM), "user-1", question, *map(str, databases)]
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
        replies=[Reply(text="Whatever.")] * 3,
    )  # fmt: skip


# One agent with three threads: the imports of LangGraph take longer than all that is tested here.
@pytest.mark.timeout(600)
def test_a_replay_leaves_no_trace_in_a_thread_of_the_project_outside_it_or_ignored_by_git(
    studio, tmp_path_factory
):
    (studio.folder / ".git").mkdir()
    (studio.folder / ".gitignore").write_text("data/\nstore/\n")
    (studio.folder / "data").mkdir()
    own, ignored = studio.folder / "threads.db", studio.folder / "data" / "threads.db"
    databases = (own, tmp_path_factory.mktemp("home") / "threads.db", ignored)
    first = record(studio, [own], "Where is A-17?", [LOOK, Reply(text="It has shipped.")])
    assert first == "4 It has shipped.\n"
    # The run to replay continues this thread: it finds four messages and adds two. The other threads are new.
    thanks = [Reply(text=f"You are {word}.") for word in ("welcome", "so welcome", "as welcome")]
    second = record(studio, databases, "Thanks!", thanks)
    assert second == "6 You are welcome.\n2 You are so welcome.\n2 You are as welcome.\n"
    before = [threads(one) for one in databases]
    done = studio.play("replay")
    assert (done.returncode, done.stdout) == (0, second), done.stderr
    assert "identical" in done.stderr
    assert [threads(one) for one in databases] == before
    for words in (["--no-persist"], []):
        done = rude(studio, *words)
        told = "6 Whatever.\n2 Whatever.\n2 Whatever.\n"
        assert (done.returncode, done.stdout) == (0, told), done.stderr
        # The live model saw the threads of then, not those that an earlier replay had left.
        assert [len(one.json["messages"]) for one in studio.requests] == [5, 1, 1]
        assert [threads(one) for one in databases] == before
    assert len(studio.runs) == 2 + 2
