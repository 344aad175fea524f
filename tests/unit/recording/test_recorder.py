"""Nothing that was acknowledged is lost, torn or out of order; nothing of ours reaches the host."""

import enum
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import playhead
from playhead.recording import recorder as recorder_module
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.tape.care.verify import verify
from playhead.tape.manifest import read_manifest
from playhead.tape.reader import Tape


@pytest.fixture
def run(tmp_path):
    with playhead.record(store=tmp_path / "store", name="agent", redact=False) as run:
        yield run


def told(path):
    tape = Tape(path)
    events = list(tape.events())
    assert list(tape.damage) == []
    return events


def of_users(path, kind="x"):
    return [event for event in told(path) if event.kind == kind]


def run_program(source, *args, **options):
    argv = [sys.executable, "-c", textwrap.dedent(source), *map(str, args)]
    return subprocess.run(argv, capture_output=True, text=True, check=True, **options)


def test_an_event_answers_who_what_when_where_and_why(run):
    with playhead.lane("worker-1"), run.turn("respond") as turn:
        first = run.emit("note", {"a": 1})
        run.emit("note", [2], who="planner", why="because", cause=first)
    one, two = of_users(run.path, "note")
    start = of_users(run.path, "turn.start")[0]
    assert (one.who, one.lane, one.kind, one.data) == ("agent", "worker-1", "note", {"a": 1})
    assert (one.seq, one.pid, one.thread) == (first, os.getpid(), threading.get_ident())
    assert 0 < one.wall <= two.wall
    assert 0 < one.mono <= two.mono
    assert one.at.endswith("test_an_event_answers_who_what_when_where_and_why")
    assert one.parent == two.parent == start.seq
    assert (two.who, two.why, two.cause) == ("planner", "because", first)
    assert turn.name == "respond"


def test_events_at_the_top_hang_under_the_runs_first_event(run):
    run.emit("x")
    assert of_users(run.path)[0].parent == 0


def test_a_cause_may_be_named_across_processes(run):
    run.emit("x", cause="4711:12")
    run.emit("x", cause=10**30)
    assert [event.cause for event in of_users(run.path)] == ["4711:12", str(10**30)]


class Kind(enum.Enum):
    PLAN = "plan"
    NUMBER = 3


class Unhashable(str):
    __slots__ = ()
    __hash__ = None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (Kind.PLAN, "plan"),
        (Kind.NUMBER, "Kind.NUMBER"),
        (7, "7"),
        (Unhashable("odd"), "odd"),
        ("half \ud800", "half \\ud800"),
        ("", ""),
        ("käse\n\x00", "käse\n\x00"),
        ([1], "[1]"),
    ],
    ids=ascii,
)
def test_a_kind_may_be_anything_and_is_a_text_on_the_tape(run, given, kept):
    assert run.emit(given, 1, who=given) is not None
    (event,) = (event for event in told(run.path) if event.data == 1)
    assert (event.kind, event.who) == (kept, kept)


def test_unknown_kinds_are_kept_and_ours_are_marked_as_the_users(run):
    run.emit("made.up.tomorrow", 1)
    run.emit("call", {"boundary": "none of ours"})
    strange, ours = told(run.path)[-2:]
    assert (strange.kind, strange.user, strange.ours) == ("made.up.tomorrow", False, False)
    assert (ours.kind, ours.user, ours.ours) == ("call", True, False)


def test_eight_threads_write_ten_thousand_events_each_and_all_are_there_in_order(run):
    gate = threading.Barrier(8)

    def work(number):
        gate.wait()
        return [run.emit("x", [number, i]) for i in range(10_000)]

    with ThreadPoolExecutor(8) as pool:
        seqs = list(pool.map(work, range(8)))
    events = of_users(run.path)
    assert len(events) == 80_000
    by_seq = {event.seq: event.data for event in events}
    for number, acknowledged in enumerate(seqs):
        assert acknowledged == sorted(acknowledged)
        assert [by_seq[seq] for seq in acknowledged] == [[number, i] for i in range(10_000)]
    run.end()
    assert verify(run.path).ok


def test_monotonic_time_never_goes_back_within_a_segment(run):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: run.emit("x", n), range(400)))
    times = [event.mono for event in told(run.path)]
    assert times == sorted(times)


