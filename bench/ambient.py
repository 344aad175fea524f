"""What a reading of the clock costs while it is taped, and how much tape a busy loop fills.

    python -m bench.ambient [--readings 200000]

Each figure is processor time, the least of nine rounds, hooked and bare in turn. Goals: a reading within 1 µs; a loop
that does nothing but look at the clock fills less than 20 KB of tape a second.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.events import Event
from playhead.hooks.ambient.clock_reads import hook_datetime, hook_time
from playhead.hooks.ambient.entropy_reads import hook_os, hook_uuid
from playhead.hooks.ambient.random_draws import hook_random
from playhead.hooks.guest import Patches
from playhead.recording import ambient
from playhead.recording.recorder import Recorder
from playhead.replay.time.taped_source import TapedSource
from playhead.tape.reader import Tape

_ROUNDS = 9
_SPIN_NS = 3_000_000_000

CASES: dict[str, Callable[[], Any]] = {
    "time.time()": lambda: time.time(),
    "time.perf_counter()": lambda: time.perf_counter(),
    "datetime.now()": lambda: datetime.datetime.now(),
    "os.urandom(16)": lambda: os.urandom(16),
    "uuid.uuid4()": lambda: uuid.uuid4(),
    "random.random()": lambda: random.random(),
}


class Hooked:
    """Clock and entropy hooked, as a recording has them."""

    def __init__(self, source: ambient.Source) -> None:
        self._source = source
        self._patches = Patches()

    def __enter__(self) -> None:
        ambient.begin(self._source)
        hook_time(time, self._patches)
        hook_datetime(datetime, self._patches)
        hook_os(os, self._patches)
        hook_uuid(uuid, self._patches)
        hook_random(random, self._patches)

    def __exit__(self, *raised: object) -> None:
        ambient.end(self._source)
        self._patches.undo()


def ns_each(case: Callable[[], Any], count: int) -> float:
    began = clock.cpu_ns()
    for _ in range(count):
        case()
    return (clock.cpu_ns() - began) / count


def readings(folder: Path, count: int) -> None:
    recorder = Recorder(run=folder, run_id="bench", who="bench")
    print(f"{'':22}{'bare':>9}{'taped':>9}{'served':>9}   ns each")
    for name, case in CASES.items():
        bare, taped, served = [], [], []
        for _ in range(_ROUNDS):
            bare.append(ns_each(case, count))
            with Hooked(ambient.TapingSource(recorder)):
                taped.append(ns_each(case, count))
        with Hooked(TapedSource(_tape(folder), clock.wall_ns())):
            served.append(ns_each(case, count))
        row = [min(one) for one in (bare, taped, served)]
        print(f"{name:22}{row[0]:9.0f}{row[1]:9.0f}{row[2]:9.0f}")
    recorder.close()


def _tape(folder: Path) -> list[Event]:
    tape = Tape(folder)
    return [tape.whole(event) for event in tape.events() if event.kind == "ambient"]


def spinning(folder: Path) -> None:
    recorder = Recorder(run=folder, run_id="bench", who="bench")
    before, began, count = recorder.bytes_written, clock.mono_ns(), 0
    with Hooked(ambient.TapingSource(recorder)):
        while clock.mono_ns() - began < _SPIN_NS:
            time.time()
            count += 1
    seconds = (clock.mono_ns() - began) / 1e9
    filled = recorder.bytes_written - before
    recorder.close()
    print(
        f"a loop of {count:,} readings in {seconds:.1f} s fills {filled / 1000:.0f} KB, "
        f"{filled / seconds / 1000:.1f} KB a second, {filled / count:.3f} bytes a reading"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readings", type=int, default=200_000)
    count = parser.parse_args().readings
    with tempfile.TemporaryDirectory() as home:
        for name, measure in (("readings", lambda one: readings(one, count)), ("spin", spinning)):
            folder = Path(home) / name
            folder.mkdir()
            measure(folder)


if __name__ == "__main__":
    main()
