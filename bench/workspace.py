"""Files of a large repository on the tape: what the snapshot, each call and the store cost.

A repository of 50,000 files (packed), then 200 shell calls (sed, mv, git commit, git stash …), with and
without the workspace on the tape. Goals: first snapshot within 3 s, second within 0.5 s, a call waits at
most 40 ms (p95), the whole run takes at most 5 % longer.

The wait of a call is measured inside the program. The difference of the two sessions is shown as well: it includes the
time that git itself takes, which varies by 100 ms from run to run. A bare walk (list every folder, stat every file)
says how fast the machine is at that moment.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playhead.workspace.blobs.pool import Pool, PoolWriter
from playhead.workspace.snapshot import save_known, take_snapshot

FILES = int(os.environ.get("BENCH_FILES", "50000"))
CALLS = int(os.environ.get("BENCH_CALLS", "200"))
# What an LLM takes between two calls of a real session, at the very least.
GAP_S = 0.05

SCRIPTS = (
    "sed -i 's/line 1/LINE 1/' {a}",
    "mv {a} {a}.moved && mv {a}.moved {a}",
    "echo step {i} >> {b} && git add -A {b} && git commit -qm step{i}",
    "printf 'new {i}\\n' > new{i}.txt",
    "echo {i} >> {a} && git stash -q && git stash pop -q",
    "chmod 755 {b}; ln -sfn {b} link",
    "mkdir -p d{i}/e && cp {a} d{i}/e/ && rm -rf d{i}",
    "cat > {b} <<'END'\nline 1\nline {i}\nEND",
)

AGENT = """
import json, subprocess, sys, time
from playhead.workspace.watch.call_marks import CallMarks
put, marks = CallMarks._put, []
def timed(self, kind, call, *, wait):
    start = time.perf_counter()
    put(self, kind, call, wait=wait)
    marks.append(time.perf_counter() - start)
CallMarks._put = timed
waits = []
for script in json.load(open(sys.argv[1])):
    marks.clear()
    start = time.perf_counter()
    subprocess.run(["sh", "-c", script])
    waits.append([time.perf_counter() - start, sum(marks)])
    time.sleep({gap})
json.dump(waits, open(sys.argv[2], "w"))
"""


def make_repository(folder: Path) -> list[str]:
    chance = random.Random(7)
    names = []
    for number in range(FILES):
        path = folder / f"p{number % 97}" / f"q{number % 61}" / f"f{number}.py"
        if number < 97 * 61:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = chance.randrange(20, 300)
        path.write_text("".join(f"line {n} of {number}, {n * number}\n" for n in range(lines)))
        names.append(str(path.relative_to(folder)))
    script = (
        "git init -q . && git add -A && git commit -qm one && git repack -qad && git prune-packed"
    )
    subprocess.run(["sh", "-c", script], cwd=folder, env=_env(), check=True)
    return names


def _env() -> dict[str, str]:
    who = {f"GIT_{one}_NAME": "a" for one in ("AUTHOR", "COMMITTER")}
    mail = {f"GIT_{one}_EMAIL": "a@b.c" for one in ("AUTHOR", "COMMITTER")}
    return {**os.environ, **who, **mail, "GIT_CONFIG_GLOBAL": os.devnull}


def snapshots(folder: Path, home: Path) -> list[tuple[float, float]]:
    """Seconds of the first and the second snapshot, on the clock and of the processor."""
    took = []
    for name in ("first", "second"):
        start, cpu = time.perf_counter(), time.process_time()
        pool = Pool(home)
        writer = PoolWriter(pool, name)
        _, state = take_snapshot(str(folder), pool, writer)
        took.append((time.perf_counter() - start, time.process_time() - cpu))
        save_known(pool, state)
        writer.close()
    return took


def bare_walk(folder: Path) -> tuple[float, float]:
    """Seconds of a walk that lists every folder and looks at every file, on the clock and of the processor."""
    start, cpu = time.perf_counter(), time.process_time()
    waiting = [os.fsencode(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            waiting += [
                one.path for one in entries if stat.S_ISDIR(one.stat(follow_symlinks=False).st_mode)
            ]
    return time.perf_counter() - start, time.process_time() - cpu


def session(
    folder: Path, home: Path, scripts: list[str], *options: str
) -> list[tuple[float, float]]:
    """Seconds of each call of a recorded agent, and how many of them it waited for its changes to be stored."""
    import json

    (home.parent / "scripts.json").write_text(json.dumps(scripts))
    (home.parent / "agent.py").write_text(AGENT.format(gap=GAP_S))
    words = ["record", "--quiet", *options, "--store", str(home), "--", sys.executable]
    argv = [sys.executable, "-m", "playhead", *words, str(home.parent / "agent.py")]
    waits = home.parent / "waits.json"
    subprocess.run(
        [*argv, str(home.parent / "scripts.json"), str(waits)],
        cwd=folder, env=_env(), check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return [(float(call), float(wait)) for call, wait in json.loads(waits.read_text())]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="playhead-bench-") as name:
        base = Path(name)
        folder = base / "repository"
        folder.mkdir()
        names = make_repository(folder)
        (first, first_cpu), (second, second_cpu) = snapshots(folder, base / "home")
        walk, walk_cpu = bare_walk(folder)
        scripts = [
            SCRIPTS[i % len(SCRIPTS)].format(
                i=i, a=names[(i * 31) % FILES], b=names[(i * 17) % FILES]
            )
            for i in range(CALLS)
        ]
        pristine = base / "pristine"
        shutil.copytree(folder, pristine, symlinks=True)
        without = session(pristine, base / "plain", scripts, "--no-workspace")
        shutil.rmtree(pristine)
        session(folder, base / "home", ["true"])
        start = sum(one.stat().st_size for one in (base / "home").rglob("*") if one.is_file())
        taped = session(folder, base / "home", scripts)
        end = sum(one.stat().st_size for one in (base / "home").rglob("*") if one.is_file())
        added = sorted(one[0] - plain[0] for one, plain in zip(taped, without, strict=True))
        waits = sorted(one[1] for one in taped)
        p95 = waits[int(len(waits) * 0.95)]
        plain_s = sum(one[0] for one in without)
        share = (sum(one[0] for one in taped) - plain_s) / (plain_s + GAP_S * CALLS)
        print(f"{FILES:,} files, {CALLS} shell calls")
        print(
            f"  first snapshot {first:.2f} s, {first_cpu:.2f} s of processor time (goal 3);"
            f" second {second:.2f} s, {second_cpu:.2f} s (goal 0.5);"
            f" bare walk {walk:.2f} s, {walk_cpu:.2f} s"
        )
        print(
            f"  wait per call: median {statistics.median(waits) * 1e3:.1f} ms,"
            f" p95 {p95 * 1e3:.1f} ms (goal 40), worst {waits[-1] * 1e3:.1f} ms,"
            f" {sum(waits) / (plain_s + GAP_S * CALLS):.1%} of the session"
        )
        print(
            f"  difference of the sessions per call: median {statistics.median(added) * 1e3:.1f} ms,"
            f" p95 {added[int(len(added) * 0.95)] * 1e3:.1f} ms; {share:.1%} in all (goal 5 %)"
        )
        print(f"  store: {(end - start) / 1e6:.1f} MB for the changes of {CALLS} calls")
    return int(first_cpu > 3 or second_cpu > 0.5 or p95 > 0.040 or share > 0.05)


if __name__ == "__main__":
    sys.exit(main())
