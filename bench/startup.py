"""What recording costs a process that does nothing: its own part, and the launcher's.

    python bench/startup.py [ROUNDS] [PYTHON ...]

All cases take turns within each round, so that what else the machine does hits them alike. Shown is
what each adds to `python -c pass`: the median of the differences within a round; at best, where the
machine is busy; and in processor time. The peers start where
`opentelemetry-instrument` and `ddtrace-run` are found beside a PYTHON.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playhead import clock, config
from playhead.launch.guest import rules, variables
from playhead.launch.guest.variables import Ticket
from playhead.launch.record_run import Wish, open_run

PROGRAM = ("-c", "pass")
PEERS = ("opentelemetry-instrument", "ddtrace-run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way to start a program that does nothing, and what each start took."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def run(self) -> None:
        quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        began = clock.mono_ns()
        pid = os.posix_spawn(self.argv[0], self.argv, self.env, file_actions=quiet)
        _, status, used = os.wait4(pid, 0)
        self.wall_ms.append((clock.mono_ns() - began) / 1e6)
        self.cpu_ms.append((used.ru_utime + used.ru_stime) * 1e3)
        if status:
            sys.exit(f"{self.name} failed")


@contextmanager
def running(folder: Path) -> Iterator[Ticket]:
    """A run that goes on, for processes to join."""
    run = open_run(Wish(name="bench", store=folder / "joined"), config.load(), '"bench"')
    rules.post(run.recorder)
    yield Ticket(run=str(run.path), parent=run.recorder.root, seed="1")
    rules.withdraw(run.path)
    run.end()


def cases(python: str, folder: Path, ticket: Ticket) -> list[Case]:
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PLAYHEAD_", "PYTHON", "OTEL_", "DD_"))
    }
    plain["PLAYHEAD_HOME"] = str(folder / "launched")
    record = (sys.executable, "-m", "playhead", "record", "--quiet", "--", python, *PROGRAM)
    made = [
        Case(name="bare", argv=(python, *PROGRAM), env=plain),
        Case(name="in process", argv=(python, *PROGRAM), env=variables.write(plain, ticket)),
        Case(name="playhead record", argv=record, env=plain),
    ]
    for peer in PEERS:
        tool = Path(python).parent / peer
        if tool.exists():
            switches = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}
            off = {"OTEL_LOGS_EXPORTER": "none", "DD_TRACE_STARTUP_LOGS": "false"}
            argv = (str(tool), python, *PROGRAM)
            made.append(Case(name=peer, argv=argv, env={**plain, **switches, **off}))
    return made


def report(python: str, taken: list[Case]) -> None:
    bare, *others = taken
    print(f"{Path(python).name}: bare {statistics.median(bare.wall_ms):.1f} ms")
    for case in others:
        wall, cpu = (
            statistics.median(one - zero for one, zero in zip(mine, zeros, strict=True))
            for mine, zeros in ((case.wall_ms, bare.wall_ms), (case.cpu_ms, bare.cpu_ms))
        )
        best = min(case.wall_ms) - min(bare.wall_ms)
        print(f"  {case.name:26} +{wall:6.1f} ms   (at best +{best:.1f}, processor +{cpu:.1f})")


def main() -> None:
    """Each Python in turn."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as ticket:
        for python in sys.argv[2:] or [sys.executable]:
            taken = cases(python, Path(name), ticket)
            for case in taken:
                case.run()  # once for the files that Python keeps of what it has compiled
                case.wall_ms.clear()
                case.cpu_ms.clear()
            for _ in range(rounds):
                for case in taken:
                    case.run()
            report(python, taken)


if __name__ == "__main__":
    main()
