"""Record concurrent programs several times, replay each recording several times, count what is identical.

    python -m tests.order.shapes                      every program, 10 recordings, 4 replays each
    python -m tests.order.shapes gather_httpx -r 2    one program, two recordings
    python -m tests.order.shapes seed-7               the program that the generator makes of seed 7
    python -m tests.order.shapes --seed 7             every program; the ten generated ones have seeds 7 to 16
    python -m tests.order.shapes --keep DIR           keep the store of each recording that failed to replay in DIR

Every other replay runs while the machine is saturated. A replay counts as identical if the verdict says so and the
bytes on stdout are equal. One that takes longer than `--limit` seconds (20) counts as a hang. The server counts the
requests that reach it during replays: there must be none.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.order.generated import source
from tests.order.world import serve

from playhead.testing import HttpSite

PROGRAMS = Path(__file__).parent / "programs"
PLAYHEAD = [sys.executable, "-m", "playhead"]
LIMIT_S = 20
# A recording that is slow says nothing of the order: SDKs take long to import on a busy machine.
RECORDING_LIMIT_S = 90
_BURN = "while True: pass"
_SEED = "seed-"
_GENERATED = 10


@dataclass
class Score:
    """The replays of one program."""

    name: str
    replays: int = 0
    identical: int = 0
    hangs: int = 0
    requests: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        row = f"{self.name:<24} {self.identical:>4} of {self.replays:<4}"
        row += f" {self.hangs} hang" if self.hangs else ""
        return f"{row} {self.requests} requests" if self.requests else row


def names() -> list[str]:
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


@contextlib.contextmanager
def saturated(*, busy: bool) -> Iterator[None]:
    """Keep every core busy with somebody else's work."""
    count = (os.cpu_count() or 1) if busy else 0
    burners = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def measure(
    name: str,
    site: HttpSite,
    *,
    recordings: int,
    replays: int,
    verbose: bool = False,
    keep: Path | None = None,
    limit_s: float = LIMIT_S,
) -> Score:
    score = Score(name)
    for number in range(recordings):
        failed_before = len(score.failures)
        with tempfile.TemporaryDirectory() as folder:
            _measure_once(
                score, Path(folder), site, replays=replays, verbose=verbose, limit_s=limit_s
            )
            if keep and len(score.failures) > failed_before:
                shutil.copytree(folder, keep / f"{name}-{number}", symlinks=True)
    return score


def _measure_once(
    score: Score, folder: Path, site: HttpSite, *, replays: int, verbose: bool, limit_s: float
) -> None:
    program = str(PROGRAMS / f"{score.name}.py")
    if score.name.startswith(_SEED):
        program = str(folder / f"{score.name}.py")
        Path(program).write_text(source(int(score.name.removeprefix(_SEED))))
    words = ("--no-seal", "--", sys.executable, program, site.url)
    then = run(folder, "record", *words, limit_s=RECORDING_LIMIT_S)
    recorded = len(site.requests)
    for number in range(replays):
        score.replays += 1
        report = folder / "report.json"
        report.unlink(missing_ok=True)
        try:
            with saturated(busy=bool(number % 2)):
                now = run(folder, "replay", "last", "--report", str(report), limit_s=limit_s)
        except subprocess.TimeoutExpired:
            score.hangs += 1
            score.failures.append("hang")
            continue
        told = json.loads(report.read_text()) if report.exists() else {}
        if told.get("verdict") == "identical" and now.stdout == then.stdout:
            score.identical += 1
            continue
        score.failures.append(now.stderr.decode(errors="replace"))
        if verbose:
            _show(then, now)
    score.requests += len(site.requests) - recorded


def run(
    folder: Path, verb: str, *words: str, limit_s: float = LIMIT_S
) -> subprocess.CompletedProcess[bytes]:
    process = subprocess.Popen(
        [*PLAYHEAD, verb, "--store", str(folder / "store"), *words],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _show(
    then: subprocess.CompletedProcess[bytes], now: subprocess.CompletedProcess[bytes]
) -> None:
    before, after = then.stdout.decode().splitlines(), now.stdout.decode().splitlines()
    print("--- recorded | replayed")
    for n in range(max(len(before), len(after))):
        one = before[n] if n < len(before) else ""
        other = after[n] if n < len(after) else ""
        print(f"  {'  ' if one == other else '! '}{one:<40} | {other}")
    print(now.stderr.decode()[-3000:])


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("programs", nargs="*")
    asked.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    asked.add_argument("-r", "--recordings", type=int, default=10)
    asked.add_argument("-p", "--replays", type=int, default=4)
    asked.add_argument("-v", "--verbose", action="store_true", help="show each difference")
    asked.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for one replay")
    asked.add_argument("--keep", type=Path, help="folder for recordings that failed to replay")
    chosen = asked.parse_args()
    generated = [f"{_SEED}{n}" for n in range(chosen.seed, chosen.seed + _GENERATED)]
    scores = []
    with serve() as site:
        for name in chosen.programs or [*names(), *generated]:
            score = measure(
                name,
                site,
                recordings=chosen.recordings,
                replays=chosen.replays,
                verbose=chosen.verbose,
                keep=chosen.keep,
                limit_s=chosen.limit,
            )
            print(score, flush=True)
            scores.append(score)
    identical, replays = (
        sum(getattr(one, what) for one in scores) for what in ("identical", "replays")
    )
    requests = sum(one.requests for one in scores)
    print(f"{'all':<24} {identical:>4} of {replays}, {requests} requests during replays")
    return 0 if identical == replays and not requests else 1


if __name__ == "__main__":
    sys.exit(main())
