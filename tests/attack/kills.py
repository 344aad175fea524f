"""Kill a recording program with SIGKILL at random moments, and look for acknowledged events on its tape."""

import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playhead.tape.reader import Tape

PROGRAM = Path(__file__).parents[1] / "faults" / "programs" / "killed.py"
_ACK = struct.Struct("<IIII")


class Killed(NamedTuple):
    """The result of one batch."""

    kills: int
    acknowledged: int
    # Events that were acknowledged and are not on the tape, and other damage than a torn last line.
    lost: list[str]


def killed(count: int, seed: int, most_s: float) -> Killed:
    """Kill this many runs. TimeoutExpired: they took longer than that."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, str(PROGRAM), folder, str(count), str(seed)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=most_s)
        if done.returncode:
            return Killed(0, 0, [f"seed {seed}: {done.stderr.strip()[-200:]}"])
        lost: list[str] = []
        acknowledged = 0
        for line in done.stdout.splitlines():
            run, acks = line.split(" ", 1)
            rows = list(_ACK.iter_unpack(Path(acks).read_bytes()))
            acknowledged += len(rows)
            lost += _lost(Path(folder) / "runs" / run, rows)
        return Killed(len(done.stdout.splitlines()), acknowledged, lost)


def _lost(run: Path, acks: list[tuple[int, ...]]) -> list[str]:
    events, damage = {}, []
    if run.exists() and any(run.glob("tape-*")):
        tape = Tape(run)
        events = {(one.pid, one.seq): one.data for one in tape.events() if one.kind == "x"}
        damage = [str(one) for one in tape.damage]
    wrong = [one for one in damage if "torn" not in one and "cut off" not in one]
    return [
        *(f"{run.name}: {one}" for one in wrong),
        *(
            f"{run.name}: event {seq} of process {pid} is not on the tape"
            for pid, seq, worker, n in acks
            if (data := events.get((pid, seq))) is None
            or (data["worker"], data["n"]) != (worker, n)
        ),
    ]
