"""What a replayed call costs, beside the client's own cost with an answer from memory and beside vcrpy;
how it grows with the tape; how long a large tape takes to open; and hours of a session in how many seconds.

    python -m bench.replay [--calls 200 5000] [--megabytes 100] [--vcrpy 1000] [--crossings 20000]

Every figure comes from a real `playhead replay` of a real program (bench/programs), measured by a clock that no
replay moves; medians of shares of 100 calls, in turn with the same client answered from memory. aiohttp has no
transport in memory: its own cost is that of a real exchange over loopback. Goals: at most 1.5 × for each client,
flat with the tape; 50 × faster than vcrpy; 100 MB open in under 1 s; the session in under 60 s.

requests has two rows. Where an adapter answers from memory, urllib3 and http.client do not run at all; a replay
stands beneath them, as it must for all the others who use them, so all of the client's own code runs as ever.
Its like is a socket in memory: the goal is read against that row. httpx is answered in both cases where its
transport would be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import vcr

from bench.http import running_server
from bench.programs.posts import body
from bench.read import make_tape
from playhead import clock
from playhead.replay.matching.taped import load
from playhead.tape.reader import Tape

PROGRAMS = Path(__file__).parent / "programs"
CLIENTS = ("httpx", "httpx2", "requests", "aiohttp")


def seconds() -> float:
    return clock.mono_ns() / 1e9


def playhead(store: Path, *words: str) -> None:
    told = [sys.executable, "-m", "playhead", *words]
    done = subprocess.run(
        told, env={**os.environ, "PLAYHEAD_HOME": str(store)}, capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"playhead {' '.join(words)}:\n{done.stdout.decode()}{done.stderr.decode()}"
        )


def measure_client(name: str, calls: int, url: str, folder: Path) -> tuple[dict[str, Any], float]:
    """(what the replay reports, own cost), per call in µs."""
    store, report = folder / f"{name}-{calls}", folder / "report.json"
    program = [
        sys.executable,
        str(PROGRAMS / "posts.py"),
        name,
        f"{url}/post",
        str(calls),
        str(report),
    ]
    playhead(store, "record", "--name", "posts", "--", *program)
    recorded = json.loads(report.read_text())
    playhead(store, "replay", "last", "--", *program)
    replayed: dict[str, Any] = json.loads(report.read_text())
    # Where there is no answer from memory: the real exchange.
    return replayed, replayed["own"] or recorded["took"]


def measure_vcrpy(calls: int, url: str, folder: Path) -> tuple[float, float]:
    """(µs a call in the middle of the cassette, seconds to load it)."""
    recorder = vcr.VCR(
        serializer="json", match_on=["method", "scheme", "host", "port", "path", "body"]
    )
    path = str(folder / "cassette.json")
    with recorder.use_cassette(path, record_mode="all"), httpx.Client() as client:
        for number in range(calls):
            client.post(f"{url}/post", content=body(number))
    began = seconds()
    with recorder.use_cassette(path, record_mode="none"), httpx.Client() as client:
        loaded = seconds() - began
        began = seconds()
        for number in range(calls // 2, calls // 2 + 20):
            client.post(f"{url}/post", content=body(number))
        return (seconds() - began) / 20 * 1e6, loaded


def measure_opening(folder: Path, megabytes: int) -> float:
    make_tape(folder / "large", megabytes * 1_000_000)
    took = []
    for _ in range(3):
        began = seconds()
        load(Tape(folder / "large"))
        took.append(seconds() - began)
    return sorted(took)[1]


def measure_session(folder: Path, crossings: int, workers: int) -> tuple[float, float]:
    """(hours that each worker sleeps in it, seconds of replay). The tape is made without the sleeps: they are
    the program's own, and cross no boundary.
    """
    each, nap = crossings // workers, 11.52
    program = [sys.executable, str(PROGRAMS / "session.py"), str(workers), str(each)]
    playhead(folder / "session", "record", "--", *program, "0")
    began = seconds()
    playhead(folder / "session", "replay", "last", "--", *program, str(nap))
    return each * nap / 3600, seconds() - began


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, nargs="*", default=[200, 5000])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--vcrpy", type=int, default=1000)
    parser.add_argument("--crossings", type=int, default=20_000)
    options = parser.parse_args()
    print(
        "| client | calls on the tape | own cost, µs | replayed, µs | ratio |\n|---|---:|---:|---:|---:|"
    )
    with scratch() as folder, running_server() as url:
        taken = 0.0
        for name in CLIENTS:
            for calls in options.calls:
                told, own = measure_client(name, calls, url, folder)
                taken = told["took"] if name == "httpx" else taken
                rows = {name: own}
                if name == "requests":
                    rows = {"requests, adapter": own, "requests, socket": told["own_socket"]}
                for row, cost in rows.items():
                    print(
                        f"| {row} | {calls:,} | {cost:.0f} | {told['took']:.0f} | {told['took'] / cost:.2f} |",
                        flush=True,
                    )
        slow, loaded = measure_vcrpy(options.vcrpy, url, folder)
        print(
            f"| vcrpy, httpx, body matched | {options.vcrpy:,} | | {slow:.0f} | {slow / taken:.0f} × Playhead |"
        )
        print(f"\nvcrpy loads its {options.vcrpy:,} calls in {loaded:.2f} s")
        opened = measure_opening(folder, options.megabytes)
        print(f"opening {options.megabytes} MB for replay: {opened:.2f} s (goal: under 1)")
        hours, took = measure_session(folder, options.crossings, 8)
        print(
            f"a session of {hours:.0f} hours, 8 workers and {options.crossings:,} crossings: "
            f"replayed in {took:.1f} s (goal: under 60)"
        )


if __name__ == "__main__":
    main()
