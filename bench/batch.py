"""What a batch costs beside its replays, and what two cores give: `python -m bench.batch`.

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
from playhead.cli.batch.batch_job import Job, replay_one, warm_up
from playhead.cli.batch.batch_selection import Target
from playhead.llm.llm_script import Reply
from playhead.story import Prices
from playhead.story.invariants import Invariants
from playhead.testing import ScriptedLLM

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
    """One recorded run, and copies of its folder. And the processor time of the agent alone."""
    (folder / "agent.py").write_text(AGENT)
    store = folder / "store"
    command = [sys.executable, str(folder / "agent.py")]
    with ScriptedLLM([Reply(text="Hello.")] * 11) as llm:
        env = {**os.environ, **llm.environ()}
        alone = min(processor_time(command, env) for _ in range(10))
        argv = [sys.executable, "-m", "playhead", "record", "--quiet", "--store", str(store), "--"]
        subprocess.run([*argv, *command], env=env, check=True, stdout=subprocess.DEVNULL)
    (first,) = (store / "runs").iterdir()
    for number in range(1, count):
        shutil.copytree(first, store / "runs" / f"{first.name}{number:04d}")
    return store, alone


def processor_time(command: list[str], env: dict[str, str]) -> float:
    before = spent_by_children()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return spent_by_children() - before


def spent_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(store: Path, jobs: int, *more: str) -> tuple[float, float, float]:
    """Seconds, processor seconds, and megabytes of the largest process."""
    argv = [sys.executable, "-m", "playhead", "batch", "name:*", "--store", str(store)]
    before = spent_by_children()
    began = clock.mono_ns()
    with subprocess.Popen(
        [*argv, "--jobs", str(jobs), *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as batch:
        peak = 0.0
        for _ in batch.stderr:
            status = Path(f"/proc/{batch.pid}/status").read_text()
            peak = max(peak, int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1000)
    took = (clock.mono_ns() - began) / 1e9
    if batch.returncode:
        sys.exit(f"the batch left with {batch.returncode}")
    return took, spent_by_children() - before, peak


def own_share(store: Path) -> float:
    """Processor time of the batch's own process a tape, without the agent that it starts."""
    run = min((store / "runs").iterdir())
    target = Target(key=run.name, id=run.name, name="agent", path=run)
    prices = Prices()
    warm_up(prices)
    job = Job(
        target=target, round=1, home=store, options=(), command=(), invariants=Invariants(),
        prices=prices,
    )  # fmt: skip
    source, sink = os.pipe()
    if os.fork() == 0:
        scratch = store / "scratch"
        scratch.mkdir()
        before = clock.cpu_ns()
        replay_one(job, scratch)
        os.write(sink, str(clock.cpu_ns() - before).encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as pipe:
        spent = int(pipe.read()) / 1e9
    os.wait()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tapes", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store, alone = make_store(Path(folder), asked.tapes)
        _, started, small = measure(store, 1, "--shard", f"1/{asked.tapes}")
        one, spent, large = measure(store, 1)
        two, _, _ = measure(store, 2)
        own = own_share(store)
    # By processor time: what else the machine does is not ours.
    overhead = (spent - started) / (asked.tapes - 1) - alone
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    sys.stdout.write(
        f"{asked.tapes} tapes, {cores} cores, load {load:.1f}\n"
        f"  {one:7.1f} s   one at a time ({spent:.1f} s of processor time)\n"
        f"  {two:7.1f} s   two at a time: {one / two:.2f} times as fast (at least {SPEED_UP_LIMIT})\n"
        f"  {alone * 1000:7.0f} ms  processor time of the agent alone\n"
        f"  {overhead * 1000:7.0f} ms  on top of it a tape (at most {OVERHEAD_LIMIT_S * 1000:.0f})\n"
        f"  {own * 1000:7.0f} ms  of that the batch itself; the rest is Playhead inside the agent\n"
        f"  {small:7.0f} MB  of the batch after the first tapes, {large:.0f} MB after all\n"
    )
    if load > cores + 1:
        sys.stdout.write("others use this machine: the times say little\n")
    elif overhead > OVERHEAD_LIMIT_S or one / two < SPEED_UP_LIMIT:
        sys.exit("slower than it has to be")


if __name__ == "__main__":
    main()
