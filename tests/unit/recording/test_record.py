"""`record` opens a run, gives it to the program, and ends it; and never fails the program."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import playhead
from playhead.errors import TapeDamaged
from playhead.recording.runs import NO_RUN
from playhead.tape.manifest import read_manifest, status_of
from playhead.tape.reader import Tape
from playhead.tape.resume import next_seq_of


def told(path):
    tape = Tape(path)
    events = list(tape.events())
    assert list(tape.damage) == []
    return events


def kinds(path):
    return [event.kind for event in told(path)]


def runs_in(store):
    return sorted(path.name for path in (store / "runs").iterdir())


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Nothing of the user's own settings, and no project, decides what is tested here."""
    for name in ("PLAYHEAD_RECORD", "PLAYHEAD_LEVEL", "PLAYHEAD_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def program(source, *args, check=True, **env):
    argv = [sys.executable, "-c", textwrap.dedent(source), *map(str, args)]
    environment = {**os.environ, **env}
    return subprocess.run(argv, check=check, capture_output=True, text=True, env=environment)


def test_a_block_is_a_run_with_a_beginning_and_an_end(store):
    with playhead.record(name="nightly", tags={"env": "ci"}, store=store) as run:
        assert run.emit("plan", {"steps": 3}) == 2
    assert kinds(run.path) == ["segment.start", "run.start", "plan", "run.end", "segment.end"]
    manifest = read_manifest(run.path)
    assert (manifest.name, manifest.status, manifest.tags) == ("nightly", "ok", {"env": "ci"})
    assert (manifest.events, manifest.lost) == (5, 0)
    assert manifest.segments[0].events == 5
    assert manifest.duration_s > 0


def test_an_async_block_is_a_run_too(store):
    async def main():
        async with playhead.record(store=store) as run:
            run.emit("x")
            await asyncio.sleep(0)
        return run

    assert "x" in kinds(asyncio.run(main()).path)


def test_each_call_of_a_decorated_function_is_a_run_named_after_it(store):
    @playhead.record(store=store)
    def nightly(x):
        playhead.current().emit("x", x)
        return x

    assert [nightly(1), nightly(2)] == [1, 2]
    assert nightly.__name__ == "nightly"
    assert [read_manifest(store / "runs" / one).name for one in runs_in(store)] == ["nightly"] * 2


def test_a_bare_decorator_records_into_the_users_library(tmp_path):
    @playhead.record
    def nightly():
        return playhead.current().path

    path = nightly()
    assert path.is_relative_to(tmp_path / "data" / "playhead" / "runs")
    assert kinds(path)[-1] == "segment.end"


def test_a_decorated_coroutine_function_stays_one(store):
    @playhead.record(store=store)
    async def nightly(x):
        await asyncio.sleep(0)
        return x

    assert asyncio.iscoroutinefunction(nightly)
    assert asyncio.run(nightly(7)) == 7
    assert len(runs_in(store)) == 1


def test_a_decorated_generator_is_one_run_from_its_first_item_to_its_last(store):
    @playhead.record(store=store)
    def stream():
        playhead.current().emit("first")
        yield 1
        playhead.current().emit("second")
        yield 2

    items = stream()
    assert next(items) == 1
    assert playhead.current() is NO_RUN
    assert list(items) == [2]
    (name,) = runs_in(store)
    assert kinds(store / "runs" / name)[2:4] == ["first", "second"]


def test_a_run_inside_a_run_is_the_same_run_and_ends_with_the_outer_one(store):
    with playhead.record(store=store) as outer:
        with playhead.record(name="inner") as inner:
            inner.emit("inside")
        assert inner.id == outer.id
        outer.emit("after")
    assert kinds(outer.path)[2:4] == ["inside", "after"]
    assert kinds(outer.path).count("run.end") == 1


def test_a_task_that_outlives_its_run_begins_a_run_of_its_own(store):
    async def main():
        async def later(go):
            await go.wait()
            with playhead.record(name="second", store=store) as run:
                run.emit("late")
            return run

        go = asyncio.Event()
        with playhead.record(name="first", store=store):
            task = asyncio.create_task(later(go))
            await asyncio.sleep(0)
        go.set()
        return await task

    assert "late" in kinds(asyncio.run(main()).path)
    assert len(runs_in(store)) == 2


def test_one_recording_can_be_entered_by_several_tasks_and_threads(store):
    recording = playhead.record(store=store, run_id="shared")

    async def work(name, others, everybody):
        async with recording as run:
            others.append(name)
            if len(others) == 3:
                everybody.set()
            await everybody.wait()
            run.emit(name)
        return run

    async def main():
        others, everybody = [], asyncio.Event()
        return await asyncio.gather(*(work(name, others, everybody) for name in "abc"))

    for name, run in zip("abc", asyncio.run(main()), strict=True):
        assert kinds(run.path) == ["segment.start", "run.start", name, "run.end", "segment.end"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ValueError("no"), "failed", None),
        (SystemExit(3), "failed", 3),
        (SystemExit("message"), "failed", 1),
        (SystemExit(0), "ok", 0),
        (SystemExit(), "ok", 0),
        (KeyboardInterrupt(), "interrupted", None),
        (asyncio.CancelledError(), "interrupted", None),
    ],
    ids=repr,
)
def test_how_a_run_ended_is_judged_by_what_left_its_block(store, error, status, code):
    def work():
        with playhead.record(store=store, run_id="r"):
            raise error

    with pytest.raises(type(error)) as caught:
        work()
    assert caught.value is error
    manifest = read_manifest(store / "runs" / "r")
    assert (manifest.status, manifest.exit_code) == (status, code)
    end = next(event for event in told(store / "runs" / "r") if event.kind == "run.end")
    assert (end.data["status"], end.data.get("exit_code")) == (status, code)
    assert (manifest.error is None) == (status == "ok")


