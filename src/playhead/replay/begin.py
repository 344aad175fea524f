"""Set a process up for replay: its mode, and the clock and entropy of the tape. Knows the plan.

Fails closed: whatever is wrong here must keep the program from running, not let it run for real.
"""

from __future__ import annotations

from pathlib import Path

from playhead.errors import TapeNotReplayable
from playhead.recorder import Recorder
from playhead.replay.ignore import trimmer
from playhead.replay.mode import ReplayMode
from playhead.replay.plan import Plan, read_plan
from playhead.replay.taped import Recording, load
from playhead.replay.taped_source import TapedSource
from playhead.tape.reader import Tape


def begin_replay(run: Path, recorder: Recorder) -> tuple[ReplayMode, TapedSource]:
    """For a process of the run in that folder."""
    plan = read_plan(run)
    if plan is None:
        raise TapeNotReplayable(f"{run} holds no plan for a replay.")
    return mode_of(plan, recorder)


def mode_of(plan: Plan, recorder: Recorder) -> tuple[ReplayMode, TapedSource]:
    recording = replayable(Tape(Path(plan.tape)))
    mode = ReplayMode(recording, recorder, trim=trimmer(plan.ignore))
    started = recording.tape.manifest.started_ns
    return mode, TapedSource(recording.ambient, started, pace=plan.pace)


def replayable(tape: Tape) -> Recording:
    """The recording on this tape; TapeNotReplayable says why it is none."""
    level = tape.manifest.level
    if level != "full":
        raise TapeNotReplayable(
            f"{tape.manifest.run} was recorded at level {level!r}: what was asked and answered is not on it. "
            "Record again with `--level full`."
        )
    return load(tape)
