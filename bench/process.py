"""What recording and replaying a subprocess costs, beside the same call unrecorded.

    python bench/process.py [ROUNDS]

Bare, recorded and replayed take turns within each round, so that what else the machine does hits
them alike. Medians; compare the ratios.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from playhead import clock
from playhead.hooks import registry
from playhead.recording import deck
from playhead.recording.deck import Call, Deck, Taped
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor
from playhead.replay.matching.taped import answer_of, load
from playhead.tape.reader import Tape

PIPE = subprocess.PIPE
_IN_A_ROW = 5


class Always:
    """Answers every call of a program with the one that was recorded of it."""

    def __init__(self, run: Path) -> None:
        tape = Tape(run)
        self._answers = {
            tuple(call.request["argv"]): answer_of(tape, call, match={})
            for call in load(tape).calls
        }

    def answer(self, call: Call, lane: str) -> Taped:
        return self._answers[tuple(call.request["argv"])]


def cases(folder: Path) -> dict[str, Callable[[], object]]:
    """Each case is one call; what it starts is small, so that our own part is what shows."""
    (folder / "100k").write_text((inspect.getsource(subprocess) * 2)[:100_000])
    cat = ["cat", str(folder / "100k")]
    loop = asyncio.new_event_loop()

    async def talk(argv: list[str]) -> None:
        process = await asyncio.create_subprocess_exec(*argv, stdout=PIPE, stderr=PIPE)
        await process.communicate()

    return {
        "run true, inherited": lambda: subprocess.run(["true"], check=True),
        "run true, captured": lambda: subprocess.run(["true"], capture_output=True, check=True),
        "run cat 100 KB, captured": lambda: subprocess.run(cat, capture_output=True, check=True),
        "asyncio true, pipes": lambda: loop.run_until_complete(talk(["true"])),
        "asyncio cat 100 KB, pipes": lambda: loop.run_until_complete(talk(cat)),
    }


def new_deck(folder: Path, name: str, mode: object = None, *, redact: bool = True) -> Deck:
    run = folder / name
    run.mkdir()
    redactor = Redactor(key=b"bench", variables=dict(os.environ)) if redact else None
    return Deck(Recorder(run=run, run_id=name, who="bench", redactor=redactor), mode)


def timed(case: Callable[[], object], on: Deck | None) -> list[float]:
    """Nanoseconds of each of a few calls in a row: hooks are put in once, as in a program."""
    took = []
    if on is not None:
        deck.activate(on)
        registry.install()
    try:
        for _ in range(_IN_A_ROW):
            started = clock.mono_ns()
            case()
            took.append(clock.mono_ns() - started)
    finally:
        if on is not None:
            registry.uninstall()
            deck.deactivate(on)
    return took


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        registry.ROWS = tuple(row for row in registry.ROWS if row.boundary == "process")
        registry.REPLAY_ROWS = ()
        calls = cases(folder)
        first = new_deck(folder, "first")
        for case in calls.values():
            timed(case, first)
        first.recorder.close()
        ways = {
            "bare": None,
            "recorded": new_deck(folder, "recorded", redact=False),
            "and redacted": new_deck(folder, "redacted"),
            "replayed": new_deck(folder, "replayed", Always(folder / "first"), redact=False),
        }
        took: dict[tuple[str, str], list[float]] = {}
        for _ in range(rounds):
            for name, case in calls.items():
                for way, on in ways.items():
                    took.setdefault((name, way), []).extend(timed(case, on))
    lines = [f"{rounds * _IN_A_ROW} calls each, medians in us, ratio to bare"]
    lines.append(f"{'':28}" + "".join(f"{way:>16}" for way in ways))
    for name in calls:
        medians = [statistics.median(took[name, way]) / 1000 for way in ways]
        row = "".join(f"{one:9.0f} {one / medians[0]:5.2f}x" for one in medians)
        lines.append(f"{name:28}{row}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
