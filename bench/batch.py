"""What a batch costs beside its replays, and what two cores give: `python bench/batch.py`.

Knows how to record a small agent many times over; asks the command itself, as CI would. Memory is that
of the batch's own process, its largest.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playhead import clock
from playhead.testing import ScriptedLLM
from playhead.testing.script import Reply

OVERHEAD_LIMIT_S = 0.150
SPEED_UP_LIMIT = 1.7
AGENT = """
import http.client, json, os, sys, urllib.parse
url = urllib.parse.urlsplit(os.environ["ANTHROPIC_BASE_URL"])
connection = http.client.HTTPConnection(url.hostname, url.port)
body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": [{"role": "user", "content": "Hi."}]}
connection.request("POST", "/v1/messages", json.dumps(body), {"content-type": "application/json"})
print(json.loads(connection.getresponse().read())["content"][0]["text"])
"""


def make_store(folder: Path, count: int) -> tuple[Path, float]:
    """One recorded run, copied: batches look at ids. And what the agent itself takes, recorded."""
    (folder / "agent.py").write_text(AGENT)
    store = folder / "store"
    command = [sys.executable, str(folder / "agent.py")]
    with ScriptedLLM([Reply(text="Hello.")]) as llm:
        argv = [sys.executable, "-m", "playhead", "record", "--quiet", "--store", str(store), "--"]
        subprocess.run([*argv, *command], env={**os.environ, **llm.environ()}, check=True)
    (first,) = (store / "runs").iterdir()
    for number in range(1, count):
        twin = f"{first.name}{number:04d}"
        shutil.copytree(first, store / "runs" / twin)
        manifest = store / "runs" / twin / "manifest.json"
        manifest.write_text(manifest.read_text().replace(f'"{first.name}"', f'"{twin}"'))
    return store, replay_alone(store, first)


def replay_alone(store: Path, run: Path) -> float:
    """Processor time of the agent's own process in a replay: what any runner of it has to pay."""
    report = store / "report.json"
    argv = [sys.executable, "-m", "playhead", "replay", str(run), "--store", str(store)]
    spent = []
    for _ in range(5):
        subprocess.run([*argv, "--quiet", "--report", str(report)], check=True, capture_output=True)
        spent.append(float(re.search(r'"replayed": ([0-9.]+)', report.read_text())[1]))
    return min(spent)


def measure(store: Path, jobs: int, *more: str) -> tuple[float, float, float]:
    """Seconds, processor seconds, and megabytes of the largest process."""
    argv = [sys.executable, "-m", "playhead", "batch", "name:*", "--store", str(store)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = clock.mono_ns()
    with subprocess.Popen(
        [*argv, "--jobs", str(jobs), *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as batch:
        peak = 0.0
        for _ in batch.stderr:
            status = Path(f"/proc/{batch.pid}/status").read_text()
            peak = max(peak, int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1000)
    took = (clock.mono_ns() - began) / 1e9
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if batch.returncode:
        sys.exit(f"the batch left with {batch.returncode}")
    return took, spent, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tapes", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store, alone = make_store(Path(folder), asked.tapes)
        started, _, small = measure(store, 1, "--shard", f"1/{asked.tapes}")
        one, spent, large = measure(store, 1)
        two, _, _ = measure(store, 2)
    overhead = (one - started) / asked.tapes - alone
    load = os.getloadavg()[0]
    sys.stdout.write(
        f"{asked.tapes} tapes, load {load:.1f}\n"
        f"  {one:7.1f} s   one core ({spent:.1f} s of processor time)\n"
        f"  {two:7.1f} s   two cores: {one / two:.2f} times as fast (at least {SPEED_UP_LIMIT})\n"
        f"  {alone * 1000:7.0f} ms  the agent alone, from its start to its end\n"
        f"  {overhead * 1000:7.0f} ms  on top of it a tape (at most {OVERHEAD_LIMIT_S * 1000:.0f})\n"
        f"  {small:7.0f} MB  for a handful of tapes, {large:.0f} MB for all\n"
    )
    if overhead > OVERHEAD_LIMIT_S or one / two < SPEED_UP_LIMIT:
        sys.exit("slower than it has to be")


if __name__ == "__main__":
    main()
