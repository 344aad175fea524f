"""Run many mutants in worker processes, as many at a time as there are cores, and watch the workers."""

import json
import os
import queue
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.attack.mutant_worker import EVERY, SLOWEST_S
from tests.attack.result import MOST_MB, Finding, Progress, Row

# Mutants of one worker. A new process now and then: a command has a process of its own, and what many commands leave in
# one process must not count as the memory of one.
BATCH = 5000
# A worker prints a line after every few mutants, and a signal ends a mutant that hangs in Python code.
_SILENCE_S = 4 * SLOWEST_S
_KINDS = {
    "executed:": "executed",
    "read outside": "outside",
    "wrote outside": "outside",
    "changed outside": "outside",
    "changed a file outside": "outside",
    "exported a file": "outside",
    "showed a file": "outside",
    "does not work unmutated": "broken",
}


def mutated(count: int, seed: int, until: float) -> Row:
    """Run mutants in process, until all are tried or time is up."""
    return _Pool(count, seed, until).run()


class _Pool:
    def __init__(self, count: int, seed: int, until: float) -> None:
        self._seed, self._until = seed, until
        self._row = Row("mutants in process", wanted=count)
        self._progress = Progress(self._row)
        # The first number and the count of each batch.
        self._waiting: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        for first in range(0, count, BATCH):
            self._waiting.put((first, min(BATCH, count - first)))

    def run(self) -> Row:
        width = os.cpu_count() or 1
        with ThreadPoolExecutor(width) as pool:
            for one in [pool.submit(self._work) for _ in range(width)]:
                one.result()
        row = self._row
        row.unfinished = row.tried < row.wanted
        row.note = f"seed {self._seed}, at most {row.mb:.0f} MB"
        return row

    def _work(self) -> None:
        while time.monotonic() < self._until:
            try:
                first, count = self._waiting.get_nowait()
            except queue.Empty:
                return
            reached = self._one_worker(first, count)
            if reached < first + count:
                self._waiting.put((reached, first + count - reached))

    def _one_worker(self, first: int, count: int) -> int:
        """Run one worker. The result is the number with which another one continues if it hangs or dies."""
        numbers = map(str, (self._seed, first, count))
        argv = [sys.executable, "-m", "tests.attack.mutant_worker", *numbers]
        at, end, rest = first, first + count, b""
        with subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=Path(__file__).parents[2],
        ) as worker:  # fmt: skip
            assert worker.stdout is not None
            said = ""
            while True:
                ready, _, _ = select.select([worker.stdout], [], [], _SILENCE_S)
                raw = os.read(worker.stdout.fileno(), 1 << 16) if ready else b""
                if not raw:
                    break
                *lines, rest = (rest + raw).split(b"\n")
                for line in lines:
                    if not line.startswith(b"{"):
                        said = (said + line.decode("utf-8", "replace") + "\n")[-800:]
                        continue
                    one = json.loads(line)
                    if "at" in one:
                        self._progress.add(one["at"] - at)
                        at = one["at"]
                        self._measure(one["mb"], at)
                    else:
                        self._progress.add(0, [_finding(one)])
                if time.monotonic() > self._until:
                    worker.kill()
                    return end
            worker.kill()
        if at == end:
            return end
        if ready:
            found = Finding("broken", f"a worker died at mutant {at}, seed {self._seed}: {said}")
        else:
            found = Finding("hang", f"between mutants {at} and {at + EVERY}, seed {self._seed}")
        self._progress.add(0, [found])
        # Another worker tries the mutants after it; those beside it count as not tried.
        return min(at + EVERY, end)

    def _measure(self, mb: float, at: int) -> None:
        if self._row.mb <= MOST_MB < mb:
            self._progress.add(0, [Finding("memory", f"{mb:.0f} MB before mutant {at}")])
        self._row.mb = max(self._row.mb, mb)


def _finding(one: dict[str, Any]) -> Finding:
    what = str(one["what"])
    kind = next((kind for start, kind in _KINDS.items() if what.startswith(start)), "traceback")
    if "Hangs: after" in what:
        kind = "hang"
    return Finding(kind, f"mutant {one['number']}, {one['verb']}: {what[-700:]}")
