"""What recording costs an iteration of a loop, what it takes on disk, and how long the steps of a shell
script last: `python -m bench.loop`.

Knows how to make a response as an agent streams it; no agent is run. The cost is the time in a session
that is recorded less that in one that is not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from bench.report import put_table
from playhead import clock, loop
from playhead.events import LEVELS

LIMIT_MS = 100.0
RESPONSE = 200 * 1024
PIECE = 4096
PROMPT = "Go on with the work as planned, and say stop when nothing is left.\n" * 30
SIZES = {"minimal": 800, "standard": 2_300, "full": None}


def response() -> bytes:
    """So much of `claude -p --output-format stream-json --verbose`."""
    lines, size = [], 0
    told = {"session_id": "0f9a", "uuid": "7e1c", "parent_tool_use_id": None}
    while size < RESPONSE:
        number = len(lines)
        said = {
            "type": "text",
            "text": f"Step {number}: the total is rounded twice, so I look there.",
        }
        use = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "Bash",
            "input": {"command": "pytest"},
        }
        output = "tests/test_cart.py::test_total FAILED  assert 49.9 == 49.91\n" * 12
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": output}
        message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5"}
        for block in (said, use):
            told_so = {"type": "assistant", "message": {**message, "content": [block]}, **told}
            lines.append(json.dumps(told_so).encode() + b"\n")
        answered = {"type": "user", "message": {"role": "user", "content": [result]}, **told}
        lines.append(json.dumps(answered).encode() + b"\n")
        size += sum(map(len, lines[-3:]))
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", **told}
    usage = {"input_tokens": 52_000, "output_tokens": 9_000}
    lines.append(json.dumps({**end, "usage": usage, "total_cost_usd": 0.29}).encode() + b"\n")
    return b"".join(lines)


def iterate(store: Path, level: str | None, count: int) -> list[float]:
    """Milliseconds of a processor that each iteration takes."""
    raw = response()
    took = []
    with loop.open_session(
        "s", [f"work:{count}"], store=store, record=level is not None, level=level
    ) as session:
        for iteration in session.iterations():
            began = clock.cpu_ns()
            iteration.prompt(PROMPT)
            for at in range(0, len(raw), PIECE):
                iteration.piece(raw[at : at + PIECE])
            iteration.end(exit_code=0)
            took.append((clock.cpu_ns() - began) / 1e6)
    return took


def bytes_of_one(run: Path, count: int) -> int:
    """Files and events of an iteration, without what a run has once. A file of two names counts once."""
    found = (path.stat() for path in run.rglob("*") if path.is_file() and path.parent != run)
    files = sum({one.st_ino: one.st_size for one in found}.values())
    lines = b"".join(path.read_bytes() for path in run.glob("tape-*")).splitlines(True)
    told = sum(
        len(line) for line in lines if b'"kind":"run.' not in line and b'"segment.' not in line
    )
    return (files + told) // count


def steps(store: Path, times: int) -> dict[str, list[tuple[float, float]]]:
    """Of each step of a shell script: milliseconds until it was over, and those of a processor."""
    answer = store / "answer.jsonl"
    store.mkdir(exist_ok=True)
    answer.write_bytes(response())
    env = {**os.environ, "PLAYHEAD_HOME": str(store)}
    took: dict[str, list[tuple[float, float]]] = {}
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]

    def step(name: str, *words: str) -> None:
        argv = [sys.executable, "-m", "playhead", "session", name, "s", *words]
        began = clock.mono_ns()
        pid = os.posix_spawn(argv[0], argv, env, file_actions=silent)
        _, status, used = os.wait4(pid, 0)
        if status:
            sys.exit(f"session {name} failed")
        wall = (clock.mono_ns() - began) / 1e6
        took.setdefault(name, []).append((wall, (used.ru_utime + used.ru_stime) * 1e3))

    for _ in range(times):
        step("init", "--level", "full", "--force")
        step("iteration-start")
        step("prompt", str(answer))
        step("response", str(answer), "--exit-code", "0")
        step("end")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument(
        "--write", action="store_true", help="put the tables into docs/benchmarks.md"
    )
    asked = parser.parse_args()
    rows = ["| level | added to an iteration | on disk an iteration |", "|---|---|---|"]
    slow = 0
    with tempfile.TemporaryDirectory() as folder:
        alone = statistics.median(iterate(Path(folder) / "none", None, asked.count))
        for level in LEVELS:
            store = Path(folder) / level
            added = statistics.median(iterate(store, level, asked.count)) - alone
            size = bytes_of_one(store / "runs" / "s", asked.count)
            rows.append(f"| {level} | {added:.1f} ms | {size / 1000:.1f} KB |")
            limit = SIZES[level]
            slow += added > LIMIT_MS or (limit is not None and size > limit)
        rows += ["", "| step | quickest | median | processor |", "|---|---|---|---|"]
        for name, times in steps(Path(folder) / "steps", asked.times).items():
            walls, used = zip(*times, strict=True)
            shown = (min(walls), statistics.median(walls), min(used))
            rows.append(
                f"| `session {name}` | " + " | ".join(f"{one:.0f} ms" for one in shown) + " |"
            )
            # A machine that does other things as well makes us wait, and is not ours to judge.
            slow += min(used) > LIMIT_MS
    table = "\n".join(rows)
    print(table)
    if asked.write:
        put_table("loop", table)
    if slow:
        sys.exit(f"{slow} of them are over their limit")


if __name__ == "__main__":
    main()
