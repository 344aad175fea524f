"""`kill -9` at 20 moments of `playhead push` to an S3 server: the run is whole or invisible, and the next push completes it."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

from bench.teams.catalogue import seconds
from bench.teams.figures import Figure
from bench.teams.shared_store import running_s3
from playhead.remote.objects import ObjectFolder
from playhead.remote.pulling import pull
from playhead.remote.remote_runs import remote_ids, remote_runs
from playhead.tape import blobs
from playhead.tape.care.verify import verify

MOMENTS = 20
PLAYHEAD = [sys.executable, "-m", "playhead"]


def bench_kills(folder: Path, size: int) -> list[Figure]:
    home = folder / "store"
    words = ["record", "--quiet", "--run-id", "big", "--no-workspace", "--store", str(home)]
    subprocess.run([*PLAYHEAD, *words, "--", sys.executable, "-c", "print(1)"], check=True)
    run = home / "runs" / "big"
    for _ in range(10):
        blobs.push(run, os.urandom(size // 10))
    problems: list[str] = []
    visible = ended = 0
    numbers = count()
    with running_s3(folder) as more:
        environ = {**os.environ, **more}
        whole_s = min(
            seconds(lambda: _push(f"s3://tapes/whole-{next(numbers)}", home, environ, None))
            for _ in range(2)
        )
        for moment in range(MOMENTS):
            limit_s = whole_s * (0.3 + 0.7 * moment / MOMENTS)
            while _push(url := f"s3://tapes/kill-{next(numbers)}", home, environ, limit_s):
                ended += 1
                limit_s *= 0.9  # the machine was faster than before: kill it earlier
            remote = ObjectFolder(url, environ)
            seen = remote_ids(remote)
            visible += bool(seen)
            if seen:
                problems += _differences(remote, run, folder / f"early-{moment}")
            problems += remote_runs(remote, folder / "reader")[1]
            _push(url, home, environ, None)
            problems += _differences(remote, run, folder / f"home-{moment}")
    done = f"{MOMENTS} killed ({ended} more had ended before); {visible} visible at once, {MOMENTS} whole after the next push"
    return [
        Figure(
            what=f"`kill -9` at {MOMENTS} moments of a push of {size / 1e6:.0f} MB ({whole_s:.1f} s)",
            measured=f"{done}; {len(problems)} problems {problems[:2] or ''}".strip(),
            goal="nothing lost, nothing half visible",
            met=not problems,
        )
    ]


def _push(url: str, home: Path, environ: dict[str, str], limit_s: float | None) -> bool:
    """Push, and kill the command after that time. Return whether it had ended before."""
    argv = [*PLAYHEAD, "push", "big", "--store", str(home), "--remote", url]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.DEVNULL) as child:
        try:
            child.wait(limit_s)
        except subprocess.TimeoutExpired:
            child.kill()
            return False
    if child.returncode:
        raise SystemExit(f"playhead push exited with {child.returncode}")
    return True


def _differences(remote: ObjectFolder, run: Path, home: Path) -> list[str]:
    pulled = pull(run.name, remote, home)
    same = _files(pulled) == _files(run)
    return ([] if same else ["the pulled run differs"]) + (
        [] if verify(pulled).ok else ["it is damaged"]
    )


def _files(run: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "marks.json")
    }