def test_a_fork_in_the_middle_gives_the_child_a_segment_of_its_own(run):
    run.emit("x", "before")
    with run.turn("fork"):
        child = os.fork()
        if child == 0:
            run.emit("x", "child")
            run.recorder.close()
            os._exit(0)
        run.emit("x", "parent")
        os.waitpid(child, 0)
    before, *others = of_users(run.path)
    parents = {event.data: event for event in others}
    turn = of_users(run.path, "turn.start")[0]
    assert parents["child"].pid == child
    assert parents["child"].parent == turn.ref
    assert (parents["child"].seq, parents["parent"].pid) == (1, os.getpid())
    assert before.seq < parents["parent"].seq
    assert {path.name for path in run.path.glob("tape-*")} == {
        f"tape-{os.getpid()}.jsonl",
        f"tape-{child}.jsonl",
    }


def test_a_child_that_records_nothing_leaves_no_segment(run):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert len(list(run.path.glob("tape-*"))) == 1


def test_forks_from_busy_threads_neither_hang_nor_tear_anything(tmp_path):
    run_program(
        """
        import os, sys, threading, warnings, playhead
        warnings.simplefilter("ignore")
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            stop = threading.Event()
            def busy(n):
                i = 0
                while not stop.is_set():
                    run.emit("x", [n, i]); i += 1
            def forking(n):
                for i in range(10):
                    pid = os.fork()
                    if pid == 0:
                        run.emit("child", [n, i])
                        os._exit(0)
                    os.waitpid(pid, 0)
            threads = [threading.Thread(target=busy, args=(n,)) for n in range(3)]
            forks = [threading.Thread(target=forking, args=(n,)) for n in range(3)]
            for one in threads + forks: one.start()
            for one in forks: one.join()
            stop.set()
            for one in threads: one.join()
        """,
        tmp_path,
        timeout=100,
    )
    path = tmp_path / "runs" / "r"
    children = sorted(tuple(event.data) for event in of_users(path, "child"))
    assert children == [(n, i) for n in range(3) for i in range(10)]
    for n in range(3):
        numbers = [event.data[1] for event in of_users(path) if event.data[0] == n]
        assert numbers == list(range(len(numbers)))


def test_a_signal_handler_may_record_in_the_middle_of_an_event(tmp_path):
    done = run_program(
        """
        import os, signal, sys, playhead
        count = 0
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            def handler(number, frame):
                global count
                count += 1
                run.emit("signal", count)
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
            for n in range(20_000):
                run.emit("x", n)
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(count)
        """,
        tmp_path,
    )
    path = tmp_path / "runs" / "r"
    assert [event.data for event in of_users(path)] == list(range(20_000))
    heard = [event.data for event in of_users(path, "signal")]
    assert sorted(heard) == list(range(1, int(done.stdout) + 1))
    assert len(heard) > 20
    assert read_manifest(path).lost == 0


def test_a_handler_that_raises_in_the_middle_of_an_event_leaves_the_tape_whole(tmp_path):
    done = run_program(
        """
        import signal, sys, playhead
        class Limit(Exception): pass
        struck = 0
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            def handler(number, frame):
                raise Limit
            signal.signal(signal.SIGALRM, handler)
            for n in range(4_000):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.000001 * (n % 40 + 1))
                    run.emit("x", {"n": n, "more": ("a", b"b")})
                    while True: pass
                except Limit:
                    struck += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(struck)
        """,
        tmp_path,
    )
    # Not one of the host's own exceptions was swallowed, and the chain of checksums holds.
    assert done.stdout == "4000\n"
    events = told(tmp_path / "runs" / "r")
    assert [event.seq for event in events] == list(range(len(events)))
    assert read_manifest(tmp_path / "runs" / "r").status == "ok"
    assert done.stderr == ""


def test_a_destructor_may_record(run):
    class Noisy:
        def __init__(self, n):
            self.n, self.ring = n, self

        def __del__(self):
            run.emit("del", self.n)

    for n in range(500):
        Noisy(n)
        run.emit("x", {"n": n, "list": [[] for _ in range(20)]})
    gc.collect()
    assert sorted(event.data for event in of_users(run.path, "del")) == list(range(500))
    assert len(of_users(run.path)) == 500


def test_recording_goes_on_in_the_programs_last_moments(tmp_path):
    run_program(
        """
        import atexit, sys, threading, weakref
        atexit.register(lambda: run.emit("x", "registered before"))
        import playhead
        class Global:
            def __del__(self):
                run.emit("x", "a global dies")
        recording = playhead.record(store=sys.argv[1], run_id="r")
        run = recording.__enter__()
        atexit.register(lambda: run.emit("x", "registered after"))
        thread = threading.Thread(target=lambda: run.emit("x", "a thread"))
        thread.start()
        keep = Global()
        """,
        tmp_path,
    )
    kept = [event.data for event in of_users(tmp_path / "runs" / "r")]
    assert kept == ["a thread", "registered after"]