def test_a_run_goes_on_while_its_process_lives_and_is_interrupted_when_it_was_killed(store):
    source = """
        import os, signal, sys, playhead
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            print(os.getpid(), flush=True)
            sys.stdin.readline()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    argv = [sys.executable, "-c", textwrap.dedent(source), str(store)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        assert status_of(read_manifest(store / "runs" / "r")) == "running"
        child.communicate("\n")
    assert status_of(read_manifest(store / "runs" / "r")) == "interrupted"


def test_switched_off_nothing_is_made_and_everything_works(store, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_RECORD", "0")
    for recording in (playhead.record(store=store), playhead.record(store=store, enabled=False)):
        with recording as run:
            assert run.emit("x", object()) is None
            with run.turn("t", purpose="p", input=1) as turn:
                turn.seam("s", 1)
                turn.retrieval([])
            run.seam("s")
            run.end()
            assert (run.id, run.path, run.lost) == ("", None, 0)
    assert not store.exists()


def test_enabled_wins_over_the_variable(store, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_RECORD", "0")
    with playhead.record(store=store, enabled=True) as run:
        assert run.emit("x") == 2


def test_the_variables_say_where_and_how_much(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path / "elsewhere2"))
    monkeypatch.setenv("PLAYHEAD_LEVEL", "minimal")
    with playhead.record() as run:
        run.emit("x", {"text": "long"})
    assert run.path.parent == tmp_path / "elsewhere2" / "runs"
    assert told(run.path)[2].data is None
    assert read_manifest(run.path).level == "minimal"


def test_a_settings_file_is_used_and_arguments_win_over_it(tmp_path, monkeypatch):
    Path("playhead.toml").write_text(
        'store = "tapes"\nlevel = "standard"\nname = "from the file"\n[tags]\nteam = "a"\nenv = "dev"\n'
    )
    with playhead.record(tags={"env": "ci"}, level="full") as run:
        pass
    assert run.path.parent == Path.cwd() / "tapes" / "runs"
    manifest = read_manifest(run.path)
    assert (manifest.name, manifest.level) == ("from the file", "full")
    assert manifest.tags == {"team": "a", "env": "ci"}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('level = "loud"\n', "level is 'loud'"),
        ("level = \n", "cannot be read"),
        ('[redact]\npatterns = ["("]\n', "nothing is recorded"),
    ],
)
def test_a_broken_setting_is_said_once_and_the_program_goes_on(store, capsys, setting, said):
    Path("playhead.toml").write_text(setting)
    with playhead.record(store=store) as run:
        assert run is NO_RUN
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "wish", [{"run_id": "a/b"}, {"run_id": "last"}, {"level": "loud"}, {"tags": 7}], ids=str
)
def test_a_wish_that_cannot_be_is_said_once_and_the_program_goes_on(store, capsys, wish):
    with playhead.record(store=store, **wish) as run:
        assert run is NO_RUN
    assert "nothing is recorded" in capsys.readouterr().err


def test_a_store_that_cannot_be_is_said_once_and_the_program_goes_on(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with playhead.record(store=tmp_path / "file" / "store") as run:
        run.emit("x")
    err = capsys.readouterr().err
    assert err.startswith("playhead: nothing is recorded: The store ")
    assert err.count("\n") == 1


def test_resume_appends_to_the_run_of_that_id_and_the_sequence_goes_on(store):
    with playhead.record(store=store, run_id="r", tags={"a": "1"}) as run:
        run.emit("one")
    with playhead.record(store=store, run_id="r", resume=True, tags={"b": "2"}) as run:
        run.emit("two")
    events = told(store / "runs" / "r")
    assert [event.seq for event in events] == list(range(10))
    assert [event.kind for event in events if event.user or event.kind in ("one", "two")] == [
        "one",
        "two",
    ]
    manifest = read_manifest(store / "runs" / "r")
    assert (manifest.generation, manifest.status) == (1, "ok")
    assert manifest.tags == {"a": "1", "b": "2"}
    assert [segment.events for segment in manifest.segments] == [5, 5]
    assert [event.data["resumed"] for event in events if event.kind == "run.start"] == [False, True]


def test_resume_finds_the_newest_run_of_that_name(store):
    for number in (1, 2):
        with playhead.record(store=store, name="nightly", run_id=f"r{number}"):
            pass
    with playhead.record(store=store, name="other", run_id="r3"):
        pass
    with playhead.record(store=store, name="nightly", resume=True) as run:
        assert run.id == "r2"


def test_resume_of_nothing_begins_a_new_run(store):
    with playhead.record(store=store, run_id="new", resume=True) as run:
        run.emit("x")
    assert kinds(run.path)[0] == "segment.start"


def test_resume_after_a_kill_goes_on_after_the_last_whole_event(store):
    with playhead.record(store=store, run_id="r") as run:
        run.emit("one")
    (segment,) = run.path.glob("tape-*.jsonl")
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-20])
    assert next_seq_of(run.path) == 4
    with playhead.record(store=store, run_id="r", resume=True) as again:
        assert again.emit("two") == 6


def test_resume_of_a_run_without_a_manifest_reads_the_tape_instead(store):
    with playhead.record(store=store, run_id="r", name="nightly"):
        pass
    (store / "runs" / "r" / "manifest.json").unlink()
    with playhead.record(store=store, run_id="r", resume=True) as run:
        assert run.emit("x") == 6
    assert read_manifest(run.path).name == "nightly"


def test_force_moves_the_old_run_aside_and_deletes_nothing(store):
    for _ in range(3):
        with playhead.record(store=store, run_id="r", force=True) as run:
            run.emit("x")
        assert run.id == "r"
    names = runs_in(store)
    assert names[0] == "r"
    assert [name.partition(".old.")[0] for name in names] == ["r"] * 3
    assert all("x" in kinds(store / "runs" / name) for name in names)


def test_force_leaves_a_run_alone_that_is_still_being_recorded(store, capsys):
    with playhead.record(store=store, run_id="r") as first:
        with playhead.record(store=store, run_id="r", force=True) as second:
            second.emit("b")
        first.emit("a")
    assert (first.id, second.id) == ("r", "r-2")
    assert "is still being recorded" in capsys.readouterr().err
    assert "a" in kinds(first.path)


def test_an_id_that_is_taken_gets_a_number_and_nothing_is_overwritten(store, capsys):
    for _ in range(3):
        with playhead.record(store=store, run_id="r"):
            pass
    assert runs_in(store) == ["r", "r-2", "r-3"]
    assert "exists already; recording as r-3" in capsys.readouterr().err


def test_folders_and_files_are_for_their_owner_alone(store):
    os.umask(umask := os.umask(0))
    os.umask(0)
    try:
        with playhead.record(store=store) as run:
            run.emit("large", "x" * 100_000)
    finally:
        os.umask(umask)
    paths = [store, *store.rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()} == {0o600}
    assert run.path in paths


def test_payloads_over_64_kib_are_blobs_and_equal_ones_share_a_file(store):
    text = "wörds " * 20_000
    with playhead.record(store=store) as run:
        run.emit("a", {"text": text, "n": 1})
        run.emit("b", {"other": text})
        run.emit("c", b"\xff" * 100_000)
        run.emit("d", {"many": [{"id": n, "word": "w" * 50} for n in range(2_000)], "n": 2})
    blobs = [path for path in (run.path / "blobs").rglob("*") if path.is_file()]
    assert len(blobs) == 3
    tape = Tape(run.path)
    a, b, c, d = (tape.whole(event).data for event in tape.events() if event.kind in "abcd")
    assert (a["text"], a["n"], b["other"]) == (text, 1, text)
    assert c == {"$bytes": "////" * 33_333 + "/w=="}
    assert (len(d["many"]), d["many"][-1]["id"], d["n"]) == (2_000, 1_999, 2)
    assert all(
        len(line) < 70_000 for line in next(run.path.glob("tape-*")).read_bytes().splitlines()
    )


@pytest.mark.parametrize("level", ["minimal", "standard", "full"])
def test_a_level_decides_how_much_is_kept(store, level):
    def work():
        with playhead.record(store=store, level=level, run_id="r") as run:
            run.emit("note", {"text": "hello", "n": 3, "password": "hunter2"})
            with run.turn("respond", purpose="answer", input="question") as turn:
                turn.seam("analyse", {"intent": "x"})
                raise ValueError("because")

    with pytest.raises(ValueError, match="because"):
        work()
    by_kind = {event.kind: event.data for event in told(store / "runs" / "r")}
    note, seam, end = by_kind["note"], by_kind["seam"], by_kind["turn.end"]
    assert by_kind["segment.start"]["level"] == level
    assert seam["name"] == "analyse"
    assert seam["took_ns"] > 0
    assert end["how"] == "raised"
    if level == "minimal":
        assert note is None
        assert "value" not in seam
        assert end["error_type"] == "ValueError"
        assert "error" not in end
    elif level == "standard":
        assert note["n"] == 3
        assert set(note["text"]) == {"$hash", "size"}
        assert end["error"]["message"] == "because"
        assert set(by_kind["turn.start"]["input"]) == {"$hash", "size"}
    else:
        assert note["text"] == "hello"
        assert by_kind["turn.start"]["input"] == "question"


def test_hashes_do_not_tell_a_password(store):
    hashes = set()
    for home in ("one", "two"):  # each store has a key of its own
        with playhead.record(store=store / home, level="standard") as run:
            run.emit("x", {"password": "hunter2"})
        hashes.add(str(told(run.path)[2].data["password"]))
    assert len(hashes) == 2


def test_without_redaction_the_tape_says_so(store):
    with playhead.record(store=store, redact=False) as run:
        run.emit("x", {"password": "hunter2"})
    assert told(run.path)[2].data == {"password": "hunter2"}
    assert told(run.path)[0].data["redacted"] is False
    assert read_manifest(run.path).redacted is False


def test_a_store_inside_a_work_tree_ignores_itself(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with playhead.record(store=tmp_path / "tapes"):
        pass
    shown = subprocess.check_output(
        ["git", "-C", str(tmp_path), "status", "--porcelain"], text=True
    )
    assert "tapes" not in shown


def test_a_folder_with_the_users_own_files_is_neither_hidden_nor_locked(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    folder = tmp_path / "project"
    folder.mkdir(mode=0o755)
    (folder / "code.py").write_text("")
    with playhead.record(store=folder):
        pass
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    argv = ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"]
    shown = subprocess.check_output(argv, text=True)
    assert "project/code.py" in shown
    assert "runs" not in shown
    assert "redact.key" not in shown


def test_a_run_that_nobody_ended_ends_with_its_process(store):
    program(
        """
        import atexit, sys, playhead
        recording = playhead.record(store=sys.argv[1], run_id="r")
        run = recording.__enter__()
        atexit.register(lambda: run.emit("at the very end"))
        run.emit("x")
        """,
        store,
    )
    assert kinds(store / "runs" / "r")[2:] == ["x", "at the very end", "run.end", "segment.end"]


def test_an_event_after_the_end_is_not_written_and_nobody_is_told(store, capsys):
    with playhead.record(store=store) as run:
        run.emit("x")
    assert run.emit("late") is None
    with run.turn("late") as turn:
        turn.seam("late")
    run.end()
    assert kinds(run.path)[-2:] == ["run.end", "segment.end"]
    assert read_manifest(run.path).events == 5
    assert capsys.readouterr().err == ""


def test_a_forked_child_that_leaves_the_block_does_not_end_the_run(store):
    done = program(
        """
        import os, sys, playhead
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            child = os.fork()
            if child == 0:
                run.emit("child")
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            run.emit("parent")
        """,
        store,
    )
    assert done.stdout == "7\n"
    events = told(store / "runs" / "r")
    assert [event.kind for event in events].count("run.end") == 1
    assert read_manifest(store / "runs" / "r").status == "ok"
    parent, child = (next(e for e in events if e.kind == kind) for kind in ("parent", "child"))
    assert parent.pid != child.pid
    first = next(event for event in events if event.pid == child.pid)
    assert (first.kind, first.data["ppid"]) == ("segment.start", parent.pid)
    assert [event.kind for event in events if event.pid == child.pid][-1] == "segment.end"


def test_threads_that_start_runs_at_the_same_time_all_get_theirs(store):
    gate = threading.Barrier(8)
    found = []

    def work(number):
        gate.wait()
        with playhead.record(store=store, run_id=f"r{number}") as run:
            found.append(run.emit("x"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 8


def test_a_project_and_its_commit_are_known(tmp_path, store, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    subprocess.run(
        ["git", "-C", str(work), *identity, "commit", "-qm", "x", "--allow-empty"], check=True
    )
    (work / "sub").mkdir()
    monkeypatch.chdir(work / "sub")
    with playhead.record(store=store) as run:
        pass
    head = subprocess.check_output(["git", "-C", str(work), "rev-parse", "HEAD"], text=True).strip()
    manifest = read_manifest(run.path)
    assert (manifest.project, manifest.git_commit) == (str(work), head)
    assert manifest.cwd == str(work / "sub")


def test_a_deleted_working_folder_does_not_matter(tmp_path, store, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with playhead.record(store=store) as run:
        assert run.emit("x") == 2


def test_the_manifest_is_whole_json_at_every_moment(store):
    with playhead.record(store=store) as run:
        members = json.loads((run.path / "manifest.json").read_text())
        assert (members["status"], members["pid"]) == ("running", os.getpid())
    with pytest.raises(TapeDamaged):
        read_manifest(store)
