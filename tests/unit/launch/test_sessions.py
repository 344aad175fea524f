"""An orchestrator's session, re-run against its tape: aligned, or every mismatch listed."""

import asyncio
import ctypes
import dataclasses
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from typing import NamedTuple

import pytest

import playhead
from playhead.errors import NoFence, TapeNotReplayable, UsageError
from playhead.replay.fence import barrier
from playhead.replay.fence.inside import FenceNeeds
from playhead.tape.manifest import read_manifest, write_manifest


class Board:
    """A task store in memory."""

    def __init__(self, tasks):
        self.tasks = dict(tasks)

    def claim_next(self, worker):
        for name, state in self.tasks.items():
            if state == "todo":
                self.tasks[name] = f"doing:{worker}"
                return name
        return None

    def set_state(self, name, state):
        self.tasks[name] = state


def watched(tasks):
    board = Board(tasks)
    playhead.watch(board, snapshot=lambda b: b.tasks, mutations=["claim_next", "set_state"])
    return board


def sh(script):
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)


def happy(board, worker):
    while name := board.claim_next(worker):
        out = sh(f"echo built {name} $$; date +%N").stdout
        with playhead.current().turn("review", purpose=name) as turn:
            turn.seam("read", out)
        board.set_state(name, "done")


def dirty_worktree(board, worker):
    """The first try fails; the worker cleans up and tries again."""
    name = board.claim_next(worker)
    if sh('test -n "$$" && exit 1').returncode:
        sh("echo stash")
        board.set_state(name, "todo")
        name = board.claim_next(worker)
    board.set_state(name, "done")


def review_loop(board, worker):
    """needs changes → doing → reviewing → approve."""
    name = board.claim_next(worker)
    for verdict in ("needs-changes", "approve"):
        board.set_state(name, "reviewing")
        said = sh(f"echo {verdict}").stdout.strip()
        board.set_state(name, "done" if said == "approve" else f"doing:{worker}")


@pytest.fixture
def recorded(tmp_path):
    def record(work, tasks=("a", "b"), workers=("worker-1",)):
        with playhead.record(name="orchestra", store=tmp_path, intercept=True) as run:
            board = watched(dict.fromkeys(tasks, "todo"))
            for worker in workers:
                with playhead.lane(worker):
                    work(board, worker)
        return run

    return record


def again(work):
    return lambda world: work(watched(world.snapshot), world.worker)


@pytest.mark.parametrize("work", [happy, dirty_worktree, review_loop])
def test_a_session_round_trips(recorded, work):
    session = playhead.load(recorded(work).path)
    report = playhead.replay_session(session, again(work))
    assert report.passed, str(report)
    assert report.workers[0].served == len(session.process_calls("worker-1")) > 0


def test_a_worker_may_be_a_coroutine_function(recorded):
    async def run_worker(world):
        await asyncio.sleep(0)
        happy(watched(world.snapshot), world.worker)
        return world.worker

    session = playhead.load(recorded(happy).path)
    report = playhead.replay_session(session, run_worker)
    assert report.passed, str(report)
    assert report.workers[0].value == "worker-1"


def test_nothing_is_executed_when_a_session_is_replayed(recorded, tmp_path):
    mark = tmp_path / "mark"

    def work(board, worker):
        sh(f"echo x >> {mark}")

    session = playhead.load(recorded(work).path)
    assert playhead.replay_session(session, again(work)).passed
    assert mark.read_text() == "x\n"


def test_a_session_tells_its_workers_calls_turns_mutations_and_states(recorded):
    session = playhead.load(recorded(happy).path)
    assert session.workers == ["worker-1"]
    assert [call.request["argv"][2][:10] for call in session.process_calls("worker-1")] == [
        "echo built"
    ] * 2
    assert [turn.name for turn in session.agent_turns("worker-1")] == ["review", "review"]
    assert [one.name for one in session.mutations()] == [
        *("Board.claim_next", "Board.set_state") * 2,
        "Board.claim_next",
    ]
    assert session.snapshot() == {"a": "todo", "b": "todo"}
    assert session.final_state() == {"a": "done", "b": "done"}
    assert all(call.took_ns > 0 and call.thread for call in session.process_calls())