def test_events_of_a_tape_that_was_deleted_are_written_again(run, capsys):
    for n in range(10):
        run.emit("x", n)
    shutil.rmtree(run.path)
    for n in range(10, 200):
        run.emit("x", n)
    assert [event.data for event in of_users(run.path)] == list(range(200))
    assert read_manifest(run.path).status == "running"
    (gap,) = of_users(run.path, "gap")
    assert gap.data["lost"] == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "deleted or closed" in err


def test_a_closed_descriptor_is_opened_again_and_nothing_is_lost(run, capsys):
    run.emit("x", 0)
    os.close(run.recorder._writer._fd)
    run.emit("x", 1)
    assert [event.data for event in of_users(run.path)] == [0, 1]
    assert capsys.readouterr().err.count("\n") == 1


def test_two_threads_that_fail_at_one_closed_descriptor_both_write_their_events(run, monkeypatch):
    append = recorder_module.append

    def fail_and_let_the_other_thread_reopen(segment, event):
        try:
            return append(segment, event)
        except OSError:
            monkeypatch.undo()
            other = threading.Thread(target=run.emit, args=("x", "second"))
            other.start()
            other.join()
            raise

    monkeypatch.setattr(recorder_module, "append", fail_and_let_the_other_thread_reopen)
    os.close(run.recorder._writer._fd)
    assert run.emit("x", "first") is not None
    assert [event.data for event in of_users(run.path)] == ["second", "first"]
    assert run.lost == 0


def test_a_descriptor_that_became_the_hosts_is_neither_written_nor_closed(run, tmp_path):
    run.emit("x", 0)
    number = run.recorder._writer._fd
    os.close(number)
    own = tmp_path / "of the host"
    fd = os.open(own, os.O_RDWR | os.O_CREAT)
    os.dup2(fd, number)
    os.close(fd)
    os.write(number, b"of the host")
    for n in range(1, 100):
        run.emit("x", n)
    assert own.read_bytes() == b"of the host"
    os.write(number, b", still open")
    os.close(number)
    assert own.read_bytes() == b"of the host, still open"
    assert [event.data for event in of_users(run.path)] == list(range(100))


def test_a_tape_that_is_gone_altogether_begins_anew_and_says_how_much_is_missing(run, capsys):
    for n in range(5):
        run.emit("x", n)
    written = run.recorder.next_seq
    shutil.rmtree(run.path)
    os.close(run.recorder._writer._fd)
    run.emit("x", 5)
    events = told(run.path)
    assert events[0].kind == "segment.start"
    (gap,) = (event for event in events if event.kind == "gap")
    assert gap.data["lost"] == written
    assert [event.data for event in events if event.kind == "x"] == [5]
    assert run.lost == written
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_lost_is_counted_once_and_told_when_writing_works_again(run, monkeypatch, capsys):
    def full(fd, line):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("playhead.host.native_core.core", None)
        patch.setattr("playhead.tape.writer.write", full)
        assert [run.emit("x", n) for n in range(5)] == [None] * 5
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: run.emit("x", n), range(20)))
    assert run.lost == 25
    run.emit("x", "again")
    gap, again = told(run.path)[-2:]
    assert (gap.kind, gap.data["lost"]) == ("gap", 25)
    assert "No space left" in gap.data["why"]
    assert again.data == "again"
    run.end()
    assert read_manifest(run.path).lost == 25
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "No space left on device" in err


