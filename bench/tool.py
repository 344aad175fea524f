"""What recording a tool call costs, beside the least code that writes its two events.

    python -m bench.tool

The floor encodes a call and an outcome with msgspec and writes each with one write(2): no lock,
no redaction, no lane, no cause. Of interleaved rounds the quickest tenth counts: what else the
machine does is not ours. Goal: at most 2.5 times the floor.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec.json

from playhead import clock
from playhead.hooks.tools.decorator import tool
from playhead.recording import deck
from playhead.recording.deck import Deck
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor

ROUNDS = 200
CALLS = 100
ANSWER = "The cup is blue, holds 0.3 litres and costs 4 euros. " * 4


def plain(query: str, limit: int = 10) -> dict[str, object]:
    return {"query": query, "limit": limit, "found": ANSWER}


def floor(folder: Path) -> Callable[[], None]:
    """Two events of the same size as ours, and nothing else."""
    fd = os.open(folder / "floor.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    encode, write = msgspec.json.Encoder().encode, os.write

    def once() -> None:
        arguments = {"query": "blue cups", "limit": 3}
        call = {"boundary": "tool", "name": "search", "request": {"arguments": arguments}}
        write(fd, encode(_event(1, "call", call)) + b"\n")
        value = plain(**arguments)
        outcome = {"call": 1, "how": "returned", "took_ns": 1234, "value": value}
        write(fd, encode(_event(2, "outcome", outcome)) + b"\n")

    return once


def _event(seq: int, kind: str, data: dict[str, object]) -> dict[str, object]:
    return {
        "seq": seq,
        "kind": kind,
        "wall": clock.wall_ns(),
        "mono": clock.mono_ns(),
        "pid": 4711,
        "thread": 140_000_000_000_000,
        "lane": "main",
        "at": "agent.py:42 respond",
        "who": "agent",
        "parent": 0,
        "data": data,
        "crc": "9a8b7c6d",
    }


def recorded(folder: Path, *, redact: bool) -> Deck:
    folder.mkdir()
    redactor = Redactor(key=b"k" * 32) if redact else None
    return Deck(Recorder(run=folder, run_id=folder.name, who="bench", redactor=redactor))


def measure(once: Callable[[], None]) -> float:
    """Microseconds of this process's CPU a call."""
    started = time.process_time_ns()
    for _ in range(CALLS):
        once()
    return (time.process_time_ns() - started) / CALLS / 1000


def main() -> None:
    search = tool(plain)

    def call() -> None:
        search("blue cups", limit=3)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        decks = {
            "undecorated": (None, lambda: plain("blue cups", limit=3)),
            "decorated, nothing records": (None, call),
            "floor": (None, floor(folder)),
            "recorded": (recorded(folder / "plain", redact=False), call),
            "recorded, redacted": (recorded(folder / "redacted", redact=True), call),
        }
        took: dict[str, list[float]] = {case: [] for case in decks}
        for _ in range(ROUNDS):
            for case, (open_deck, once) in decks.items():
                if open_deck is not None:
                    deck.activate(open_deck)
                took[case].append(measure(once))
                if open_deck is not None:
                    deck.deactivate(open_deck)
    quick = {case: statistics.quantiles(values, n=10)[0] for case, values in took.items()}
    lines = [f"{'a tool call':28} {'us':>8} {'to the floor':>14}"]
    for case, us in quick.items():
        lines.append(f"{case:28} {us:8.2f} {us / quick['floor']:14.2f}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