def test_code_that_asks_something_else_is_listed_step_by_step(recorded):
    session = playhead.load(recorded(happy).path)

    def other(world):
        board = watched(world.snapshot)
        board.set_state("a", "lost")
        sh("echo something else")

    report = playhead.replay_session(session, other)
    kinds = [one.kind for one in report.workers[0].mismatches]
    assert not report.passed
    assert {"missed", "unused", "mutation", "final state"} <= set(kinds)


def test_a_mutated_recording_is_caught(recorded, tmp_path):
    session_file = tmp_path / "s.tape.jsonl"
    run = recorded(review_loop)
    from playhead.tape.single_file import pack

    pack(run.path, session_file)
    lines = [json.loads(line) for line in session_file.read_text().splitlines()]
    for line in lines:
        if line.get("kind") == "chunk" and line["data"].get("text") == "approve\n":
            line["data"]["text"] = "decline\n"
    session_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert not playhead.replay_session(playhead.load(session_file), again(review_loop)).passed


def test_one_worker_of_many_can_be_replayed_alone(recorded):
    session = playhead.load(
        recorded(lambda b, w: sh(f"echo {w}"), workers=("worker-1", "worker-2")).path
    )
    assert session.workers == ["worker-1", "worker-2"]
    report = playhead.replay_worker(
        session, "worker-2", lambda world: sh(f"echo {world.worker}").stdout
    )
    assert report.passed
    assert report.value == "worker-2\n"


def test_a_worker_that_is_not_there_is_named(recorded):
    session = playhead.load(recorded(happy).path)
    with pytest.raises(UsageError, match=r"no worker 'worker-9'.*worker-1"):
        playhead.replay_worker(session, "worker-9", lambda world: None)


def test_a_session_below_level_full_is_refused_with_the_reason(tmp_path):
    with playhead.record(store=tmp_path, level="standard") as run:
        run.emit("x")
    with pytest.raises(TapeNotReplayable, match="level 'standard'"):
        playhead.load(run.path)


