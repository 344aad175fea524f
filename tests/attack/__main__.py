"""`make test-attack`: run every attack within a time limit, print the counts, and fail if one succeeded."""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.attack import bombs, kills
from tests.attack.measured import Measured, playhead
from tests.attack.mutants import VERBS, Found, Mutants, one_batch

MOST_CPU_S, MOST_MB = 2.0, 300.0
_BATCH = 500
_KILLS = 25
# Tests that are attacks themselves, by what they attack.
SUITES = {
    "links, pipes and devices in a store": ["tests/unit/tape/test_hostile_store.py"],
    "tapes of strangers": ["tests/roundtrip/test_trust_cli.py"],
    "torn and mutated bytes": ["tests/faults/test_reader_fuzz.py"],
    "secrets: rules, forms and channels": ["tests/unit/redact", "tests/unit/test_secrets.py"],
    "secrets that come later": ["tests/roundtrip/record/test_late_secrets.py"],
    "the proxy": ["tests/unit/launch/proxy"],
    "the server": ["tests/unit/views/web/api"],
    "kill -9": ["tests/faults/test_kill.py", "tests/faults/test_left_processes.py"],
    "disk faults": ["tests/faults/test_disk.py"],
}


class Row(NamedTuple):
    """One line of the result."""

    what: str
    tried: int
    broke: list[str]
    seconds: float
    note: str = ""
    # Whether the time limit came first: nothing was broken, and not everything was tried.
    unfinished: bool = False


def bombed(verbs: int | None = None) -> Row:
    """Every bomb through the command line. Broken: a traceback, more than 2 s of CPU, more than 300 MB, a hang."""
    began = time.monotonic()
    broke, tried, worst_s, worst_mb = [], 0, 0.0, 0.0
    for bomb in bombs.BOMBS:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder)
            bomb(store)
            for verb in bombs.VERBS[:verbs]:
                words = [word.replace("OUT", str(store / "out")) for word in verb]
                done = playhead(store, words, most_s=60)
                tried += 1
                worst_s, worst_mb = max(worst_s, done.cpu_s), max(worst_mb, done.rss_mb)
                if why := _wrong(done):
                    broke.append(f"{bomb.__name__}, {verb[0]}: {why}")
    note = f"at most {worst_s:.1f} s of CPU, {worst_mb:.0f} MB"
    return Row("bombs", tried, broke, time.monotonic() - began, note)


def _wrong(done: Measured) -> str | None:
    if done.has_traceback:
        return "a traceback: " + done.out.strip().splitlines()[-1][:200]
    if done.cpu_s > MOST_CPU_S:
        return f"{done.cpu_s:.1f} s of CPU"
    return f"{done.rss_mb:.0f} MB" if done.rss_mb > MOST_MB else None


