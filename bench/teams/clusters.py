"""A batch of 200 tapes on Dask and on Ray with one and with two workers of this machine, and in shards.

Scheduling is measured with jobs that do nothing (the tape does not exist): each crosses the network to a worker and to its
subprocess, and the answer comes back.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.teams.catalogue import seconds
from bench.teams.figures import Figure
from playhead import clock
from playhead.cli.batch.batch_engines import EnginePool
from playhead.cli.batch.batch_job import Job
from playhead.cli.batch.batch_selection import Target
from playhead.story import Prices
from playhead.story.invariants import Invariants
from playhead.tape.format import close_line, open_line

PLAYHEAD = [sys.executable, "-m", "playhead"]
AGENT = "total = 0\nfor n in range(1_000_000):\n    total += n * n\nprint(total)\n"
_RAY_PORT = 6398
# Tape, outcome, reasons, and the number of verdicts of each case.
Report = list[tuple[str, str, list[str], int]]


def bench_clusters(folder: Path, count: int) -> list[Figure]:
    # Workers start in the present folder. In a checkout they would parse its pyproject.toml for each job.
    with chdir(folder):
        return _clusters(folder, count)


def _clusters(folder: Path, count: int) -> list[Figure]:
    home = _recorded(folder, count)
    rows: list[Figure] = []
    for name, cluster in (("Dask", dask_cluster), ("Ray", ray_cluster)):
        times: list[float] = []
        each_ms = 0.0
        reports: list[Report] = []
        for workers in (1, 2):
            with cluster(home, workers) as (address, _):
                report = folder / f"{name}-{workers}.json"
                times.append(seconds(lambda: _batch(home, address, report)))  # noqa: B023  called at once
                reports.append(_report(report))
                each_ms = _scheduling_ms(address, folder) if workers == 2 else each_ms
        speed = times[0] / times[1]
        rows += [
            Figure(
                what=f"batch of {count} tapes on {name}, one and two workers",
                measured=f"{times[0]:.1f} s and {times[1]:.1f} s: {speed:.2f} ×",
                goal="≥ 1.7 ×",
                met=speed >= 1.7,
            ),
            Figure(
                what=f"scheduling on {name}, 200 jobs that do nothing, two workers",
                measured=f"{each_ms:.1f} ms a job",
                goal="≤ 5 ms a tape",
                met=each_ms <= 5,
            ),
        ]
        report = folder / f"{name}-killed.json"
        with cluster(home, 2) as (address, pids):
            at = _batch(home, address, report, lambda: _kill_one(pids()))
        found = _report(report)
        same = found == reports[0] == reports[1]
        single = len(found) == count and all(one[3] == 1 for one in found)
        passed = sum(one[1] == "passed" for one in found)
        rows.append(
            Figure(
                what=f"one of two {name} workers killed in the middle of {count} tapes",
                measured=f"killed after {at} verdicts; {passed} passed; report {'the same' if same else 'differs'}, "
                f"{'no duplicate' if single else 'duplicates or gaps'}",
                goal="same report, no duplicate",
                met=same and single and passed == count and at > 0,
            )
        )
    return rows


def bench_shards(folder: Path, count: int) -> list[Figure]:
    home = _recorded(folder, count)
    expected: Report = []
    same = True
    for shards in (1, 3, 8):
        files = []
        for number in range(1, shards + 1):
            files.append(folder / f"{number}-of-{shards}.json")
            argv = [*PLAYHEAD, "batch", "tag:env=ci", "--store", str(home), "--trust", "--json"]
            argv += [str(files[-1]), "--shard", f"{number}/{shards}"]
            subprocess.run(argv, capture_output=True, check=False, env=_environ(home))
        merged = folder / f"merged-{shards}.json"
        argv = [*PLAYHEAD, "batch", "merge", *map(str, files), "--json", str(merged)]
        subprocess.run(argv, check=True, capture_output=True)
        expected = expected or _report(merged)
        same = same and _report(merged) == expected and len(expected) == count
    return [
        Figure(
            what=f"batch of {count} tapes with `--shard` of 1, 3 and 8, merged",
            measured="the same report" if same else "the reports differ",
            goal="same merged report",
            met=same,
        )
    ]


def _recorded(folder: Path, count: int) -> Path:
    """One recorded run and copies of it under other names: recording 200 runs would take longer than the batches."""
    home = folder / "store"
    agent = folder / "agent.py"
    agent.write_text(AGENT)
    words = ["record", "--quiet", "--run-id", "run-000", "--tag", "env=ci", "--no-workspace"]
    argv = [*PLAYHEAD, *words, "--store", str(home), "--", sys.executable, str(agent)]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    for number in range(1, count):
        copy = home / "runs" / f"run-{number:03}"
        shutil.copytree(home / "runs" / "run-000", copy)
        manifest = (
            (copy / "manifest.json")
            .read_bytes()
            .replace(b'"run-000"', b'"%s"' % copy.name.encode())
        )
        for path in copy.glob("tape-*.jsonl"):
            old = path.read_bytes()
            new = _renamed(old, copy.name)
            path.write_bytes(new)
            # The manifest has the checksum of each segment, which is that of its last line.
            manifest = manifest.replace(old[-11:-3], new[-11:-3])
        (copy / "manifest.json").write_bytes(manifest)
    return home


def _renamed(lines: bytes, run: str) -> bytes:
    """Put another run id of the same length into a segment, with new checksums."""
    out, crc = [], 0
    for line in lines.splitlines(keepends=True):
        body, _ = open_line(line)
        closed, crc = close_line(body.replace(b'"run-000"', b'"%s"' % run.encode()), crc)
        out.append(closed)
    return b"".join(out)


def _environ(home: Path) -> dict[str, str]:
    return {**os.environ, "PLAYHEAD_HOME": str(home)}


def _batch(home: Path, address: str, report: Path, kill: Callable[[], None] | None = None) -> int:
    """Run a batch on a cluster. Return the number of verdicts that were there when `kill` was called."""
    argv = [*PLAYHEAD, "batch", "tag:env=ci", "--store", str(home), "--json", str(report)]
    errors = report.with_suffix(".errors")
    at = 0
    with errors.open("wb") as file:
        argv += ["--trust", "--on", address]
        before = _verdicts(home)
        child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=file, env=_environ(home))
        while kill is not None and child.poll() is None:
            at = _verdicts(home) - before
            if at >= 10:
                kill()
                break
            clock.sleep(0.05)
        child.wait()
    if not report.exists():
        raise SystemExit(errors.read_text())
    return at


def _verdicts(home: Path) -> int:
    """The lines in the journals of all batches."""
    journals = (path for path in (home / "batches").rglob("*") if path.is_file())
    # The first line of a journal names the batch.
    return sum(max(0, path.read_bytes().count(b"\n") - 1) for path in journals)


def _report(path: Path) -> Report:
    return [
        (
            one["tape"],
            one["outcome"],
            [why for verdict in one["verdicts"] for why in verdict["why"]],
            len(one["verdicts"]),
        )
        for one in json.loads(path.read_text())["cases"]
    ]


def _scheduling_ms(address: str, folder: Path) -> float:
    def jobs(count: int) -> Iterator[Job]:
        for number in range(count):
            name = f"no-tape-{number}"
            yield Job(
                target=Target(key=name, id=name, name=name, path=folder / name),
                round=1,
                home=folder,
                options=(),
                command=(),
                invariants=Invariants(),
                prices=Prices(),
            )

    def timed(count: int) -> float:
        pool = EnginePool(address, None, 60)
        return seconds(lambda: list(pool.verdicts(jobs(count))))

    timed(20)  # starts the subprocesses of the workers
    return timed(200) / 200 * 1000


@contextmanager
def dask_cluster(home: Path, workers: int) -> Iterator[tuple[str, Callable[[], list[int]]]]:
    """A cluster on this machine: its address, and a function that returns the processes of its workers."""
    distributed: Any = import_module("distributed")
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=None,
        env={"PLAYHEAD_HOME": str(home)},
    ) as cluster:
        found = cluster.workers
        yield f"dask:{cluster.scheduler_address}", lambda: [one.pid for one in found.values()]


@contextmanager
def ray_cluster(home: Path, workers: int) -> Iterator[tuple[str, Callable[[], list[int]]]]:
    script = str(Path(sys.executable).with_name("ray"))
    start = [script, "start", "--head", "--num-cpus", str(workers), "--port", str(_RAY_PORT)]
    start += ["--include-dashboard", "false", "--disable-usage-stats"]
    subprocess.run(start, check=True, env=_environ(home), stdout=subprocess.DEVNULL)
    try:
        yield f"ray:127.0.0.1:{_RAY_PORT}", _ray_workers
    finally:
        subprocess.run([script, "stop"], check=True, stdout=subprocess.DEVNULL)


def _ray_workers() -> list[int]:
    """The processes that run jobs: Ray gives them the name of the function."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if said.startswith(b"ray::run_on_worker"):
            found.append(int(folder.name))
    return found


def _kill_one(pids: list[int]) -> None:
    if not pids:
        raise SystemExit("no worker runs a job")
    os.kill(pids[0], signal.SIGKILL)
