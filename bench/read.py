"""How fast a tape is read, beside the least code that reads its lines and decodes them.

    python -m bench.read [--megabytes 100] [--rounds 7]

CPU time, which neighbours on the machine disturb least; medians over interleaved rounds. Ratios are
to msgspec decoding the same lines into the same events and doing nothing else. Goals: at least 250 MB/s plain and
150 MB/s sealed, on events of some 4.5 KB.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import msgspec.json

from playhead import clock
from playhead.events import Event
from playhead.tape import format as tape_format
from playhead.tape.care.verify import verify
from playhead.tape.format import close_line
from playhead.tape.manifest import Manifest, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.sealed.seal import seal

WORDS = [
    hashlib.sha256(str(number).encode()).hexdigest()[: 3 + number % 9] for number in range(4096)
]
GOALS = {"Tape.events, plain": 250, "Tape.events, sealed": 150}
BASE = "msgspec typed, nothing else"


def make_tape(run: Path, size: int, pids: tuple[int, ...] = (4711,)) -> None:
    """About `size` bytes of events as an agent makes them: messages of words that differ."""
    run.mkdir()
    files = {pid: (run / f"tape-{pid}.jsonl").open("wb") for pid in pids}
    chains = dict.fromkeys(pids, (0, 0))
    written = number = 0
    while written < size:
        pid = pids[number % len(pids)]
        seq, crc = chains[pid]
        told = {"seq": seq, "kind": "call", "wall": 10**18 + number, "mono": 10**12 + number}
        told |= {"pid": pid, "thread": 140, "lane": "main/2", "at": "agent.py:42 respond"}
        told |= {"who": "planner", "parent": 0, "data": content(number)}
        if not seq:
            told |= {
                "kind": "segment.start",
                "data": {"format": 1, "run": "bench", "generation": 0},
            }
        line, crc = close_line(json.dumps(told, separators=(",", ":")).encode()[:-1], crc)
        files[pid].write(line)
        chains[pid] = (seq + 1, crc)
        written += len(line)
        number += 1
    for file in files.values():
        file.close()
    write_manifest(run, Manifest(run="bench", status="ok"))


def content(number: int) -> dict[str, object]:
    messages = []
    for turn in range(8):
        at = hashlib.sha256(f"{number} {turn}".encode()).digest()
        words = [WORDS[(at[i % 32] << 4 ^ at[(i * 7) % 32] ^ i) % 4096] for i in range(62)]
        messages.append({"role": "user", "content": " ".join(words)})
    return {"boundary": "llm", "name": "POST api", "request": {"model": "m", "messages": messages}}


def lines_only(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def msgspec_alone(path: Path) -> int:
    decode = msgspec.json.Decoder(Event).decode
    with path.open("rb") as file:
        return sum(decode(line).seq >= 0 for line in file)


def json_alone(path: Path) -> int:
    with path.open("rb") as file:
        return sum(json.loads(line)["seq"] >= 0 for line in file)


def events(run: Path) -> int:
    return sum(1 for _ in Tape(run).events())


def events_std(run: Path) -> int:
    with mock.patch("playhead.tape.format.decoder", return_value=tape_format.decode_std):
        return events(run)


def cases(folder: Path, size: int) -> dict[str, Callable[[], int]]:
    plain, merged, sealed = folder / "plain", folder / "merged", folder / "sealed"
    make_tape(plain, size)
    make_tape(merged, size, (4711, 4712, 4713, 4714))
    make_tape(sealed, size)
    seal(sealed)
    path = plain / "tape-4711.jsonl"
    return {
        "lines only": lambda: lines_only(path),
        BASE: lambda: msgspec_alone(path),
        "stdlib json, nothing else": lambda: json_alone(path),
        "Tape.events, plain": lambda: events(plain),
        "Tape.events, four segments merged": lambda: events(merged),
        "Tape.events, sealed": lambda: events(sealed),
        "Tape.events, plain, without msgspec": lambda: events_std(plain),
        "Tape.lines, plain": lambda: sum(1 for _ in Tape(plain).lines()),
        "verify, plain": lambda: verify(plain).events,
        "verify, sealed": lambda: verify(sealed).events,
    }


def seeking(run: Path) -> tuple[float, float]:
    """Milliseconds of the first look for an event, and of one after that."""
    tape = Tape(run)
    last = sum(1 for _ in Tape(run).events()) - 1
    began = clock.mono_ns()
    tape.event(last)
    first = clock.mono_ns() - began
    began = clock.mono_ns()
    for seq in range(0, last, max(1, last // 50)):
        tape.event(seq)
    return first / 1e6, (clock.mono_ns() - began) / 51e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = cases(folder, asked.megabytes * 1_000_000)
        times: dict[str, list[float]] = {case: [] for case in measured}
        for _ in range(asked.rounds):
            for case, read in measured.items():
                began = time.process_time()
                read()
                times[case].append(time.process_time() - began)
        show(asked.megabytes, {case: statistics.median(took) for case, took in times.items()})
        ratio = (folder / "sealed/tape.jsonl.zst").stat().st_size / (asked.megabytes * 1e6)
        sys.stdout.write(f"\nsealed to {ratio:.0%} of the size\n")
        for kind in ("plain", "sealed"):
            first, then = seeking(folder / kind)
            sys.stdout.write(
                f"one event, {kind}: {first:.1f} ms the first time, then {then:.2f} ms\n"
            )


def show(megabytes: int, medians: dict[str, float]) -> None:
    sys.stdout.write(f"{'':38}{'s':>7}{'MB/s':>8}{'ratio':>8}\n")
    for case, took in medians.items():
        rate = megabytes / took
        goal = GOALS.get(case)
        said = "" if goal is None else f"   goal {goal}: {'met' if rate >= goal else 'MISSED'}"
        sys.stdout.write(f"{case:38}{took:7.3f}{rate:8.0f}{took / medians[BASE]:8.2f}{said}\n")


if __name__ == "__main__":
    main()
