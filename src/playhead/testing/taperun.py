"""Record or replay a run in a test: in the test's own process, or as `playhead replay` does it in a new one.

    with replaying(Path("tests/tapes/refund.tape.jsonl")) as run:
        answer = agent.ask("Where is order A-17?")
    run.check()

Knows how to install and uninstall hooks and mode. Does not know pytest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playhead.errors import Divergence, TapeError, TapeNotReplayable, UsageError
from playhead.launch.guest import hooking as session
from playhead.launch.record_run import record
from playhead.recording import deck
from playhead.recording.runs import Run
from playhead.replay.begin import replayable
from playhead.replay.matching.ignore import trimmer
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.replay.replay_plan import Rule
from playhead.replay.report.divergence import Parting
from playhead.replay.time.taped_source import TapedSource
from playhead.story import CallItem, Story, tell
from playhead.story.derived_tools import DERIVED
from playhead.tape.reader import Tape
from playhead.tape.single_file import pack, unpack


class TapeRun:
    """The handle of a test's run, during the run and after it."""

    def __init__(self, run: Run, mode: ReplayMode | None) -> None:
        self.run = run
        self._mode = mode
        # A test that failed while it was recorded leaves no tape: it would be useless.
        self.failed = False

    @property
    def story(self) -> Story:
        return tell(Tape(self.run.path))

    @property
    def calls(self) -> list[CallItem]:
        return [call for call in self.story.calls() if DERIVED not in call.facts]

    @property
    def tools(self) -> list[str]:
        """Return the names of the called tools, in order."""
        called = [call for call in self.story.calls() if call.boundary in ("tool", "mcp")]
        # Sorted by place: the number of a derived tool is higher than that of every recorded call.
        return [call.name for call in sorted(called, key=lambda call: call.place)]

    @property
    def steps(self) -> int:
        """Return the number of LLM calls."""
        return self.story.totals.llm_calls

    @property
    def tokens(self) -> int | None:
        return self.story.totals.tokens

    @property
    def cost_usd(self) -> float | None:
        return self.story.totals.cost_usd

    def assert_tools(self, *names: str) -> None:
        """Check that these tools were called in this order; others may come between."""
        called = iter(self.tools)
        missing = [name for name in names if not any(name == one for one in called)]
        assert not missing, f"{missing[0]!r} was not called in that order; called: {self.tools}"  # noqa: S101

    def assert_no_tool(self, *names: str) -> None:
        found = [name for name in self.tools if name in names]
        assert not found, f"{found[0]!r} must not be called; called: {self.tools}"  # noqa: S101

    @property
    def partings(self) -> list[Parting]:
        """Return where the replay differs from its tape; taped calls that were never made come last."""
        if self._mode is None:
            return []
        unused = [
            Parting(
                kind="unused",
                step=one.number,
                boundary=one.boundary,
                name=one.name,
                lane=one.lane,
                request=one.request,
            )
            for one in self._mode.matcher.unserved()
        ]
        return [*self._mode.partings, *unused]

    def check(self) -> None:
        """Raise Divergence unless the run and the tape have the same calls."""
        partings = self.partings
        if partings:
            raise Divergence("\n".join(str(one) for one in partings[:5]), partings[0])


@contextmanager
def recording_to(target: Path, *, name: str | None = None) -> Iterator[TapeRun]:
    """Record the block, then write it as one file. Nothing is written if it raises."""
    with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
        with record(
            name=name or target.name.partition(".")[0], store=folder, intercept=True, enabled=True
        ) as run:
            if not isinstance(run, Run):
                raise TapeNotReplayable("This test cannot be recorded; see the warning above.")
            made = TapeRun(run, None)
            yield made
        if not made.failed:
            pack(run.path, target)


@contextmanager
def replaying(source: Path, *, ignore: tuple[Rule, ...] = ()) -> Iterator[TapeRun]:
    """Serve the calls of the block from the tape: nothing is sent, nothing is executed."""
    with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
        recording = replayable(Tape(unpack(source, Path(folder) / "taped")))
        with record(
            name=recording.tape.manifest.name, store=Path(folder) / "store", enabled=True
        ) as run:
            if not isinstance(run, Run):
                raise TapeNotReplayable(
                    "The replay's own tape cannot be written; see the warning above."
                )
            mode = ReplayMode(recording, run.recorder, trim=trimmer(ignore))
            with _hooked(run, mode, recording.tape.manifest.started_ns, recording.ambient):
                yield TapeRun(run, mode)


@contextmanager
def _hooked(run: Run, mode: ReplayMode, started_ns: int, taped: list[Any]) -> Iterator[None]:
    outer = deck.of_process()
    if outer is not None:
        deck.deactivate(outer)
    made = session.start(run.recorder, mode, source=TapedSource(taped, started_ns))
    try:
        yield
    finally:
        session.stop(made)
        if outer is not None:
            deck.activate(outer)


def replay(
    tape: str | os.PathLike[str],
    command: Sequence[str] | None = None,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> dict[str, Any]:
    """Replay a tape and return its report: `{"verdict": "identical", "coverage": …}`.

    The program prints to the test's own output. Raises TapeError if the tape cannot be replayed.
    """
    with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
        report = Path(folder) / "report.json"
        argv = [
            sys.executable,
            "-m",
            "playhead",
            "replay",
            os.fspath(tape),
            "--quiet",
            "--trust",  # a test runs the code beside it, and its tape is in the same project
            "--report",
            str(report),
        ]
        argv += (
            ["--store", str(Path(folder) / "store"), "--", *command]
            if command
            else ["--store", str(Path(folder) / "store")]
        )
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        if not report.exists():
            kind = TapeError if done.returncode == TapeError.exit_code else UsageError
            raise kind(done.stderr.strip() or f"playhead replay exited with {done.returncode}")
        members: dict[str, Any] = json.loads(report.read_text())
        return members
