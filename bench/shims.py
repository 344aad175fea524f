"""What a shim costs, beside the same program without one.

    python bench/shims.py [ROUNDS]

The ways take turns within each round, so that what else the machine does hits them alike. Medians of
whole processes, from start to end; what a shim costs is the difference to bare. The ways that were not
taken are measured beside the one that was: see docs/design/014-shims.md.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playhead import clock
from playhead.launch.shims.post import DOOR, Shims, make_shims
from playhead.launch.shims.program_names import Wanted
from playhead.launch.sidecar import control
from playhead.launch.sidecar.control import Sidecar
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor

_SIZES = {"true": "", "100 KB": "100000"}
_MOST_MS = 5.0
# What was said → way → milliseconds.
Figures = dict[str, dict[str, float]]
_TEE = """#!/bin/sh
d=$(mktemp -d)
{ { { "%s" "$@"; echo $? >&5; } 2>&3 | tee $d/o >&4; } 3>&1 | tee $d/e >&2; } 4>&1 5>$d/c
read c <$d/c; rm -r $d; exit $c
"""


def served_shims(folder: Path, name: str, real: Path, *, native: bool) -> tuple[Shims, Sidecar]:
    """Shims for our program, with a sidecar and a tape of their own."""
    run = folder / name
    run.mkdir()
    redactor = Redactor(key=b"bench", variables=dict(os.environ))
    recorder = Recorder(run=run, run_id=name, who="bench", redactor=redactor)
    env = {**os.environ, "PATH": f"{real.parent}:{os.environ['PATH']}"}
    env |= {} if native else {"PLAYHEAD_SHIMS_NATIVE": "0"}
    # No process is the launcher: what a launcher starts is the command, which has no shim.
    shims = make_shims(recorder, Wanted(names=(real.name,)), env, launcher=0)
    sidecar = control.start(recorder, shims=shims)
    sidecar.watch(os.getpid())
    return shims, sidecar


def scripts(folder: Path, real: Path) -> dict[str, Path]:
    """What else a shim could be."""
    made = {
        "sh that only execs": f'#!/bin/sh\nexec "{real}" "$@"\n',
        "sh with two tees": _TEE % real,
        "an empty Python": f"#!{sys.executable} -IS\n",
    }
    paths = {}
    for at, (name, text) in enumerate(made.items()):
        paths[name] = folder / f"script-{at}"
        paths[name].write_text(text)
        paths[name].chmod(0o700)
    return paths


def program(folder: Path) -> Path:
    """Prints as many bytes as it is told: the least that a program can be."""
    (folder / "bin").mkdir()
    path = folder / "bin" / "say"
    path.write_text('#!/bin/sh\n[ -z "$1" ] || head -c "$1" /dev/zero\n')
    path.chmod(0o700)
    return path


def timed(argv: list[str], env: Mapping[str, str]) -> float:
    started = clock.mono_ns()
    subprocess.run(argv, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return (clock.mono_ns() - started) / 1e6


def main(rounds: int) -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        real = program(folder)
        ways: dict[str, tuple[Path, Mapping[str, str]]] = {"bare": (real, os.environ)}
        desks = {
            "the shim in C": served_shims(folder, "native", real, native=True),
            "no sidecar": served_shims(folder, "gone", real, native=True),
            "the shim in Python": served_shims(folder, "fallback", real, native=False),
        }
        for name, (shims, _) in desks.items():
            if shims.folder is not None:
                ways[name] = (shims.folder / "bin" / real.name, shims.env)
        gone = desks["no sidecar"][0].folder
        if gone is not None:
            (gone / DOOR).unlink()
        ways |= {name: (path, os.environ) for name, path in scripts(folder, real).items()}

        def measure() -> Figures:
            took: dict[str, dict[str, list[float]]] = {
                size: {way: [] for way in ways} for size in _SIZES
            }
            for _ in range(rounds):
                for size, word in _SIZES.items():
                    for way, (path, env) in ways.items():
                        took[size][way].append(timed([str(path), word], env))
            return {
                size: {way: statistics.median(all_) for way, all_ in rows.items()}
                for size, rows in took.items()
            }

        told = measure()
        for shims, sidecar in desks.values():
            sidecar.dismiss()
            shims.remove()
    lines = [f"{rounds} processes each; medians in ms, what the shim costs, ratio to bare"]
    lines.append(f"{'':24}" + "".join(f"{size:>28}" for size in told))
    for way in ways:
        cells = [
            (rows[way], rows[way] - rows["bare"], rows[way] / rows["bare"])
            for rows in told.values()
        ]
        lines.append(f"{way:24}" + "".join(f"{a:12.2f} {b:+8.2f} {c:5.2f}x" for a, b, c in cells))
    cost = told["true"]["the shim in C"] - told["true"]["bare"]
    lines.append(f"goal: at most {_MOST_MS} ms; it is {cost:.2f}")
    floor = told["true"]["an empty Python"]
    slow = told["true"]["the shim in Python"] - told["true"]["bare"]
    lines.append(
        f"without a compiler {slow:.2f}: {slow / floor:.2f} times an empty Python ({floor:.2f}), the floor"
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return int(cost > _MOST_MS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
