"""What the server answers how quickly, and whether a recording suffers from 200 readers:
`python -m bench.serve`.

Knows how to make a long tape; asks a real `playhead serve` over real sockets.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from typing import Self

from bench.list import make_runs
from playhead import clock
from playhead.tape.care.verify import verify
from playhead.tape.format import FORMAT_VERSION, close_line
from playhead.tape.manifest import Manifest, write_manifest
from playhead.tape.reader import Tape

LONG = "20261115-000000-long"
READERS = 200
RECORDER = """
import sys, time
import playhead

@playhead.tool
def lookup(n):
    return {"n": n, "text": "x" * 200}

with playhead.record(name="recorded", store=sys.argv[1]) as run:
    print(run.id, flush=True)
    begun, worked = time.perf_counter(), time.process_time()
    for n in range(int(sys.argv[2])):
        lookup(n)
        time.sleep(0.0005)
    print(time.perf_counter() - begun, time.process_time() - worked, flush=True)
"""


def make_long_run(home: Path, events: int) -> None:
    """Turns of tool calls, as an agent that runs all night leaves them."""
    path = home / "runs" / LONG
    path.mkdir(parents=True)
    started, pid = clock.wall_ns() - 3_600_000_000_000, 4_194_999
    crc = seq = 0
    with (path / f"tape-{pid}.jsonl").open("wb") as tape:

        def add(kind: str, data: object) -> int:
            nonlocal crc, seq
            members = {"seq": seq, "kind": kind, "wall": started + seq, "mono": 10**9 + seq * 10**6}
            members |= {"pid": pid, "lane": "main", "parent": 0, "data": data}
            line, crc = close_line(json.dumps(members, separators=(",", ":")).encode()[:-1], crc)
            tape.write(line)
            seq += 1
            return seq - 1

        add("segment.start", {"format": FORMAT_VERSION, "run": LONG, "generation": 0})
        add("run.start", {"run": LONG, "name": "night"})
        while seq < events - 2:
            asked = {"boundary": "tool", "name": f"tool_{seq % 7}"}
            call = add("call", {**asked, "request": {"arguments": {"n": seq, "q": "word " * 20}}})
            add("outcome", {"call": call, "how": "returned", "took_ns": 10**6, "value": "y" * 100})
        add("run.end", {"status": "ok", "took_ns": seq * 10**6})
        add("segment.end", {"events": seq + 1, "lost": 0})
    write_manifest(
        path,
        Manifest(run=LONG, name="night", status="ok", started_ns=started,
                 started_at=clock.iso(started), pid=pid, host=clock.host(), events=seq,
                 duration_s=seq / 1000),
    )  # fmt: skip


class Served:
    """A server in a process of its own."""

    def __init__(self, home: Path) -> None:
        argv = [sys.executable, "-m", "playhead", "serve", "--port", "0", "--json"]
        self.process = subprocess.Popen(
            [*argv, "--store", str(home)], stdout=subprocess.PIPE, text=True
        )
        url = json.loads(self.process.stdout.readline())["url"]
        self.port = int(url.rstrip("/").rpartition(":")[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)

    def get(self, path: str, **headers: str) -> tuple[float, int, bytes, dict[str, str]]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=400)
        begun = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        raw = answer.read()
        took = time.perf_counter() - begun
        connection.close()
        return took, answer.status, raw, dict(answer.getheaders())


def single_answers(server: Served, runs: int) -> None:
    base = f"/api/recordings/{LONG}"
    before = _worked(server.process.pid)
    took, _, raw, headers = server.get(base)
    worked = _worked(server.process.pid) - before
    print(
        f"model of a long run, first      {took * 1000:8.0f} ms   {len(raw) / 1e6:.1f} MB, {worked:.1f} s of processor time"
    )
    tag = {"If-None-Match": headers["etag"]}
    page = json.loads(server.get(f"{base}/events?limit=500")[2])["next"]
    asked: dict[str, tuple[str, dict[str, str]]] = {
        "model, again": (base, {}),
        "model, unchanged (304)": (base, tag),
        "a call": (f"{base}/calls/4000", {}),
        "500 events, first page": (f"{base}/events?limit=500", {}),
        "500 events, any page": (f"{base}/events?limit=500&after={page}", {}),
        f"last 20 of {runs:,} runs": ("/api/recordings?limit=20", {}),
        f"failed ones of {runs:,} runs": ("/api/recordings?limit=20&status=failed", {}),
        "health": ("/healthz", {}),
    }
    first_answers(server, "list", "/api/recordings?limit=20", runs)
    first_answers(server, "search", "/api/recordings?limit=20&q=word", runs)
    for name, (path, more) in asked.items():
        server.get(path, **more)
        times = [server.get(path, **more)[0] * 1000 for _ in range(7)]
        print(f"{name:<31} {statistics.median(times):8.1f} ms")
    print(f"server's memory                 {_memory(server.process.pid):8.0f} MB")


def first_answers(server: Served, what: str, path: str, runs: int) -> None:
    """Of a library that was never indexed: when something is there, and when everything is."""
    begun = time.perf_counter()
    took, _, raw, _ = server.get(path)
    known = json.loads(raw)["total"]
    print(f"first {what} ever, {runs:,} runs {took * 1000:10.0f} ms   {known:,} found so far")
    while json.loads(raw)["indexing"] is not None:
        time.sleep(0.5)
        raw = server.get(path)[2]
    print(f"first {what} ever, complete {time.perf_counter() - begun:13.1f} s")


def _worked(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000


async def reader(
    port: int, paths: list[str], stop: asyncio.Event, heard: Counter[int], times: list[float]
) -> None:
    """One after the other over a connection that is kept."""
    number = len(heard)
    while not stop.is_set():
        incoming, outgoing = await asyncio.open_connection("127.0.0.1", port)
        try:
            while not stop.is_set():
                path = paths[number % len(paths)]
                number += 7
                begun = time.perf_counter()
                outgoing.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                head = await incoming.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                await incoming.readexactly(length)
                heard[int(head.split()[1])] += 1
                times.append(time.perf_counter() - begun)
        finally:
            outgoing.close()


def start_recording(home: Path, calls: int) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDER, str(home), str(calls)], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


async def recorded_while_read(
    home: Path, port: int, calls: int
) -> tuple[str, list[float], Counter[int], list[float]]:
    process, run = start_recording(home, calls)
    base = f"/api/recordings/{run}"
    paths = [
        "/api/recordings?limit=20",
        base,
        f"{base}/events?limit=100",
        "/healthz",
        f"/api/recordings/{LONG}/calls/3",
        f"{base}/events?limit=20&kind=call",
        "/api/recordings?q=recorded&limit=5",
    ]
    stop, heard, times = asyncio.Event(), Counter(), []
    readers = [
        asyncio.create_task(reader(port, paths[n % 7 :] + paths[: n % 7], stop, heard, times))
        for n in range(READERS)
    ]
    took = [float(one) for one in (await asyncio.to_thread(process.stdout.readline)).split()]
    stop.set()
    await asyncio.gather(*readers)
    process.wait(60)
    return run, took, heard, times


def under_load(home: Path, server: Served, calls: int) -> bool:
    process, alone = start_recording(home, calls)
    before = [float(one) for one in process.stdout.readline().split()]
    process.wait(60)
    run, took, heard, times = asyncio.run(recorded_while_read(home, server.port, calls))
    verdict = verify(home / "runs" / run)
    events = [sum(1 for _ in Tape(home / "runs" / one).events()) for one in (alone, run)]
    manifest = Tape(home / "runs" / run).manifest
    broken = sum(count for status, count in heard.items() if status >= 500)
    print(f"\n{READERS} readers while {calls:,} calls are recorded")
    print(
        f"  a call's recording: {before[1] / calls * 1e6:.0f} µs of processor time alone, {took[1] / calls * 1e6:.0f} µs with readers"
    )
    print(
        f"  the run: {before[0]:.2f} s alone, {took[0]:.2f} s with readers, on {os.cpu_count()} cores"
    )
    print(
        f"  events {events[1]:,} (alone {events[0]:,}), lost {manifest.lost}, damages {len(verdict.damages)}, status {manifest.status}"
    )
    ordered = sorted(times)
    print(f"  {len(times):,} answers, {dict(heard)}, 5xx: {broken}")
    print(
        f"  median {ordered[len(ordered) // 2] * 1000:.0f} ms, 95 % within {ordered[len(ordered) * 95 // 100] * 1000:.0f} ms"
    )
    return not broken and events[0] == events[1] and not manifest.lost and not verdict.damages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--calls", type=int, default=5_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "store"
        os.environ["PLAYHEAD_HOME"] = str(home)
        make_runs(home, asked.runs)
        make_long_run(home, asked.events)
        with Served(home) as server:
            single_answers(server, asked.runs)
            fine = under_load(home, server, asked.calls)
    print("recording unharmed, no 5xx" if fine else "NOT fine")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
