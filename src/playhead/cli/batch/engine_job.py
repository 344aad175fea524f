"""One job of a batch on a worker of an engine: fetch the tape, replay it in a process of its own, return the verdict.

Knows the members that cross the network, all of them plain JSON; not Dask or Ray. A job may run twice, because engines
repeat the jobs of a worker that died: a verdict has the same key both times, and the batch counts it once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from playhead import config
from playhead._version import __version__
from playhead.cli.batch.batch_job import Job, warm_up
from playhead.cli.batch.batch_selection import Target
from playhead.cli.batch.batch_workers import WorkerPool
from playhead.cli.run_names import find_run_anywhere
from playhead.errors import PlayheadError, RunNotFound
from playhead.story import Prices
from playhead.story.invariants import Invariants
from playhead.story.verdicts import Verdict
from playhead.tape.store import open_store

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
        "limit_s": limit_s,
    }


def run_on_worker(members: dict[str, Any]) -> dict[str, Any]:
    """The verdict as JSON. In a fresh process: an engine's worker has threads, and must not be forked."""
    done = subprocess.run(
        [sys.executable, "-m", "playhead.cli.batch.engine_job"],
        input=json.dumps(members).encode(),
        capture_output=True,
        check=False,
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode("utf-8", "replace")[-_MOST_SAID:]
        why = f"the worker gave no verdict (exit code {done.returncode})"
        return failed(members, why, said).as_json()
    return found


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
        key=members["key"], id=members["id"], name=members["name"], path=_tape_of(members)
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


def _tape_of(members: dict[str, Any]) -> Path:
    """Return the tape: from a disk that the worker shares with the user, or from its store, or from the shared
    store.
    """
    path = Path(members["path"])
    if path.exists():
        return path
    try:
        return find_run_anywhere(None, members["id"])
    except RunNotFound:
        raise RunNotFound(
            f"The worker has no run {members['id']}, and neither has its shared store. `playhead push` the run, and "
            "set PLAYHEAD_REMOTE on the workers.",
            asked=members["id"],
        ) from None


def main() -> None:
    members = json.load(sys.stdin)
    try:
        verdict = _replayed(members)
    except PlayheadError as error:
        verdict = failed(members, str(error))
    json.dump(verdict.as_json(), sys.stdout)


if __name__ == "__main__":
    main()
