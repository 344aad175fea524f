"""A batch on Dask and on Ray, two workers each: the report of one machine, also if a worker is killed in the middle."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from playhead import clock

pytestmark = pytest.mark.engines
PLAYHEAD = [sys.executable, "-m", "playhead"]
TAPES = int(os.environ.get("PLAYHEAD_ENGINE_TAPES", "12"))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A store with a few recorded runs."""
    folder = tmp_path_factory.mktemp("batch")
    agent = folder / "agent.py"
    agent.write_text("import time\ntime.sleep(0.2)\nprint('done', round(time.time()) > 0)\n")
    for number in range(TAPES):
        words = ["record", "--quiet", "--run-id", f"run-{number}", "--name", f"agent {number}"]
        words += ["--tag", "env=ci", "--no-workspace", "--store", str(folder / "store")]
        subprocess.run([*PLAYHEAD, *words, "--", sys.executable, str(agent)], check=True)
    return folder / "store"


def batch(home, folder, *more):
    """The report without times, and the seconds that the batch took."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    began = clock.mono_ns()
    ended = subprocess.run(
        [*PLAYHEAD, "batch", "tag:env=ci", "--store", str(home), "--json", str(report), *more],
        env={**os.environ, "PLAYHEAD_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), ended.stderr
    cases = json.loads(report.read_text())["cases"]
    return [
        (one["tape"], one["outcome"], [verdict["why"] for verdict in one["verdicts"]])
        for one in cases
    ], (clock.mono_ns() - began) / 1e9


@contextmanager
def dask_cluster(home, workers):
    distributed = pytest.importorskip("distributed")
    environ = {"PLAYHEAD_HOME": str(home)}
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, env=environ
    ) as cluster:
        yield cluster


def test_a_batch_on_dask_gives_the_report_of_one_machine(home, tmp_path):
    expected, _ = batch(home, tmp_path)
    assert len(expected) == TAPES
    with dask_cluster(home, 2) as cluster:
        found, _ = batch(home, tmp_path, "--on", f"dask:{cluster.scheduler_address}")
    assert found == expected


def test_a_killed_worker_changes_nothing_in_the_report(home, tmp_path):
    expected, _ = batch(home, tmp_path)
    argv = [*PLAYHEAD, "batch", "tag:env=ci", "--store", str(home), "--json", "killed.json"]
    with dask_cluster(home, 2) as cluster:
        process = subprocess.Popen(
            [*argv, "--on", f"dask:{cluster.scheduler_address}"],
            cwd=tmp_path,
            env={**os.environ, "PLAYHEAD_HOME": str(home)},
            stderr=subprocess.PIPE,
        )
        journal = home / "batches"
        while process.poll() is None and not _has_verdicts(journal):
            clock.sleep(0.05)
        victim = next(iter(cluster.workers.values()))
        os.kill(victim.pid, 9)
        said = process.communicate(timeout=300)[1].decode()
    assert (tmp_path / "killed.json").exists(), said
    cases = json.loads((tmp_path / "killed.json").read_text())["cases"]
    assert [(one["tape"], one["outcome"]) for one in cases] == [one[:2] for one in expected]
    assert all(len(one["verdicts"]) == 1 for one in cases)


def _has_verdicts(journal):
    # The first line of a journal names the batch.
    return any(path.read_bytes().count(b"\n") > 1 for path in journal.rglob("*") if path.is_file())


def test_a_cluster_that_does_not_answer_is_an_error_before_the_first_job(home, tmp_path):
    pytest.importorskip("distributed")
    ended = subprocess.run(
        [*PLAYHEAD, "batch", "tag:env=ci", "--store", str(home), "--on", "dask:tcp://127.0.0.1:1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "No dask cluster answers at tcp://127.0.0.1:1" in ended.stderr


def test_a_batch_on_ray_gives_the_report_of_one_machine(home, tmp_path):
    ray = pytest.importorskip("ray")
    expected, _ = batch(home, tmp_path)
    script = os.path.join(os.path.dirname(sys.executable), "ray")
    environ = {**os.environ, "PLAYHEAD_HOME": str(home)}
    start = [script, "start", "--head", "--num-cpus", "2", "--port", "6399"]
    start += ["--include-dashboard", "false", "--disable-usage-stats"]
    subprocess.run(start, check=True, env=environ, stdout=subprocess.DEVNULL)
    try:
        found, _ = batch(home, tmp_path, "--on", "ray:127.0.0.1:6399")
    finally:
        subprocess.run([script, "stop"], check=True, stdout=subprocess.DEVNULL)
    assert (found, bool(ray.__version__)) == (expected, True)
