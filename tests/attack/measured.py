"""Run a command with limits, and measure it: CPU seconds and memory, which do not depend on the machine's load."""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Measured(NamedTuple):
    """`cpu_s` of the command and its children; `rss_mb` of the largest of them."""

    code: int
    out: str
    cpu_s: float
    rss_mb: float
    hangs: bool = False

    @property
    def has_traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.out


_PROGRAM = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, timeout=float(sys.argv[1]))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
sys.stdout.buffer.write(done.stdout[:200_000])
sys.stdout.buffer.flush()
print(f"\\n{done.returncode} {used.ru_utime + used.ru_stime} {used.ru_maxrss}", flush=True)
"""


def playhead(store: Path, words: Sequence[str], *, most_s: float = 120) -> Measured:
    argv = [sys.executable, "-c", _PROGRAM, str(most_s), sys.executable, "-m", "playhead", *words]
    env = {**os.environ, "PLAYHEAD_HOME": str(store)}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000, 6_000_000_000))

    try:
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, errors="replace", preexec_fn=limit, check=False,
            cwd=store, timeout=most_s + 60,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Measured(-1, f"no end after {most_s:.0f} s", 0.0, 0.0, hangs=True)
    head, _, last = done.stdout.rstrip("\n").rpartition("\n")
    try:
        code, cpu, rss = last.split()
    except ValueError:
        said = (done.stdout + done.stderr)[-300:]
        return Measured(-1, said, 0.0, 0.0, hangs="TimeoutExpired" in said)
    return Measured(int(code), head, float(cpu), int(rss) / 1024)
