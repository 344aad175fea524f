"""`kill -9` while a run is pushed or pulled, at twenty moments each: nothing is lost, nothing is half visible."""

import os
import signal
import subprocess
import sys

import pytest
from tests.integration.s3_server import running_s3

from playhead import clock
from playhead.remote.objects import ObjectFolder
from playhead.remote.pulling import pull
from playhead.remote.remote_runs import delete_runs, remote_runs, sweep
from playhead.tape import blobs
from playhead.tape.care.verify import verify
from playhead.tape.store import run_ids

pytestmark = pytest.mark.engines
MOMENTS = 20
PLAYHEAD = [sys.executable, "-m", "playhead"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A store with one recorded run, and forty megabytes in its blobs."""
    folder = tmp_path_factory.mktemp("sender")
    words = [
        "record",
        "--run-id",
        "big",
        "--quiet",
        "--no-workspace",
        "--store",
        str(folder / "store"),
    ]
    subprocess.run(
        [*PLAYHEAD, *words, "--", sys.executable, "-c", "print(1)"], check=True, cwd=folder
    )
    for number in range(10):
        blobs.push(folder / "store" / "runs" / "big", os.urandom(4_000_000 + number))
    return folder / "store"


@pytest.fixture(scope="module")
def environ(tmp_path_factory):
    with running_s3("tapes") as address:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        yield {
            **os.environ,
            **keys,
            "AWS_ENDPOINT_URL": address,
            "HOME": str(tmp_path_factory.mktemp("home")),
        }


def killed(words, environ, after_s):
    """Run a command, and kill it after that time. Returns whether it had ended before."""
    with subprocess.Popen([*PLAYHEAD, *words], env=environ, stdout=subprocess.DEVNULL) as child:
        try:
            child.wait(after_s)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            return False
    assert child.returncode == 0
    return True


def took(words, environ):
    began = clock.mono_ns()
    subprocess.run([*PLAYHEAD, *words], env=environ, check=True, stdout=subprocess.DEVNULL)
    return (clock.mono_ns() - began) / 1e9


def files(run):
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "marks.json")
    }


def test_a_push_that_is_killed_at_any_moment_is_whole_or_invisible(home, environ, tmp_path):
    url = "s3://tapes/kills"
    remote = ObjectFolder(url, environ)
    words = ["push", "big", "--store", str(home), "--remote", url]
    whole_s = took(words, environ)
    seen = []
    for moment in range(MOMENTS):
        delete_runs(remote, ["big"])
        sweep(remote, tmp_path / "reader", grace_ns=-(10**18))
        killed(words, environ, whole_s * (moment + 1) / MOMENTS)
        found, problems = remote_runs(remote, tmp_path / "reader")
        assert problems == []
        seen.append(len(found))
        if found:  # visible: then all of it is there
            pull("big", remote, tmp_path / f"early-{moment}")
        took(words, environ)
        pulled = pull("big", remote, tmp_path / f"home-{moment}")
        assert files(pulled) == files(home / "runs" / "big")
        assert verify(pulled).ok
    assert 0 in seen


def test_a_pull_that_is_killed_at_any_moment_leaves_no_run(home, environ, tmp_path):
    url = "s3://tapes/pulls"
    push_words = ["push", "big", "--store", str(home), "--remote", url]
    subprocess.run([*PLAYHEAD, *push_words], env=environ, check=True, stdout=subprocess.DEVNULL)

    def words(name):
        return ["pull", "big", "--store", str(tmp_path / name), "--remote", url]

    whole_s = took(words("whole"), environ)
    for moment in range(MOMENTS):
        name = f"home-{moment}"
        done = killed(words(name), environ, whole_s * (moment + 1) / MOMENTS)
        there = run_ids(tmp_path / name)
        if there:
            assert files(tmp_path / name / "runs" / "big") == files(home / "runs" / "big")
        assert there or not done
        took(words(name), environ)
        assert files(tmp_path / name / "runs" / "big") == files(home / "runs" / "big")