def test_a_closed_stderr_does_not_matter(run, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    shutil.rmtree(run.path)
    for n in range(100):
        run.emit("x", n)
    assert len(of_users(run.path)) == 100


def test_a_dict_that_another_thread_changes_is_recorded_all_the_same(run):
    value = {str(n): n for n in range(200)}
    stop = threading.Event()

    def change():
        n = 0
        while not stop.is_set():
            n += 1
            value[f"new{n % 50}"] = n
            value.pop(f"new{(n * 3) % 50}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(1_000):
            run.emit("x", {"value": value})
    finally:
        stop.set()
        thread.join()
    assert len(of_users(run.path)) == 1_000
    assert run.lost == 0


def test_a_busy_recorder_takes_the_faster_encoder_and_the_bytes_stay_the_same(tmp_path):
    run_program(
        """
        import os, sys
        os.environ["PLAYHEAD_NATIVE"] = "0"  # the native core needs no faster encoder
        import playhead
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            assert "msgspec" not in sys.modules
            for n in range(400):
                run.emit("x", {"n": n, "text": "ä"})
            assert "msgspec" in sys.modules
        """,
        tmp_path,
    )
    (segment,) = (tmp_path / "runs" / "r").glob("tape-*")
    lines = [line for line in segment.read_bytes().splitlines() if b'"kind":"x"' in line]
    texts = {line.partition(b',"text"')[2].partition(b"}")[0] for line in lines}
    assert len(texts) == 1
    assert len(of_users(tmp_path / "runs" / "r")) == 400


def test_last_words_are_said_before_the_end_even_if_one_of_them_fails(run):
    def broken():
        raise RuntimeError("no words")

    run.recorder.last_words += [
        lambda: run.emit("x", "first"),
        broken,
        lambda: run.emit("x", "last"),
    ]
    run.end()
    kinds = [(event.kind, event.data) for event in told(run.path)][-5:]
    assert [kind for kind, _ in kinds] == ["x", "gap", "x", "run.end", "segment.end"]
    assert kinds[1][1]["lost"] == 1


def test_segments_count_their_events(run):
    for n in range(7):
        run.emit("x", n)
    run.end()
    end = told(run.path)[-1]
    assert end.kind == "segment.end"
    assert end.data["events"] == len(told(run.path)) == 11


def test_a_guest_python_with_nothing_installed_records_and_reads_back(guest_python, tmp_path):
    source = Path(playhead.__file__).parents[1]
    program = """
        import asyncio, json, os, sys, threading
        sys.path.insert(0, sys.argv[1])
        import playhead
        from playhead.tape.reader import Tape

        @playhead.turn("respond", purpose="answer")
        def respond(text):
            playhead.seam("analyse", {"n": 1, "raw": b"\\xff"})
            return text.upper()

        async def main(run):
            async def task(n):
                run.emit("task", n)
            await asyncio.gather(task(1), task(2))

        with playhead.record(store=sys.argv[2], run_id="r", name="guest") as run:
            assert respond("x") == "X"
            asyncio.run(main(run))
            thread = threading.Thread(target=lambda: run.emit("thread", {"password": "hunter2"}))
            thread.start(); thread.join()
            child = os.fork()
            if child == 0:
                run.emit("child"); os._exit(0)
            os.waitpid(child, 0)
            run.emit("large", "x" * 100_000)
        tape = Tape(run.path)
        kinds = [event.kind for event in tape.events()]
        assert not list(tape.damage), list(tape.damage)
        assert "msgspec" not in sys.modules
        whole = [tape.whole(event).data for event in tape.events() if event.kind == "large"]
        assert whole == ["x" * 100_000]
        print(json.dumps(kinds))
    """
    argv = [
        guest_python,
        "-I",
        "-S",
        "-W",
        "error",
        "-c",
        textwrap.dedent(program),
        str(source),
        str(tmp_path),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    kinds = json.loads(done.stdout)
    assert sorted(kinds) == sorted(
        [
            *("segment.start", "run.start", "turn.start", "seam", "turn.end", "task", "task"),
            *("thread", "segment.start", "child", "large", "run.end", "segment.end"),
        ]
    )
    raw = b"".join(
        path.read_bytes() for path in (tmp_path / "runs" / "r").rglob("*") if path.is_file()
    )
    assert b"hunter2" not in raw


def test_two_recorders_in_one_process_keep_to_their_own_tapes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = Recorder(run=tmp_path / "a", run_id="a", who="x")
    second = Recorder(run=tmp_path / "b", run_id="b", who="y")
    first.append(NewEvent("x", 1))
    second.append(NewEvent("x", 2))
    first.close()
    second.append(NewEvent("x", 3))
    second.close()
    assert [event.data for event in of_users(tmp_path / "a")] == [1]
    assert [event.data for event in of_users(tmp_path / "b")] == [2, 3]
    assert {event.who for event in told(tmp_path / "b")} == {"y"}


def test_ctrl_c_reaches_the_program_and_the_run_says_so(tmp_path):
    program = """
        import os, signal, sys, playhead
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            run.emit("x", 1)
            os.kill(os.getpid(), signal.SIGINT)
            while True: run.emit("x", 2)
    """
    argv = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert read_manifest(tmp_path / "runs" / "r").status == "interrupted"
    told(tmp_path / "runs" / "r")
