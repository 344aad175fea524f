"""A batch on an engine: jobs in flight, lost workers, and errors before the first job."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from playhead.cli.batch import batch_engines
from playhead.cli.batch.batch_engines import EnginePool, open_engine
from playhead.cli.batch.batch_job import Job
from playhead.cli.batch.batch_selection import Target
from playhead.cli.batch.engine_job import members_of, run_on_worker
from playhead.errors import EngineError, UsageError
from playhead.remote.job_verdicts import reports_of, write_report
from playhead.remote.objects import ObjectFolder
from playhead.story import Prices
from playhead.story.invariants import Invariants


class FakeEngine:
    """Answers the newest job first, and loses the worker of one tape for good."""

    def __init__(self):
        self.most = self.closed = 0

    def slots(self):
        return 2

    def submit(self, jobs):
        return [one["key"] for one in jobs]

    def wait(self, handles):
        self.most = max(self.most, len(handles))
        return [list(handles)[-1]]

    def result(self, handle):
        if handle == "tape 3":
            raise RuntimeError("worker lost")
        return {"tape": handle, "name": handle, "outcome": "passed", "round": 1}

    def close(self):
        self.closed += 1


@pytest.fixture
def engine(monkeypatch):
    fake = FakeEngine()
    monkeypatch.setattr(batch_engines, "open_engine", lambda _: fake)
    return fake


def job(name, path="/nowhere", **more):
    return Job(
        target=Target(key=name, id=name, name=name, path=Path(path)),
        round=1,
        home=Path("/nowhere"),
        options=(),
        command=(),
        invariants=Invariants(must_call=("search",), max_steps=3),
        prices=Prices(),
        **more,
    )


def test_every_job_has_one_verdict_and_a_lost_one_is_an_error(engine):
    jobs = iter([job(f"tape {number}") for number in range(40)])
    found = list(EnginePool("dask:x", None, 60).verdicts(jobs))
    assert {one.tape for one in found} == {f"tape {number}" for number in range(40)}
    assert len(found) == 40
    (lost,) = [one for one in found if one.outcome != "passed"]
    assert (lost.tape, lost.outcome) == ("tape 3", "error")
    assert "worker lost" in lost.why[0]
    assert (engine.most, engine.closed) == (16, 1)


def test_a_limit_of_jobs_is_kept_and_a_pause_waits_for_a_verdict(engine):
    jobs = iter([job("a"), None, job("b"), job("c"), job("d"), None])
    found = [one.tape for one in EnginePool("dask:x", 2, 60).verdicts(jobs)]
    assert found == ["a", "c", "d", "b"]
    assert engine.most == 2


def test_an_interrupted_batch_closes_the_engine(engine):
    verdicts = EnginePool("dask:x", None, 60).verdicts(iter([job("a"), job("b")]))
    next(verdicts)
    verdicts.close()
    assert engine.closed == 1


def test_a_worker_without_the_tape_says_so(playhead_home_is_empty, tmp_path):
    found = in_own_thread(lambda: run_on_worker(members_of(job("20261115-071105-none"), 60)))
    assert found["outcome"] == "error"
    assert "`playhead push` the run" in found["why"][0]
    # A worker has thousands of replays: a job must not look through them.
    assert not (tmp_path / "worker" / "library.db").exists()


def test_jobs_of_one_thread_share_a_subprocess_and_a_killed_one_is_replaced(playhead_home_is_empty):
    """Starting Python for each job would take half a second; scheduling may take 5 ms."""
    in_own_thread(_share_and_replace)


def _share_and_replace():
    members = members_of(job("20261115-071105-none"), 60)
    before = _children()
    run_on_worker(members)
    (first,) = _children() - before
    run_on_worker(members)
    assert _children() - before == {first}
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    found = run_on_worker(members)
    assert "`playhead push` the run" in found["why"][0]
    (second,) = _children() - before - {first}
    assert second != first


def in_own_thread(work):
    """A subprocess belongs to a thread, and ends with it."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def _children():
    """The subprocesses of this process, by their numbers."""
    found = set()
    for file in Path("/proc/self/task").glob("*/children"):
        found |= {int(one) for one in file.read_text().split()}
    return found


