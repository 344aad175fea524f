"""The parts of `make test-attack` but for the mutants in process. Each gives one row of the result."""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.attack import bombs, kills, secret_matrix
from tests.attack.measured import Measured, playhead
from tests.attack.mutants import CANARY, VERBS, Mutants
from tests.attack.result import MOST_CPU_S, MOST_MB, Finding, Progress, Row
from tests.roundtrip.redaction import test_twelve_agents as redacted_agents

T = TypeVar("T")
CORES = os.cpu_count() or 1
_KILLS = 25
# Tests that are attacks themselves, by what they attack.
SUITES = {
    "links, pipes and devices in a store": ["tests/unit/tape/test_hostile_store.py"],
    "tapes of strangers": [
        *("tests/roundtrip/test_trust_cli.py", "tests/unit/cli/replaying/test_approval.py"),
        *("tests/unit/tape/test_single_file.py", "tests/attack/test_found.py"),
        "tests/unit/workspace/test_files.py::test_a_tape_cannot_write_outside_the_folder",
    ],
    "torn and mutated bytes": ["tests/faults/test_reader_fuzz.py"],
    "secrets: rules and forms": ["tests/unit/redact", "tests/unit/test_secrets.py"],
    "secrets in compressed bodies": ["tests/roundtrip/http/test_encoded_bodies.py"],
    "secrets that come later": ["tests/roundtrip/record/test_late_secrets.py"],
    "the proxy": ["tests/unit/launch/proxy"],
    "the server": ["tests/unit/views/web/api"],
    "processes that are left": ["tests/faults/test_kill.py", "tests/faults/test_left_processes.py"],
    "disk faults": ["tests/faults/test_disk.py"],
}


def wrong(done: Measured) -> Finding | None:
    """Return what a command did that no tape may bring it to."""
    if done.hangs:
        return Finding("hang", done.out[-200:])
    if done.has_traceback:
        return Finding("traceback", done.out.strip().splitlines()[-1][:300])
    if done.cpu_s > MOST_CPU_S:
        return Finding("time", f"{done.cpu_s:.1f} s of CPU time")
    return Finding("memory", f"{done.rss_mb:.0f} MB") if done.rss_mb > MOST_MB else None


def measured(store: Path, words: list[str]) -> Measured:
    """Run a command. CPU time includes waiting for memory: what is slow on a busy machine gets a second chance."""
    done = playhead(store, words, most_s=60)
    if not done.hangs and not done.has_traceback and done.cpu_s > MOST_CPU_S:
        done = min(done, playhead(store, words, most_s=60), key=lambda one: one.cpu_s)
    return done


def bombed(_: float) -> Row:
    """Every bomb through the command line, with every verb that reads it."""
    row = Row("bombs", wanted=len(bombs.BOMBS) * len(bombs.VERBS))
    progress = Progress(row)
    worst = 0.0
    for bomb in bombs.BOMBS:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder)
            bomb(store)
            for verb in bombs.VERBS:
                words = [word.replace("OUT", str(store / "out")) for word in verb]
                done = measured(store, words)
                worst, row.mb = max(worst, done.cpu_s), max(row.mb, done.rss_mb)
                progress.add(1, _named(f"{bomb.__name__}, {verb[0]}", wrong(done)))
    row.note = f"at most {worst:.1f} s of CPU time, {row.mb:.0f} MB"
    return row


