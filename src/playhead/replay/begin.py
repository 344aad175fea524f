"""Set a process up for replay: its mode, and the clock and entropy of the tape. Knows the plan.

Fails closed: any error here must keep the program from running; it must never let the program run for real.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import TapeNotReplayable
from playhead.host.later import Later
from playhead.recording import lanes
from playhead.recording.recorder import Recorder
from playhead.redact.vault_notes import VaultNotes, by_placeholder
from playhead.replay.matching.ignore import trimmer
from playhead.replay.matching.taped import TapedRun, forget_order, load
from playhead.replay.modes.replay_options import ReplayOptions, read_options
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.replay.replay_plan import ReplayPlan, read_plan
from playhead.replay.report import short_traceback
from playhead.replay.time.taped_source import TapedSource
from playhead.tape.reader import Tape

if TYPE_CHECKING:
    from playhead.replay.modes import edits, fault_mode, faults, fork, mixed
else:
    # Modes that few replays need. Every process of a replay waits for our imports before its first line runs.
    edits = Later("playhead.replay.modes.edits")
    fault_mode = Later("playhead.replay.modes.fault_mode")
    faults = Later("playhead.replay.modes.faults")
    fork = Later("playhead.replay.modes.fork")
    mixed = Later("playhead.replay.modes.mixed")

Trim = Callable[[str, Any], Any] | None


def begin_replay(run: Path, recorder: Recorder) -> tuple[ReplayMode, TapedSource]:
    """Return the mode and the clock for a process of the run in that folder."""
    plan = read_plan(run)
    if plan is None:
        raise TapeNotReplayable(f"{run} holds no plan for a replay.")
    made = mode_of(plan, recorder)
    short_traceback.arm()
    # The tape is a hundred thousand objects that all stay. If the garbage collector examined them each time that the
    # program has made some objects of its own, that would take longer than the program.
    gc.freeze()
    return made


def mode_of(plan: ReplayPlan, recorder: Recorder) -> tuple[ReplayMode, TapedSource]:
    wishes = read_options(plan.live, plan.options)
    recording = replayable(Tape(Path(plan.tape)), request=wishes.request)
    recording.cwd = plan.cwd
    lanes.know_processes(one.lane for one in recording.segments.values())
    if recorder.redactor is not None:
        kept = VaultNotes(recorder.folder, recorder.redactor.key).read()
        recording.tape.secrets = by_placeholder(kept)
        # Values of variables were redacted wherever they occurred in the recorded run.
        recorder.learn_secrets(
            {
                f"VAULT_{at}_SECRET": one.secret.decode("utf-8", "replace")
                for at, one in enumerate(kept)
                if one.kind == "variable"
            }
        )
    if not keeps_order(plan, wishes):
        forget_order(recording)
    mode = _mode(recording, recorder, wishes, trimmer(plan.ignore))
    if wishes.faults:
        mode = fault_mode.FaultMode(
            mode, [faults.parse_fault(spec) for spec in wishes.faults], seed=wishes.seed
        )
    started = recording.tape.manifest.started_ns
    source = TapedSource(recording.ambient, started, pace=plan.pace)
    source.time.stall_s = plan.timeout_s
    return mode, source


def keeps_order(plan: ReplayPlan, wishes: ReplayOptions) -> bool:
    """Return whether completions come in the order of the tape. They do not if some of them are not on it."""
    changed = wishes.mixed or wishes.fork_at is not None or wishes.faults
    return plan.order == "strict" and not (changed or plan.pace)


def _mode(recording: TapedRun, recorder: Recorder, wishes: ReplayOptions, trim: Trim) -> ReplayMode:
    if wishes.fork_at is not None:
        parsed = [edits.parse_edit(spec) for spec in wishes.edits]
        return fork.ForkMode(
            recording, recorder, wishes.policy, at=wishes.fork_at, edits=parsed, trim=trim
        )
    if wishes.mixed:
        return mixed.MixedMode(recording, recorder, wishes.policy, trim=trim)
    return ReplayMode(recording, recorder, trim=trim, lean=True)


def replayable(tape: Tape, *, request: int | None = None) -> TapedRun:
    """Return the recording on this tape, or one inbound request of it. TapeNotReplayable says why it cannot be
    replayed.
    """
    level = tape.manifest.level
    if level != "full":
        raise TapeNotReplayable(
            f"{tape.manifest.run} was recorded at level {level!r}: its tape has no requests and responses. "
            "Record again with `--level full` (a loop: `--record-level full`)."
        )
    return load(tape, request=request)