def mutated(count: int, seed: int, until: float) -> Row:
    """Mutants in process, in batches, as many as there is time for."""
    began = time.monotonic()
    tried, broke, worst = 0, [], 0.0
    seeds = (seed * 1_000_003 + number for number in range(-(-count // _BATCH)))
    with ProcessPoolExecutor(os.cpu_count(), max_tasks_per_child=1) as pool:
        for done, found, mb in _bounded(pool, seeds, min(count, _BATCH), until):
            tried, worst = tried + done, max(worst, mb)
            broke += [f"{one.verb}: {one.what.strip().splitlines()[-1][:200]}" for one in found]
    note = f"seed {seed}, at most {worst:.0f} MB"
    if tried < count:
        note += f", {count:,} wanted: out of time"
    if worst > MOST_MB:
        broke.append(f"{worst:.0f} MB")
    seconds = time.monotonic() - began
    return Row("mutants in process", tried, broke, seconds, note, unfinished=tried < count)


def _bounded(
    pool: ProcessPoolExecutor, seeds: Iterator[int], count: int, until: float
) -> Iterator[tuple[int, list[Found], float]]:
    """No more batches at once than cores, so that little is thrown away when time is up."""
    width = os.cpu_count() or 1
    waiting = [
        pool.submit(one_batch, count, seed) for seed, _ in zip(seeds, range(width), strict=False)
    ]
    while waiting:
        yield waiting.pop(0).result()
        if time.monotonic() < until and (seed := next(seeds, None)) is not None:
            waiting.append(pool.submit(one_batch, count, seed))


def from_the_shell(count: int, seed: int, until: float) -> Row:
    """Mutants through the command line."""
    began = time.monotonic()
    chance, broke, tried = random.Random(seed), [], 0
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        mutants = Mutants(store)
        for number in range(count):
            if time.monotonic() > until:
                break
            verb = VERBS[number % len(VERBS)]
            named = mutants.lay_for(verb, chance)
            done = playhead(store, [named.get(word, word) for word in verb], most_s=60)
            tried += 1
            if done.has_traceback or done.rss_mb > MOST_MB:
                broke.append(f"{' '.join(verb)}: {_wrong(done)}")
            if (store / "out").is_dir():
                shutil.rmtree(store / "out")
            (store / "out").unlink(missing_ok=True)
    seconds = time.monotonic() - began
    return Row("mutants from the shell", tried, broke, seconds, unfinished=tried < count)


def killed(count: int, seed: int, until: float) -> Row:
    """kill -9 at random moments of a recording with three processes, as often as there is time for."""
    began = time.monotonic()
    tried, acknowledged, broke = 0, 0, []
    seeds = iter(range(1000 * seed, 1000 * seed + count))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        while tried < count and (left := until - time.monotonic()) > 0:
            some = [
                pool.submit(kills.killed, _KILLS, one, left)
                for one, _ in zip(seeds, range(os.cpu_count() or 1), strict=False)
            ]
            if not some:
                break  # every batch was tried, and some of them broke
            for one in some:
                with suppress(subprocess.TimeoutExpired):
                    done = one.result()
                    tried, acknowledged = tried + done.kills, acknowledged + done.acknowledged
                    broke += done.lost
    note = f"{acknowledged:,} acknowledged events"
    seconds = time.monotonic() - began
    return Row("kill -9 at random moments", tried, broke, seconds, note, unfinished=tried < count)


def suite(what: str, paths: list[str], until: float) -> Row:
    began = time.monotonic()
    left = max(1.0, until - began)
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        str(os.cpu_count() or 1),
        "--tb=line",
        "-rfE",
        "--timeout=600",  # the time limit of all attacks bounds it; a busy machine is no hole
        *paths,
    ]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=left)
    except subprocess.TimeoutExpired:
        seconds = time.monotonic() - began
        return Row(what, 0, [], seconds, "out of time", unfinished=True)
    counts = {
        word: int(number)
        for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)
    }
    broke = [one for one in done.stdout.splitlines() if one.startswith(("FAILED", "ERROR"))]
    if done.returncode and not broke:
        broke = [done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no result"]
    return Row(what, sum(counts.values()), broke, time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--shell", type=int, default=500, help="mutants through the command line")
    parser.add_argument("--kills", type=int, default=1000, help="runs killed at a random moment")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=29.0, help="time limit for all of it")
    parser.add_argument("--no-suites", action="store_true", help="only bombs and mutants")
    given = parser.parse_args()
    began = time.monotonic()
    share = given.minutes * 60
    rows = []
    for row in _rows(given, began, share):
        rows.append(row)
        state = "FAIL" if row.broke else "TIME" if row.unfinished else "ok  "
        note = f"  ({row.note})" if row.note else ""
        print(
            f"{state} {row.what:<36} {row.tried:>8,} tried {len(row.broke):>4} broke {row.seconds:>6.0f} s{note}"
        )
        for one in row.broke[:5]:
            print(f"       {one}")
        sys.stdout.flush()
    tried, broke = sum(row.tried for row in rows), sum(len(row.broke) for row in rows)
    late = sum(row.unfinished for row in rows)
    unfinished = f", {late} parts out of time" if late else ""
    minutes = (time.monotonic() - began) / 60
    print(f"{tried:,} attacks, {broke} succeeded{unfinished}, {minutes:.1f} min")
    return 1 if broke or late else 0


def _rows(given: argparse.Namespace, began: float, share: float) -> Iterator[Row]:
    yield bombed()
    for what, paths in SUITES.items() if not given.no_suites else ():
        yield suite(what, paths, began + share * 0.6)
    yield killed(given.kills, given.seed, began + share * 0.7)
    yield from_the_shell(given.shell, given.seed, began + share * 0.8)
    yield mutated(given.mutants, given.seed, began + share * 0.97)


if __name__ == "__main__":
    sys.exit(main())
