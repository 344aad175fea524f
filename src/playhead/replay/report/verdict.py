"""Judge a replay from its tape and the recorded one: how calls were served, where the two differ, the output.

Pure except for reading tapes. Knows match facts and divergences on the replay's tape; does not know how the verdict is
shown.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from playhead import events
from playhead.events import BOUNDARIES, Event
from playhead.recording.calls import Call
from playhead.replay.matching.matcher import is_side
from playhead.replay.matching.taped import TapedCall, TapedRun, load
from playhead.replay.modes.replay_options import ReplayOptions
from playhead.replay.report import causes, extras, watched_stores
from playhead.replay.report import printed_output as outputs
from playhead.tape.first_call import start_up_ns
from playhead.tape.reader import Tape
from playhead.workspace.files_report import FilesReport

RUNGS = ("exact", "normalised", "fuzzy", "live", "blocked", "missed", "unused")


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceReport:
    """The fence that isolated the replay from the world. Without a `kind` there was none, and `why` gives the
    reason.
    """

    kind: str | None = None
    why: str | None = None
    # Something was live, so the network was not closed.
    network_open: bool = False
    # Folders that the program could not write to.
    read_only: tuple[str, ...] = ()
    # Files that it wrote, or deleted, in memory: the real ones are untouched.
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a replay; `as_json` is the report file."""

    verdict: str  # identical, changed, diverged, unproven
    run: str
    replay: str
    command: list[str]
    coverage: dict[str, dict[str, int]]
    divergences: list[dict[str, Any]]
    exit_code: dict[str, int | None]
    output_same: bool | None
    state: dict[str, Any]
    duration_s: dict[str, float | None]
    # The part of the duration before the program's first call, most of it for imports.
    start_up_s: dict[str, float | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # For other modes: what was live, inexact answers, blocked and allowed tools, the faults that fired, and whether the
    # agent recovered from them.
    live: list[str] = field(default_factory=list)
    inexact: list[dict[str, Any]] = field(default_factory=list)
    blocked: list[dict[str, Any]] = field(default_factory=list)
    allowed: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    recovered: bool | None = None
    forked_at: int | None = None
    # None for a replay inside the calling process.
    fence: FenceReport | None = None
    # None if the files of the recording are not on the tape, or were not restored.
    files: FilesReport | None = None
    # `strict`, or the reason why the order of concurrent work was not kept.
    order: str = "strict"
    # The inbound request that was replayed alone: its number, name, and the number of its calls.
    request: dict[str, Any] | None = None

    @property
    def first_divergence(self) -> dict[str, Any] | None:
        return self.divergences[0] if self.divergences else None

    def as_json(self) -> dict[str, Any]:
        members = asdict(self)
        members["first_divergence"] = self.first_divergence
        return members


def judge(
    original: Tape,
    replayed: Tape,
    *,
    notes: Sequence[str] = (),
    wishes: ReplayOptions | None = None,
    fence: FenceReport | None = None,
    files: FilesReport | None = None,
    order: str = "strict",
) -> Report:
    """Read and compare both tapes, and judge the replay. If something was live, only the calls from the tape count."""
    wishes = wishes or ReplayOptions()
    then, now = load(original, request=wishes.request), load(replayed)
    exits = {"recorded": original.manifest.exit_code, "replayed": replayed.manifest.exit_code}
    # The output and the state of one request cannot be told from those of the others.
    is_whole = then.request is None
    difference = outputs.difference(then, now) if is_whole else None
    state = watched_stores.compared(original, replayed, then, now) if is_whole else _NO_STATE
    unused = _expected(_unused(then, now), then, wishes)
    found = _found(original, replayed, unused, exits, wishes)
    if not wishes.mixed:
        found += _other_results(difference, state, files)
    divergences = causes.by_cause(found)
    went_elsewhere = (
        difference is not None
        or state["first_difference"] is not None
        or bool(extras.blocked(now))
        or _llm_calls(then) != _llm_calls(now)
    )
    verdict = _verdict(divergences, fence, wishes, went_elsewhere=went_elsewhere)
    recovered = None
    if wishes.faults:
        recovered = _recovered(then, now, wishes, same_exit=_same_exit(exits))
    return Report(
        verdict=verdict,
        fence=fence,
        files=files,
        order=order,
        run=original.manifest.run,
        replay=replayed.manifest.run,
        command=list(replayed.manifest.command),
        coverage=_coverage(now, found, unused),
        divergences=divergences,
        exit_code=exits,
        output_same=difference is None if is_whole and (then.outputs or now.outputs) else None,
        request=None if then.request is None else then.request.as_json(),
        state=state,
        duration_s={
            "recorded": original.manifest.duration_s,
            "replayed": replayed.manifest.duration_s,
        },
        start_up_s={"recorded": _start_up_s(original), "replayed": _start_up_s(replayed)},
        notes=_notes(then, now, divergences, verdict, [*notes, *_interrupted(exits)]),
        live=list(wishes.policy.live),
        inexact=extras.inexact(now) if wishes.mixed else [],
        blocked=extras.blocked(now),
        allowed=extras.allowed(now, wishes) if wishes.mixed else [],
        faults=extras.fired(now),
        recovered=recovered,
        forked_at=wishes.fork_at,
    )


def _notes(
    then: TapedRun,
    now: TapedRun,
    divergences: Sequence[dict[str, Any]],
    verdict: str,
    known: Iterable[str],
) -> list[str]:
    """Return the remarks of the report: what may be the cause first, then `known` ones, then what was ignored."""
    redacted = causes.redaction_note(then, divergences)
    notes = [*([redacted] if redacted else ()), *known]
    if verdict == "diverged":
        if then.request is not None:
            notes.append(_ALONE)
        # Workers of a process pool take jobs in any order, so even an identical replay may skip points.
        notes += extras.order(now)
    return [*notes, *outputs.remarks(then, now), *extras.unchanged(now)]


_ALONE = (
    "Earlier requests were not sent: what they left in the program (a cache, a session, a token that the first of them "
    "got) is missing, which may be the cause."
)
# For a replay whose state is not compared.
_NO_STATE: dict[str, Any] = {"same": None, "first_difference": None}


def _found(
    original: Tape,
    replayed: Tape,
    unused: Sequence[TapedCall],
    exits: Mapping[str, int | None],
    wishes: ReplayOptions,
) -> list[dict[str, Any]]:
    """Return the divergences of calls and of the exit code."""
    found = [
        *_divergences_on(replayed),
        *(_never_made(call) for call in unused),
        *_stopped(original, replayed, wishes),
    ]
    # A replay of one request may have to end the server.
    if not _same_exit(exits) and wishes.fork_at is None and wishes.request is None:
        found.append(_other_exit(exits, replayed))
    return found


def _divergences_on(replayed: Tape) -> list[dict[str, Any]]:
    """Return the divergences that the replay itself wrote to its tape."""
    return [
        _heard(replayed.whole(event))
        for event in replayed.events()
        if event.kind == events.DIVERGENCE and event.ours
    ]


def _other_exit(exits: Mapping[str, int | None], replayed: Tape) -> dict[str, Any]:
    recorded = "none" if exits["recorded"] is None else exits["recorded"]
    detail = f"Exit code: {recorded} recorded, {exits['replayed']} replayed."
    error = _last_error(replayed)
    return {"kind": "exit", "detail": detail if error is None else f"{detail} {error}"}


def _other_results(
    difference: str | None, state: dict[str, Any], files: FilesReport | None
) -> list[dict[str, Any]]:
    """Return differences of output, state and files: divergences, unless something was live on purpose."""
    found = {
        "output": difference,
        "state": state["first_difference"],
        "files": None if files is None else files.detail,
    }
    return [
        {"kind": kind, "detail": detail} for kind, detail in found.items() if detail is not None
    ]


def _interrupted(exits: Mapping[str, int | None]) -> list[str]:
    if exits["recorded"] != -signal.SIGINT or not _same_exit(exits):
        return []
    return ["Ctrl-C interrupted the recorded run; the replay ends there."]


def _same_exit(exits: Mapping[str, int | None]) -> bool:
    """Return whether the exit codes agree. A run that was recorded in its own process, or was killed, has no exit code
    to compare. A replay whose command could not be started proves nothing, whatever is on the tape.
    """
    if exits["recorded"] is None:
        return exits["replayed"] not in _NOT_STARTED
    return exits["recorded"] == exits["replayed"]


# Exit codes of shells and of our launcher for a command that is not executable or does not exist.
_NOT_STARTED = (126, 127)

# Differences that are expected if something was live on purpose: another prompt has other consequences.
_RESULTS = frozenset({"missed", "unused", "exit", "output", "state", "files"})


def _verdict(
    divergences: Sequence[dict[str, Any]],
    fence: FenceReport | None,
    wishes: ReplayOptions,
    *,
    went_elsewhere: bool,
) -> str:
    """Return the verdict. `identical` says that nothing bypassed the tape, which is not known without a fence.
    `changed` is for replays in which something was live on purpose: a comparison, not an error.
    """
    is_live = bool(wishes.policy.live) and not wishes.policy.strict
    if is_live and all(one.get("kind") in _RESULTS for one in divergences):
        return "changed" if divergences or went_elsewhere else "identical"
    if divergences:
        return "diverged"
    unproven = fence is not None and fence.kind is None and not wishes.mixed
    return "unproven" if unproven else "identical"


def _stopped(original: Tape, replayed: Tape, wishes: ReplayOptions) -> list[dict[str, Any]]:
    """Return the connections that the fence stopped, except for those that already failed, or were datagrams, when the
    run was recorded.
    """
    if wishes.policy.live:
        return []
    extra = original.manifest.extra
    then = {*(extra.get("refused") or ()), *(extra.get("datagrams") or ())}
    counts: Counter[tuple[str, str]] = Counter()
    for row in replayed.manifest.extra.get("stopped") or ():
        is_unknown = row.get("how") == "datagram" and "datagrams" not in extra
        if row.get("to") not in then and not is_unknown:
            counts[str(row.get("program")), str(row.get("to"))] += int(row.get("count") or 1)
    return [_kept_in(program, to, count) for (program, to), count in counts.items()]


def _kept_in(program: str, to: str, count: int) -> dict[str, Any]:
    times = "" if count == 1 else f" ({count} times)"
    return {
        "kind": "fence",
        "boundary": "http",
        "name": f"{program.rpartition('/')[2]} to {to}",
        "program": program,
        "destination": to,
        "count": count,
        "detail": f"{program} tried to connect to {to}{times}. No Playhead hook saw it, and the tape "
        "has no answer for it; the fence stopped it.",
        "advice": "Record the run again: `record` says which connections it could not record.",
    }


def _expected(unused: list[TapedCall], then: TapedRun, wishes: ReplayOptions) -> list[TapedCall]:
    """Return the unused calls that the tape alone answers. A live call, and every call inside it, is made again."""
    if wishes.fork_at is not None:
        return [call for call in unused if call.number < wishes.fork_at]
    live: set[str] = set()
    for call in then.calls:
        if wishes.policy.is_live(Call(boundary=call.boundary, name=call.name)):
            _with_all_below(call.ref, then, live)
    return [call for call in unused if call.ref not in live]


def _recovered(then: TapedRun, now: TapedRun, wishes: ReplayOptions, *, same_exit: bool) -> bool:
    """Return whether the agent came to the same end. A live model may use other words."""
    before, after = (outputs.printed(one.outputs, "stdout") for one in (then, now))
    same_words = before == after or (
        outputs.by_proxy(then) and outputs.difference(then, now) is None
    )
    return same_exit and (same_words or wishes.mixed)


def _last_error(replayed: Tape) -> str | None:
    """Return the exception that ended the replayed program, unless it is a divergence, which has its own entry."""
    ends = [event for event in replayed.events() if event.kind == events.SEGMENT_END and event.ours]
    errors = (causes.error_text(replayed.whole(event).data.get("error")) for event in ends)
    found = [one for one in errors if one is not None and not one.startswith("playhead.")]
    return found[0] if found else None


def _heard(event: Event) -> dict[str, Any]:
    return dict(event.data) if isinstance(event.data, dict) else {"kind": "unknown"}


def _unused(then: TapedRun, now: TapedRun) -> list[TapedCall]:
    """Return the taped calls that the replay did not make, without those inside a call that the tape answered."""
    served: set[str] = set()
    for call in now.calls:
        match = call.event.data.get("match")
        if isinstance(match, dict):
            _with_all_below(str(match.get("of")), then, served)
    return [
        call for call in then.calls if not (call.ref in served or call.is_optional or is_side(call))
    ]


def _with_all_below(ref: str, then: TapedRun, served: set[str]) -> None:
    if ref in served:
        return
    served.add(ref)
    for inner in then.below.get(ref, ()):
        _with_all_below(inner.ref, then, served)


def _never_made(call: TapedCall) -> dict[str, Any]:
    return {
        "kind": "unused",
        "step": call.number,
        "boundary": call.boundary,
        "name": call.name,
        "lane": call.lane,
        "at": call.event.at,
        "request": call.request,
        "advice": "The current code does not make this call. If that is intended, record a new tape.",
    }


def _coverage(
    now: TapedRun, divergences: Iterable[dict[str, Any]], unused: Iterable[TapedCall]
) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}

    def add(boundary: str, rung: str) -> None:
        row = counts.setdefault(boundary, dict.fromkeys(RUNGS, 0))
        row[rung] = row.get(rung, 0) + 1

    for call in now.calls:
        match = call.event.data.get("match")
        add(call.boundary, str(match.get("rung")) if isinstance(match, dict) else "live")
    for one in divergences:
        if one.get("kind") == "missed":
            add(str(one.get("boundary")), "missed")
    for call in unused:
        add(call.boundary, "unused")
    order: dict[str, int] = {name: index for index, name in enumerate(BOUNDARIES)}
    return dict(sorted(counts.items(), key=lambda pair: order.get(pair[0], 99)))


def _start_up_s(tape: Tape) -> float | None:
    found = start_up_ns(tape.events())
    return None if found is None else found / 1e9


def _llm_calls(recording: TapedRun) -> int:
    return sum(call.boundary == "llm" for call in recording.calls)