def from_the_shell(count: int, seed: int, until: float) -> Row:
    """Mutants through the command line, a part of them on each core."""
    row = Row("mutants from the shell", wanted=count)
    progress = Progress(row)

    def part(core: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            mutants = Mutants(Path(folder))
            for number in range(core, count, CORES):
                if time.monotonic() > until:
                    return
                verb = VERBS[number % len(VERBS)]
                # Negative numbers: other mutants than those in process.
                named = mutants.lay_for(verb, random.Random(f"{seed} {-number}"))
                done = measured(mutants.store, [named.get(word, word) for word in verb])
                row.mb = max(row.mb, done.rss_mb)
                found = _named(f"mutant {-number}, {' '.join(verb)}", wrong(done))
                if CANARY in done.out:
                    found.append(Finding("outside", f"mutant {-number}: shows another file"))
                if (what := mutants.escaped()) is not None:
                    found.append(Finding("outside", f"mutant {-number}, {' '.join(verb)}: {what}"))
                progress.add(1, found)

    _on_all_cores(part, range(CORES))
    row.note = f"at most {row.mb:.0f} MB"
    row.unfinished = row.tried < count
    return row


def secrets(until: float) -> Row:
    """Every redaction rule in every form through every channel; everything that Playhead wrote is searched."""
    row = Row("secret matrix")
    progress = Progress(row)
    rules = searched = 0

    def part(core: int) -> None:
        nonlocal rules, searched
        left = max(1.0, until - time.monotonic())
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = secret_matrix.run(Path(folder), slice(core, None, CORES), most_s=left)
            except subprocess.TimeoutExpired:
                row.unfinished = True
                return
        rules, searched = rules + found.rules, searched + found.bytes
        progress.add(found.cells, [Finding("secret", one) for one in found.leaks])

    _on_all_cores(part, range(CORES))
    row.note = f"{rules} rules, {len(secret_matrix.FORMS)} forms, {searched >> 20:,} MB searched"
    return row


def agents(_: float) -> Row:
    """The twelve agents that use secrets: plain as in the suite, and gzip with other clients and event loops."""
    shapes = ("httpx", "requests", "async", "aiohttp")
    row = Row("twelve agents in four shapes", wanted=12 * len(shapes))
    progress = Progress(row)

    def part(shape: str) -> None:
        for names, options in (
            (redacted_agents.OTHERS, ()),
            (redacted_agents.NEED_THE_SECRET, ("--vault",)),
        ):
            with tempfile.TemporaryDirectory() as folder:
                took = redacted_agents.take(
                    Path(folder), names, *options, shape=shape, compresses=shape != "httpx"
                )
                raw = redacted_agents.everything(took.home)
            found = []
            for name in names:
                then, now = took.line(name)
                if then != now or len(then) != 1 or "Error" in then[0]:
                    found.append(Finding("replay", f"{shape}, {name}: {then} then, {now} now"))
            if took.replayed.returncode:
                found.append(Finding("replay", f"{shape}: {took.replayed.stderr.strip()[:300]}"))
            for name, one in redacted_agents.server.SECRETS.items():
                if one.encode() in raw:
                    found.append(Finding("secret", f"{shape}: {name} in clear"))
            progress.add(len(names), found)

    _on_all_cores(part, shapes)
    return row


def killed(count: int, seed: int, until: float) -> Row:
    """kill -9 at random moments of recordings with three processes, two recordings at a time."""
    row = Row("kill -9 at random moments", wanted=count)
    progress = Progress(row)
    acknowledged = 0

    def part(batch: int) -> None:
        nonlocal acknowledged
        if (left := until - time.monotonic()) <= 0:
            return
        some = min(_KILLS, count - batch * _KILLS)
        try:
            done = kills.killed(some, 1000 * seed + batch, left)
        except subprocess.TimeoutExpired:
            return
        acknowledged += done.acknowledged
        progress.add(done.kills, [Finding("lost", one) for one in done.lost])

    _on_all_cores(part, range(-(-count // _KILLS)))
    row.note = f"{acknowledged:,} acknowledged events"
    row.unfinished = row.tried < count
    return row


def suite(what: str, paths: list[str], until: float) -> Row:
    """Tests that are attacks themselves, without another chance for any of them."""
    row = Row(what)
    argv = [
        *(sys.executable, "-m", "pytest", "-q", "-n", str(CORES), "--tb=short", "-rfE"),
        # The time limit of all attacks bounds it.
        "--timeout=600",
        *paths,
    ]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, errors="replace",
            timeout=max(1.0, until - time.monotonic()),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        row.unfinished = True
        return row
    counts = re.findall(r"(\d+) (?:passed|failed|error)", done.stdout)
    row.tried = sum(map(int, counts))
    broke = [one for one in done.stdout.splitlines() if one.startswith(("FAILED", "ERROR"))]
    if done.returncode and not broke:
        broke = [(done.stdout + done.stderr).strip()[-500:] or "no result"]
    row.found = [Finding("test", one) for one in broke]
    if broke:
        print(done.stdout[-6000:], flush=True)
    return row


def _named(name: str, found: Finding | None) -> list[Finding]:
    return [] if found is None else [Finding(found.kind, f"{name}: {found.what}")]


def _on_all_cores(work: Callable[[T], None], items: Iterable[T]) -> None:
    with ThreadPoolExecutor(CORES) as pool:
        for one in [pool.submit(work, item) for item in items]:
            one.result()
