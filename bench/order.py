"""What it costs to note the order of concurrent work while recording, with points off beside it.

    python -m bench.order [gather job lock contended]

Processor time of the recorded process, so neighbours of the machine count little. Of interleaved rounds the quickest
counts. Goals: 3 % for a gather of 1,000 calls, 5 us for a job of an executor, 10 % for a lock without contention, 35 %
with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.http import running_server
from bench.report import put_table

PROGRAM = Path(__file__).parent / "programs" / "order_costs.py"
NAMES = {
    "gather": ("a call of `asyncio.gather` of 1,000", "+3 %"),
    "job": ("a job of `ThreadPoolExecutor`", "+5 us"),
    "lock": ("`with lock`, one thread", "+10 %"),
    "contended": ("`with lock`, four threads", "+35 %"),
}


def record(url: str, store: str, cases: list[str]) -> dict[str, dict[str, list[float]]]:
    argv = [sys.executable, "-m", "playhead", "record", "--store", store, "--no-seal", "--"]
    done = subprocess.run(
        [*argv, sys.executable, str(PROGRAM), url, *cases], check=True, stdout=subprocess.PIPE
    )
    measured: dict[str, dict[str, list[float]]] = json.loads(done.stdout)
    return measured


def main() -> None:
    with running_server() as url, tempfile.TemporaryDirectory() as store:
        cases = [case for case in NAMES if case in sys.argv] or list(NAMES)
        took = record(url, store, cases)
    lines = [
        "| | points off, us | points on, us | ratio | goal |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        name, goal = NAMES[case]
        off, on = (min(took[case][way]) for way in ("off", "on"))
        lines.append(f"| {name} | {off:.3f} | {on:.3f} | {on / off:.2f} | {goal} |")
    table = "\n".join(lines)
    print(table)
    if "--write" in sys.argv:
        put_table("order", table)


if __name__ == "__main__":
    main()