def test_a_repeated_job_returns_the_verdict_that_its_first_worker_stored(
    playhead_home_is_empty, monkeypatch, tmp_path
):
    url = f"file://{tmp_path}/shared"
    monkeypatch.setenv("PLAYHEAD_REMOTE", url)
    stored = {"tape": "first", "name": "first", "outcome": "passed", "round": 1}
    write_report(ObjectFolder(url, for_writing=True), "batch-1", "first", 1, stored)
    members = [members_of(job(name, batch="batch-1"), 60) for name in ("first", "other")]
    found = in_own_thread(lambda: [run_on_worker(one) for one in members])
    assert found[0] == stored
    assert "`playhead push` the run" in found[1]["why"][0]
    # Without a tape there is no verdict to store.
    assert len(reports_of(ObjectFolder(url), "batch-1")) == 1


def test_a_resumed_batch_counts_the_jobs_that_workers_finished_after_it(
    engine, forge, store, playhead, monkeypatch
):
    for name in ("tape-1", "tape-2", "tape-3"):
        forge(name).end()
    shared = ObjectFolder(f"file://{store.parent}/shared", for_writing=True)
    monkeypatch.setenv("PLAYHEAD_REMOTE", shared.url)
    words = ["batch", "since:9999d", "--store", store, "--trust", "--on", "fake:"]
    answer = engine.result
    calls = []

    def interrupted(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return answer(handle)

    monkeypatch.setattr(engine, "result", interrupted)
    playhead(*words)
    (journal,) = (store / "batches").glob("*.jsonl")
    head, *told = map(json.loads, journal.read_bytes().splitlines())
    assert [one["tape"] for one in told] == calls[:1]
    late = {"tape": calls[1], "name": calls[1], "outcome": "passed", "round": 1}
    write_report(shared, head["batch"], calls[1], 1, late)
    monkeypatch.setattr(engine, "result", answer)
    submit = engine.submit
    monkeypatch.setattr(
        engine, "submit", lambda jobs: calls.extend(one["key"] for one in jobs) or submit(jobs)
    )
    ended = playhead(*words, "--resume")
    assert "3 passed" in ended.out, ended.err
    assert sorted(calls) == ["tape-1", "tape-2", "tape-3"]


@pytest.fixture
def playhead_home_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path / "worker"))
    monkeypatch.delenv("PLAYHEAD_REMOTE", raising=False)


def test_a_dask_cluster_answers_each_job_once(playhead_home_is_empty):
    """The short form of `make test-engines`: a real scheduler and two worker threads in this process."""
    import distributed  # takes a second, in every worker that collects tests

    jobs = iter([job(f"20261115-071105-no{number}") for number in range(6)])
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        found = list(EnginePool(f"dask:{cluster.scheduler_address}", None, 60).verdicts(jobs))
    assert sorted(one.tape for one in found) == [
        f"20261115-071105-no{number}" for number in range(6)
    ]
    assert all("`playhead push` the run" in one.why[0] for one in found)


@pytest.mark.parametrize("where", ["dask", "dask:", "slurm:x", "", "tcp://x:1"])
def test_an_unknown_engine_is_a_usage_error(where):
    with pytest.raises(UsageError, match="expected dask:tcp"):
        open_engine(where)


def test_an_extra_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(UsageError, match=r"playhead\[ray\]"):
        open_engine("ray:auto")


def test_workers_of_another_version_are_refused(monkeypatch):
    monkeypatch.setattr(batch_engines, "__version__", "9.9")
    with pytest.raises(EngineError, match=r"Install playhead==9.9"):
        batch_engines._check_versions({"tcp://w:1": "0.1"})


def test_an_engine_that_cannot_be_used_is_not_an_interrupted_batch(forge, store, playhead):
    forge("2026-first").end()
    ended = playhead("batch", "2026-first", "--on", "slurm:x", "--store", store)
    assert ended.code == 2
    assert ended.err.count("playhead:") == 1
