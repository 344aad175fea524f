"""Fork mode: serve calls from the tape up to a step, then follow the rules of mixed mode. Knows edits and the effects
of the calls before the fork.

`at` is the number of a call, as `playhead show` counts them: the calls before it come from the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from playhead.errors import UsageError
from playhead.recording.calls import Call, Taped
from playhead.recording.recorder import Recorder
from playhead.replay.matching.taped import TapedCall, TapedRun, answer_of
from playhead.replay.modes.edits import Edit, edited
from playhead.replay.modes.mixed import MixedMode
from playhead.replay.modes.replay_options import Policy, is_named

_READING_METHODS = ("GET", "HEAD", "OPTIONS")
# Programs that Python itself runs when it looks for libraries.
_READING_PROGRAMS = ("ldconfig", "uname", "which")


class ForkMode(MixedMode):
    """The deck's mode for `playhead fork`."""

    def __init__(
        self,
        recording: TapedRun,
        recorder: Recorder,
        policy: Policy,
        *,
        at: int,
        edits: Sequence[Edit] = (),
        trim: Callable[[str, Any], Any] | None = None,
    ) -> None:
        super().__init__(recording, recorder, policy, trim=trim)
        self._at = at
        self._edits = {call.number: edit for call, edit in edited_calls(recording, edits)}

    def answer(self, call: Call, lane: str) -> Taped | None:
        request = self._recorder.frozen(call.request)
        name = self.name_on_tape(call.name)
        match = self.matcher.take(call.boundary, name, request, lane, before=self._at)
        if match is None:
            return super().answer(call, lane)
        taped = self._served(match)
        edit = self._edits.get(match.call.number)
        if edit is None:
            return taped
        changed = edited(taped, edit, api_of(match.call))
        return replace(changed, match={**taped.match, "edited": True})


def api_of(call: TapedCall) -> str:
    return str(call.event.data.get("api", ""))


def edited_calls(recording: TapedRun, edits: Sequence[Edit]) -> list[tuple[TapedCall, Edit]]:
    """Return the taped call that each edit refers to. UsageError: there is none."""
    found = []
    for edit in edits:
        calls = [call for call in recording.calls if call.boundary == edit.boundary]
        if not 1 <= edit.ordinal <= len(calls):
            raise UsageError(
                f"The tape has {len(calls)} {edit.boundary} calls; there is no {edit.boundary}:{edit.ordinal}."
            )
        found.append((calls[edit.ordinal - 1], edit))
    return found


def check_fork(recording: TapedRun, at: int, edits: Sequence[Edit]) -> None:
    """Check a fork before anything runs. UsageError says why it cannot be made."""
    if not 1 <= at <= len(recording.calls) + 1:
        raise UsageError(
            f"There is no step {at}: the run made {len(recording.calls)} calls. `playhead show` numbers them."
        )
    for call, edit in edited_calls(recording, edits):
        if call.number >= at:
            raise UsageError(
                f"{edit.boundary}:{edit.ordinal} is call {call.number}, which is not taken from the tape "
                f"in a fork at {at}. Fork later: --at {call.number + 1}."
            )
        edited(answer_of(recording.tape, call, match={}), edit, api_of(call))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The effects of the run before the fork. Faithful: the calls only read, or their changes are files that are
    `restored` from the tape. Otherwise simulated: `writes` changed something that is not restored.
    """

    calls: int
    writes: tuple[str, ...]
    # Calls that changed files, which are restored.
    restored: int = 0

    @property
    def faithful(self) -> bool:
        return not self.writes


def prefix_of(
    recording: TapedRun,
    at: int,
    effects: Mapping[str, str],
    changed_files: Collection[str] | None = None,
) -> Prefix:
    """Judge the calls before the fork by the outermost ones: the declared effect of a tool covers the calls inside it.

    `changed_files`: the calls whose file changes are restored; None: no files are restored.
    """
    inner = {call.ref for calls in recording.below.values() for call in calls}
    before = [call for call in recording.calls if call.number < at]
    changing = [one for one in before if one.ref not in inner and not _reads(one, effects)]
    writes = [
        f"{one.number} {one.boundary} {one.name}"
        for one in changing
        if changed_files is None or not _is_restored(one, effects, changed_files)
    ]
    return Prefix(calls=len(before), writes=tuple(writes), restored=len(changing) - len(writes))


def live_in_fork(
    recording: TapedRun, effects: Mapping[str, str], changed_files: Collection[str] | None
) -> tuple[str, ...]:
    """Return the boundaries and tools that are live after the fork by default.

    Without restored files: the model alone, because tools would work on the real files. With them: processes, too, and
    tools that are declared harmless or are known to work on files. Any other tool may send mail: it needs --live or
    --allow-tool.
    """
    if changed_files is None:
        return ("llm",)
    tools = {
        one.name
        for one in recording.calls
        if one.boundary == "tool"
        and (
            _effect(one, effects) in ("read", "write")
            or (_effect(one, effects) is None and one.ref in changed_files)
        )
    }
    return ("llm", "process", *(f"tool:{name}" for name in sorted(tools)))


def _is_restored(
    call: TapedCall, effects: Mapping[str, str], changed_files: Collection[str]
) -> bool:
    """Return whether restored files are the only effect of a call.

    Subprocesses work on files. A tool may do anything: it counts if the recorded call changed files, and the tool is
    not declared irreversible.
    """
    if _effect(call, effects) == "irreversible":
        return False
    return call.boundary == "process" or call.ref in changed_files


def _effect(call: TapedCall, effects: Mapping[str, str]) -> str | None:
    declared = call.event.data.get("effect")
    if declared is not None:
        return str(declared)
    return next((word for name, word in effects.items() if is_named(call.name, name)), None)


def _reads(call: TapedCall, effects: Mapping[str, str]) -> bool:
    if call.boundary == "llm":
        return True
    if call.boundary == "mcp" and "arguments" not in (call.request or {}):
        return True  # lists and handshakes
    effect = _effect(call, effects)
    if effect is None and call.boundary == "process":
        return call.name in _READING_PROGRAMS
    if effect is None and call.boundary == "http":
        return str((call.request or {}).get("method", "")).upper() in _READING_METHODS
    return effect == "read"
