"""How long `playhead list` takes in a store of ten thousand runs: `python bench/list.py`.

Knows how to make many small runs quickly; asks the command itself, as a person would.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playhead import clock
from playhead.tape.format import FORMAT_VERSION, close_line
from playhead.tape.manifest import Manifest, SegmentSummary, write_manifest

LIMIT_S = 0.5
STEP_NS = 60_000_000_000
QUESTIONS = {
    "list": [],
    "list --json": ["--json"],
    "list --status failed (1 in 100)": ["--status", "failed"],
    "list --tag env=rare (none)": ["--tag", "env=rare"],
    "list --name 'agent-77*'": ["--name", "agent-77*"],
    "list --since 2d --json": ["--since", "2d", "--json"],
    "list --limit 0 --json (all)": ["--limit", "0", "--json"],
}


def make_runs(home: Path, count: int) -> None:
    now = clock.wall_ns()
    for number in range(count):
        started = now - (count - number) * STEP_NS
        make_run(home, clock.new_run_id(started), number, started)


def make_run(home: Path, run_id: str, number: int, started: int) -> None:
    """As a recorder leaves it: a manifest and one segment of a few events."""
    path = home / "runs" / f"{run_id}{number:05d}"
    path.mkdir(parents=True)
    failed = number % 100 == 0
    told = [
        ("segment.start", {"format": FORMAT_VERSION, "run": path.name, "generation": 0}),
        ("run.start", {"run": path.name, "name": f"agent-{number}"}),
        ("call", {"boundary": "tool", "name": "lookup", "request": {"arguments": {"n": number}}}),
        ("outcome", {"call": 2, "how": "returned", "took_ns": 1_000_000, "value": number}),
        ("run.end", {"status": "failed" if failed else "ok", "took_ns": 5_000_000}),
        ("segment.end", {"events": 6, "lost": 0}),
    ]
    lines, crc = [], 0
    for seq, (kind, data) in enumerate(told):
        members = {"seq": seq, "kind": kind, "wall": started + seq, "mono": 10**9 + seq}
        members |= {"pid": 4_194_999, "lane": "main", "parent": 0, "data": data}
        line, crc = close_line(json.dumps(members, separators=(",", ":")).encode()[:-1], crc)
        lines.append(line)
    raw = b"".join(lines)
    (path / "tape-4194999.jsonl").write_bytes(raw)
    manifest = Manifest(
        run=path.name,
        name=f"agent-{number}",
        status="failed" if failed else "ok",
        started_at=clock.iso(started),
        started_ns=started,
        duration_s=0.005,
        command=["python", "agent.py", "--number", str(number)],
        project="/srv/shop",
        tags={"env": "ci", "branch": f"b{number % 7}"},
        events=len(told),
        segments=[SegmentSummary(name="4194999", events=6, bytes=len(raw), crc=f"{crc:08x}")],
    )
    write_manifest(path, manifest)


def measure(home: Path, options: list[str], times: int) -> float:
    """The quickest of so many: what else the machine does is not ours."""
    argv = [sys.executable, "-m", "playhead", "list", "--store", str(home), *options]
    quickest = float("inf")
    for _ in range(times):
        began = clock.mono_ns()
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        quickest = min(quickest, (clock.mono_ns() - began) / 1e9)
    return quickest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        make_runs(home, asked.runs)
        os.sync()
        first = measure(home, [], times=1)
        sys.stdout.write(
            f"{asked.runs:,} runs; the first list, which makes the library: {first:.2f} s\n"
        )
        measure(home, ["--limit", "0", "--json"], times=1)
        slow = 0
        for name, options in QUESTIONS.items():
            took = measure(home, options, asked.times)
            slow += took > LIMIT_S and "--limit 0" not in name
            sys.stdout.write(f"  {took * 1000:6.0f} ms  playhead {name}\n")
    if slow:
        sys.exit(f"{slow} of them took more than {LIMIT_S} s")


if __name__ == "__main__":
    main()
