"""One job of a batch on a worker of an engine: fetch the tape, replay it in a process of its own, return the verdict.

Knows the members that cross the network, all of them plain JSON; not Dask or Ray. A job may run twice, because engines
repeat the jobs of a worker that died: a verdict has the same key both times, and the batch counts it once.

A worker of an engine has threads, so it must not be forked. Each of its threads therefore starts one subprocess without
threads, which imports everything once and forks a child for each job. Starting Python for each job would take half a
second.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import weakref
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from playhead import config
from playhead._version import __version__
from playhead.cli.batch.batch_job import Job, warm_up
from playhead.cli.batch.batch_selection import Target
from playhead.cli.batch.batch_workers import WorkerPool
from playhead.cli.shared_store import fetched_run
from playhead.errors import PlayheadError, RunNotFound
from playhead.remote.job_verdicts import read_report, write_report
from playhead.remote.objects import ObjectFolder
from playhead.story import Prices
from playhead.story.invariants import Invariants
from playhead.story.verdicts import Verdict
from playhead.tape.store import open_store, run_path

_MOST_SAID = 2_000


def version() -> str:
    """Runs on every worker before the first job."""
    return __version__


def members_of(job: Job, limit_s: float) -> dict[str, Any]:
    """A job as JSON. The worker has its own store, and its own credentials for the shared one."""
    return {
        "key": job.target.key,
        "id": job.target.id,
        "name": job.target.name,
        "path": str(job.target.path),
        "round": job.round,
        "options": list(job.options),
        "command": list(job.command),
        "invariants": asdict(job.invariants),
        "prices": dict(job.prices.overrides),
        "allow_unproven": job.allow_unproven,
        "batch": job.batch,
        "limit_s": limit_s,
    }


def run_on_worker(members: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict as JSON. The subprocess of this thread stays for the next job."""
    server: _JobServer | None = getattr(_servers, "own", None)
    if server is None or not server.is_alive():
        server = _servers.own = _JobServer()
    found = server.verdict(members)
    if found is not None:
        return found
    _servers.own = None
    code, said = server.end()
    return failed(members, f"the worker gave no verdict (exit code {code})", said).as_json()


class _JobServer:
    """The subprocess that runs the jobs of one thread, one after the other. It ends when its stdin is closed, so it
    does not outlive the worker.
    """

    def __init__(self) -> None:
        # A file: a pipe that is not read would block the subprocess when it is full.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `_close`
        argv = [sys.executable, "-m", "playhead.cli.batch.engine_job"]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        # Also when the thread or the worker ends.
        self._close = weakref.finalize(self, _close, self._process, self._errors)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def verdict(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """Run a job. None: the subprocess ended without a verdict."""
        stdin, stdout = self._process.stdin, self._process.stdout
        try:
            if stdin is None or stdout is None:
                return None
            stdin.write(json.dumps(members).encode() + b"\n")
            stdin.flush()
            found: dict[str, Any] = json.loads(stdout.readline())
        except (OSError, ValueError):
            return None
        return found

    def end(self) -> tuple[int, str]:
        """Kill the subprocess. Return its exit code and the end of its stderr."""
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace")[-_MOST_SAID:]
        self._close()
        return self._process.returncode, said


def _close(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """Close the pipes. The subprocess then ends: it reads the end of its stdin."""
    with suppress(OSError):
        process.communicate()
    errors.close()


# Has one member, `own`: the subprocess of this thread.
_servers = threading.local()


def failed(members: dict[str, Any], why: str, said: str = "") -> Verdict:
    return Verdict(
        tape=members["key"],
        name=members["name"],
        outcome="error",
        round=members["round"],
        why=(why,),
        said=said,
    )


def _replayed(members: dict[str, Any]) -> Verdict:
    home = open_store(config.load().home)
    prices = Prices(overrides=members["prices"])
    rules: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in members["invariants"].items()
    }
    target = Target(
        key=members["key"], id=members["id"], name=members["name"], path=_tape_of(members, home)
    )
    job = Job(
        target=target,
        round=members["round"],
        home=home,
        options=tuple(members["options"]),
        command=tuple(members["command"]),
        invariants=Invariants(**rules),
        prices=prices,
        allow_unproven=members["allow_unproven"],
    )
    warm_up(prices)
    with closing(WorkerPool(1, members["limit_s"]).verdicts(iter([job]))) as verdicts:
        return next(verdicts)


def _tape_of(members: dict[str, Any], home: Path) -> Path:
    """Return the tape: from a disk that the worker shares with the user, or from its store, or from the shared
    store.
    """
    for path in (Path(members["path"]), run_path(home, members["id"])):
        if path.exists():
            return path
    # By its id alone: looking for a name would read the catalogue of the worker for each job.
    found = fetched_run(None, members["id"])
    if found is None or found.name != members["id"]:
        raise RunNotFound(
            f"The worker has no run {members['id']}, and neither has its shared store. `playhead push` the run, and "
            "set PLAYHEAD_REMOTE on the workers.",
            asked=members["id"],
        )
    return found


def main() -> None:
    """Read jobs from stdin, one JSON object per line, and write their verdicts to stdout."""
    for line in sys.stdin.buffer:
        members = json.loads(line)
        sys.stdout.write(json.dumps(_reported(members)) + "\n")
        sys.stdout.flush()


def _reported(members: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict, and write it to the shared store. If an earlier attempt of this job did so, return that one:
    its worker died before the answer arrived.
    """
    remote = config.load().remote
    place = (members["batch"], members["key"], members["round"])
    try:
        there = ObjectFolder(remote, for_writing=True) if remote and members["batch"] else None
        earlier = None if there is None else read_report(there, *place)
        if earlier is not None:
            return earlier
        verdict = _replayed(members).as_json()
    except PlayheadError as error:
        return failed(members, str(error)).as_json()
    if there is not None:
        # A worker whose credentials may not write still answers: only a later --resume replays this tape again.
        with suppress(PlayheadError):
            write_report(there, *place, verdict)
    return verdict


if __name__ == "__main__":
    main()
