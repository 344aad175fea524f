"""What a replayed call costs, beside the client's own cost with an answer from memory; how it grows with the
tape; how long a large tape takes to open; and eight hours of a session in how many seconds.

    python -m bench.replay [--calls 100 5000 100000] [--megabytes 100] [--rounds 5]

Medians over interleaved rounds; ratios to the client's own cost. Goals: at most 1.5 × for each client, the
same from 100 to 100,000 calls; 100 MB open in under 1 s; the session in under 60 s. vcrpy matches by URL and
method here, as it does by default; by body it is ten times slower still.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import httpx2

import playhead
from bench.read import make_tape
from playhead import clock, lanes
from playhead.deck import Call, Deck
from playhead.inject import session
from playhead.replay.mode import ReplayMode
from playhead.replay.taped import load
from playhead.tape.reader import Tape


def seconds() -> float:
    return clock.mono_ns() / 1e9


URL = "http://127.0.0.1:9/v1/things"
ANSWER = b'{"ok": true, "text": "' + b"x" * 400 + b'"}'


def body(number: int) -> bytes:
    return json.dumps({"n": number, "text": f"question number {number} " + "word " * 60}).encode()


def taped_calls(store: Path, number: int, library: Any) -> Path:
    """`number` exchanges on a tape, made by the real client against an answer from memory."""
    answer = library.MockTransport(lambda _: library.Response(200, content=ANSWER))

    class Wire(library.BaseTransport):  # not a mock to the hook: it is recorded
        def handle_request(self, request: Any) -> Any:
            return answer.handle_request(request)

    with (
        playhead.record(name="bench", store=store, intercept=True) as run,
        library.Client(transport=Wire()) as client,
    ):
        for n in range(number):
            client.post(URL, content=body(n))
    return run.path


def per_call(send: Callable[[int], Any], numbers: list[int]) -> float:
    start = seconds()
    for number in numbers:
        send(number)
    return (seconds() - start) / len(numbers) * 1e6


def measure_client(
    library: Any, calls: int, rounds: int, store: Path
) -> tuple[float, float, float]:
    """(own cost, replayed, load seconds), per call in µs: medians over rounds, interleaved."""
    path = taped_calls(store, calls, library)
    own_client = library.Client(
        transport=library.MockTransport(lambda _: library.Response(200, content=ANSWER))
    )
    share = min(200, calls // (rounds + 1) or 1)
    own, taped = [], []
    with playhead.record(name="replay", store=store / "now") as run:
        began = seconds()
        mode = ReplayMode(load(Tape(path)), run.recorder, lean=True)
        loaded = seconds() - began
        # Made before the tape takes over: its first use imports, and imports ask the system things.
        client = library.Client()
        made = session.start(run.recorder, mode)
        with client:
            step = max(1, (calls - share) // rounds)
            for index in range(rounds):
                numbers = list(range(index * step, index * step + share))
                own.append(per_call(lambda n: own_client.post(URL, content=body(n)), numbers))
                taped.append(per_call(lambda n: client.post(URL, content=body(n)), numbers))
        session.stop(made)
    own_client.close()
    return statistics.median(own), statistics.median(taped), loaded


def measure_opening(folder: Path, megabytes: int) -> float:
    make_tape(folder / "large", megabytes * 1_000_000)
    began = seconds()
    load(Tape(folder / "large"))
    return seconds() - began


def measure_session(store: Path, crossings: int, workers: int) -> tuple[float, float]:
    """Eight hours of a pool of workers that sleep between their calls, made by moving the tape's clock;
    (hours on the tape, seconds of replay).
    """
    each = crossings // workers

    def work(deck: Deck, worker: str, *, live: bool) -> None:
        with lanes.lane(worker):
            for n in range(each):
                call = Call(
                    boundary="process",
                    name="git status",
                    request={"argv": ["git", "status", str(n)]},
                )
                deck.cross(call, lambda: {"exit_code": 0, "stdout": "clean"})
                if not live:
                    time.sleep(11.5)

    with playhead.record(name="long", store=store) as run:
        for number in range(workers):
            work(Deck(run.recorder), f"worker-{number}", live=True)
    with playhead.record(name="replay", store=store / "now") as again:
        made = session.start(
            again.recorder, ReplayMode(load(Tape(run.path)), again.recorder, lean=True)
        )
        began = seconds()
        for number in range(workers):
            work(made, f"worker-{number}", live=False)
        took = seconds() - began
        session.stop(made)
    return each * 11.5 / 3600, took


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, nargs="*", default=[100, 5000, 50_000])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(
        "| client | calls on the tape | own cost, µs | replayed, µs | ratio | load, s |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for library in (httpx, httpx2):
            for calls in options.calls:
                place = Path(folder) / f"{library.__name__}-{calls}"
                own, taped, loaded = measure_client(library, calls, options.rounds, place)
                print(
                    f"| {library.__name__} | {calls:,} | {own:.0f} | {taped:.0f} | {taped / own:.2f} | {loaded:.2f} |"
                )
        opened = measure_opening(Path(folder), options.megabytes)
        print(f"\nopening {options.megabytes} MB for replay: {opened:.2f} s (goal: under 1)")
        hours, took = measure_session(Path(folder) / "session", 20_000, 8)
        print(
            f"a session of 20,000 crossings and {hours * 8:.0f} worker-hours of sleep: {took:.1f} s (goal: under 60)"
        )


if __name__ == "__main__":
    sys.exit(main())