def test_a_variable_makes_every_recording_one_file_too(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_RECORD_SESSION", str(tmp_path / "one.tape.jsonl"))
    with playhead.record(name="one", store=tmp_path / "store") as run:
        run.emit("x", {"a": 1})
    session = playhead.load(tmp_path / "one.tape.jsonl")
    assert session.tape.manifest.name == "one"


class Pool:
    """A store that several workers share, guarded by a lock, as orchestrators have it."""

    def __init__(self, tasks):
        self.tasks = dict(tasks)
        self._lock = threading.Lock()

    def claim_next(self, worker):
        with self._lock:
            for name, state in self.tasks.items():
                if state == "todo":
                    self.tasks[name] = f"doing:{worker}"
                    return name
        return None

    def mark_complete(self, name, *, state="done"):
        with self._lock:
            self.tasks[name] = state


def worker_loop(pool, worker, before=lambda: None):
    while name := pool.claim_next(worker):
        before()
        out = sh(f"echo built {name}").stdout
        pool.mark_complete(name, state="done" if out else "lost")


def run_worker(world):
    pool = Pool(world.snapshot)
    playhead.watch(pool, snapshot="tasks", mutations=["claim_next", "mark_complete"])
    worker_loop(pool, world.worker)


@pytest.fixture
def pooled(tmp_path):
    """A session of workers in threads that take turns in an order that no worker alone would have."""

    def record(workers=("worker-1", "worker-2", "worker-3"), tasks=9, late=0):
        with playhead.record(name="pool", store=tmp_path, intercept=True) as run:
            pool = Pool({f"t{n}": "todo" for n in range(tasks)})
            playhead.watch(pool, snapshot="tasks", mutations=["claim_next", "mark_complete"])
            meet = threading.Barrier(len(workers))

            def go(worker):
                with playhead.lane(worker):
                    worker_loop(pool, worker, meet.wait)

            threads = [threading.Thread(target=go, args=(one,)) for one in workers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for n in range(late):
                pool.mark_complete(f"t{n}", state="archived")
        return run

    return record


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_workers_that_share_one_store_replay(pooled, workers):
    names = [f"worker-{n}" for n in range(1, workers + 1)]
    session = playhead.load(pooled(names, tasks=2 * workers, late=2).path)
    assert sorted(session.workers) == names
    report = playhead.replay_session(session, run_worker)
    assert report.passed, str(report)
    assert sum(one.served for one in report.workers) == 2 * workers


@pytest.mark.parametrize("workers", [1, 3])
def test_a_final_state_that_was_altered_is_caught(pooled, tmp_path, workers):
    run = pooled([f"worker-{n}" for n in range(workers)], tasks=3 * workers)
    session = playhead.load(altered(run, tmp_path))
    report = playhead.replay_session(session, run_worker)
    assert not report.passed
    kinds = {one.kind for worker in report.workers for one in worker.mismatches}
    assert kinds == {"final state"}


def altered(run, folder):
    from playhead.tape.single_file import pack

    path = folder / "altered.tape.jsonl"
    pack(run.path, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("kind") == "snapshot" and line["data"]["when"] == "end":
            line["data"]["value"] = dict.fromkeys(line["data"]["value"], "LOST")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_another_order_of_mutations_is_caught(pooled, tmp_path):
    session = playhead.load(pooled().path)

    def greedy(world):
        pool = Pool(world.snapshot)
        playhead.watch(pool, snapshot="tasks", mutations=["claim_next", "mark_complete"])
        name = pool.claim_next(world.worker)
        pool.mark_complete(name, state="lost")
        worker_loop(pool, world.worker)

    report = playhead.replay_session(session, greedy)
    assert not report.passed
    assert all(not one.passed for one in report.workers)


def test_a_process_call_has_output_and_exit_code(recorded):
    def work(board, worker):
        sh("echo out; echo err >&2; exit 3")
        sh("yes 0123456789 | head -c 300000")

    first, second = playhead.load(recorded(work).path).process_calls("worker-1")
    assert (first.stdout, first.stderr, first.exit_code) == ("out\n", "err\n", 3)
    assert (len(second.stdout), second.exit_code) == (300_000, 0)


def test_last_is_the_newest_run_that_is_not_a_replay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with playhead.record(name="old", store=tmp_path / "s"):
        pass
    with playhead.record(name="new", store=tmp_path / "s"):
        pass
    with playhead.record(name="replay", store=tmp_path / "s") as run:
        pass
    manifest = dataclasses.replace(read_manifest(run.path), replay_of="new")
    write_manifest(run.path, manifest)
    assert playhead.load("last", store=tmp_path / "s").tape.manifest.name == "new"
    assert playhead.load("last~1", store=tmp_path / "s").tape.manifest.name == "old"


def past_hooks(listening, mark):
    """A worker that writes a file and connects by the C library, which no hook sees."""
    libc = ctypes.CDLL(None)
    port = int.from_bytes(struct.pack(">H", listening.getsockname()[1]), "little")

    def work(board, worker):
        sh("echo tool")
        mark.write_text("written")
        made = libc.socket(2, 1, 0)
        return libc.connect(made, struct.pack("=HHI8x", 2, port, 0x0100007F), 16)

    return work


@pytest.fixture
def listening():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        made.setblocking(False)
        yield made


def ran_in_a_process_without_threads(test):
    """Whether the test was run again in a process of its own: threads that other tests left keep a fence away."""
    if threading.active_count() == 1:
        return False
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*argv, f"{__file__}::{test}"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return True


def test_a_replayed_worker_reaches_neither_the_network_nor_the_files(
    recorded, listening, tmp_path, request
):
    if ran_in_a_process_without_threads(request.node.name):
        return
    mark = tmp_path / "mark"
    work = past_hooks(listening, mark)
    session = playhead.load(recorded(work).path)
    listening.accept()[0].close()
    mark.unlink()
    try:
        barrier.build(FenceNeeds(own=()), ["namespaces"]).abandon()
    except NoFence as error:
        pytest.skip(f"needs namespaces, and {error}")
    report = playhead.replay_session(session, again(work))
    assert report.fence == "fenced", str(report)
    assert report.workers[0].value == -1  # refused
    with pytest.raises(BlockingIOError):
        listening.accept()
    assert not mark.exists()


def test_a_worker_that_cannot_run_in_a_child_runs_here_and_is_unfenced(recorded):
    session = playhead.load(recorded(lambda board, worker: sh("echo x")).path)
    seen = []

    def work(world):
        seen.append(world.worker)
        sh("echo x")
        return lambda: "cannot be passed on"

    report = playhead.replay_session(session, work)
    assert (report.passed, report.fence, seen) == (True, "unfenced", ["worker-1"]), str(report)
    assert report.workers[0].value() == "cannot be passed on"
    report = playhead.replay_session(session, work, fenced=False)
    assert (report.fence, len(seen)) == ("unfenced", 2)


def test_a_process_with_other_threads_replays_unfenced(recorded):
    session = playhead.load(recorded(lambda board, worker: sh("echo x")).path)
    ends = threading.Event()
    beside = threading.Thread(target=ends.wait)
    beside.start()
    try:
        report = playhead.replay_session(session, lambda world: sh("echo x").returncode)
    finally:
        ends.set()
        beside.join()
    assert (report.passed, report.fence) == (True, "unfenced"), str(report)
    assert "unfenced" in str(report)


class Slow(Pool):
    """A worker gets its task, and another worker gets the next one before the first call returns."""

    def __init__(self, tasks, overtaken=None):
        super().__init__(tasks)
        self._overtaken = overtaken

    def claim_next(self, worker):
        name = super().claim_next(worker)
        if self._overtaken is not None:
            self._overtaken(worker, name)
        return name


@pytest.mark.parametrize("tasks", [2, 6])
def test_a_mutation_that_was_overtaken_before_it_returned_is_made_in_its_place(tmp_path, tasks):
    claimed, overtook = threading.Event(), threading.Event()

    def overtaken(worker, name):
        if name == "t0":
            claimed.set()
            overtook.wait(20)

    with playhead.record(name="pool", store=tmp_path, intercept=True) as run:
        pool = Slow({f"t{n}": "todo" for n in range(tasks)}, overtaken)
        playhead.watch(pool, snapshot="tasks", mutations=["claim_next", "mark_complete"])

        def go(worker):
            with playhead.lane(worker):
                if worker == "worker-2":
                    claimed.wait(20)
                worker_loop(pool, worker, overtook.set)

        threads = [threading.Thread(target=go, args=(f"worker-{n}",)) for n in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def replayed(world):
        pool = Slow(world.snapshot)
        playhead.watch(pool, snapshot="tasks", mutations=["claim_next", "mark_complete"])
        worker_loop(pool, world.worker)

    session = playhead.load(run.path)
    ends = [
        one.value for one in sorted(session.mutations(), key=lambda one: one.wall_ns + one.took_ns)
    ]
    assert ends.index("t1") < ends.index("t0")
    for _ in range(2):
        report = playhead.replay_session(session, replayed)
        assert report.passed, str(report)


class Bill(NamedTuple):
    """What a worker returns: a class of the test's own."""

    total: int
    of: tuple[str, ...]


def test_a_fenced_worker_hands_back_its_own_classes_and_never_runs_code_of_its_result_here(
    recorded, request
):
    if ran_in_a_process_without_threads(request.node.name):
        return
    session = playhead.load(recorded(lambda board, worker: sh("echo x")).path)
    ran_here = []

    class Bomb:
        """Would run a function in the process that unpickles it."""

        def __reduce__(self):
            return (ran_here.append, (1,))

    def work(result):
        def inner(world):
            sh("echo x")
            return result()

        return inner

    bill = playhead.replay_session(session, work(lambda: Bill(3, ("cup", "plate"))))
    assert (bill.fence, bill.workers[0].value) == ("fenced", Bill(3, ("cup", "plate"))), str(bill)
    # What JSON cannot hold is made again in this process, and is unfenced.
    bomb = playhead.replay_session(session, work(Bomb))
    assert (bomb.fence, ran_here) == ("unfenced", [])
    assert isinstance(bomb.workers[0].value, Bomb)

    def leaves(world):
        raise SystemExit("no cups")

    with pytest.raises(SystemExit, match="no cups"):
        playhead.replay_session(session, leaves)
