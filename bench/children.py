"""The cost of recording a program that starts many short children, from start to end of each child.

    python -m bench.children [ROUNDS]

Bare, `record --no-workspace` and `record` take turns within each round, so that the load of the machine affects them
alike. Medians for one child: wall time, processor time of the program, and the difference to bare. The program reads
no clock that is recorded.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_CHILDREN = 150
# `os.times` is not recorded.
_PROGRAM = f"""
import os, subprocess, sys
for _ in range(20):
    subprocess.run(["true"])
before = os.times()
for _ in range({_CHILDREN}):
    subprocess.run(["true"])
after = os.times()
own = after.user + after.system - before.user - before.system
with open(sys.argv[1], "a") as file:
    file.write(f"{{after.elapsed - before.elapsed}} {{own}}\\n")
"""
_GOAL_MS = 0.1


def main(rounds: int) -> None:
    playhead = [sys.executable, "-m", "playhead", "record", "-q"]
    ways: dict[str, list[str]] = {
        "bare": [],
        "record --no-workspace": [*playhead, "--no-workspace", "--"],
        "record": [*playhead, "--"],
    }
    took: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as made:
        project, figures = Path(made, "project"), Path(made, "figures")
        project.mkdir()
        (project / "program.py").write_text(_PROGRAM)
        subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
        env = {**os.environ, "PLAYHEAD_HOME": str(Path(made, "store"))}
        for _ in range(rounds):
            for way, before in ways.items():
                figures.write_text("")
                argv = [*before, sys.executable, "program.py", str(figures)]
                subprocess.run(argv, cwd=project, env=env, check=True)
                wall, own = map(float, figures.read_text().split())
                took[way].append((wall / _CHILDREN * 1000, own / _CHILDREN * 1000))
    lines = [
        f"{rounds} rounds of {_CHILDREN} children; medians for one child in ms, and more than bare"
    ]
    lines.append(f"{'':24}{'wall':>8}{'':8}{'CPU':>12}")
    bare = [statistics.median(each) for each in zip(*took["bare"], strict=True)]
    cost = 0.0
    for way, each in took.items():
        wall, own = (statistics.median(one) for one in zip(*each, strict=True))
        cost = own - bare[1]
        lines.append(f"{way:24}{wall:8.2f} {wall - bare[0]:+7.2f}{own:12.2f} {cost:+7.2f}")
    lines.append(f"goal: at most {_GOAL_MS} ms of processor time; it is {cost:.2f}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
