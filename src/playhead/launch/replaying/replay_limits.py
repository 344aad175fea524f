"""Limit what the command of a replay can reach: its fence, its network, and the programs that the tape answers for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.errors import NoFence
from playhead.events import CALL, RUN_END, WORKSPACE
from playhead.launch.shims.program_names import Wanted, of_facts
from playhead.replay.fence.barrier import Fence, build
from playhead.replay.fence.inside import FenceNeeds
from playhead.replay.modes.replay_options import ReplayOptions
from playhead.replay.report.verdict import FenceReport
from playhead.tape.reader import Tape

# Boundaries that need only the network when they are live.
_OF_THE_NETWORK = frozenset({"llm", "http"})
_SCRATCH = ("/tmp", "/var/tmp")  # noqa: S108  covered, not used
_MOST_NAMED = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of the command of a replay. Without a `fence`, real effects are intended."""

    shims: Wanted
    fence: Fence | None
    # Live calls are made inside the fence, so its network is open.
    network: bool


def limits_for(
    tape: Tape,
    command: Sequence[str],
    then: Mapping[str, Any],
    wishes: ReplayOptions,
    env: Mapping[str, str],
    *,
    fenced: bool,
) -> Limits:
    """Build the fence, and choose the programs that the tape answers for. NoFence: this machine has none."""
    shims = of_facts(then)
    if shims.followed:
        shims = shims._replace(names=_taped_programs(tape))
    network = _needs_network(tape, wishes, followed=shims.followed)
    fence = None
    if fenced:
        own = _written_folders(env, Path(tape.manifest.cwd), command, tape)
        sockets = shims.followed or bool(shims.names)
        needs = FenceNeeds(own=own, network=network, sockets=sockets, pid=_taped_pid(tape))
        fence = _fence(wishes, needs)
    return Limits(shims=shims, fence=fence, network=network)


def _taped_programs(tape: Tape) -> tuple[str, ...]:
    """Return the programs that the recorded command found on PATH, by name."""
    names = set()
    for event in tape.events():
        if event.kind == CALL and event.ours and event.data.get("boundary") == "process":
            argv = (tape.whole(event).data.get("request") or {}).get("argv")
            if isinstance(argv, list) and argv and os.sep not in str(argv[0]):
                names.add(str(argv[0]))
    return tuple(sorted(names - {"", ".", ".."}))


def _taped_pid(tape: Tape) -> int | None:
    """Return the process id of the recorded command. None: it was killed, or the tape is of an older version."""
    ends = (one.data.get("pid") for one in tape.events() if one.kind == RUN_END)
    pid = next(ends, None)
    return pid if type(pid) is int and pid > 1 else None


def _needs_network(tape: Tape, wishes: ReplayOptions, *, followed: bool) -> bool:
    """Return whether live calls are made inside the fence. A hooked Python makes them there. The sidecar makes the
    calls of the proxy outside of it: then no other process of the tree has a network.
    """
    live = {one.partition(":")[0] for one in wishes.policy.live} & _OF_THE_NETWORK
    if not live or not followed:
        return bool(live)
    return any(
        one.get("boundary") in live and one.get("library") != "proxy" for one in _calls(tape)
    )


def has_own_clock(tape: Tape) -> bool:
    """Return whether a program of this run used the proxy: it was not hooked, and has its own clock and ids."""
    return any(one.get("library") == "proxy" for one in _calls(tape))


def _calls(tape: Tape) -> Iterator[dict[str, Any]]:
    return (event.data for event in tape.events() if event.kind == CALL and event.ours)


def _written_folders(
    env: Mapping[str, str], cwd: Path, command: Sequence[str], tape: Tape
) -> tuple[str, ...]:
    """Return the folders that the command is likely to write to: the usual ones, those in its variables and
    arguments, and those in which the recorded run wrote. The folders of other users must be known beforehand (see
    `covers.survey`).
    """
    usual = (str(cwd), env.get("HOME"), env.get("TMPDIR"), *_SCRATCH)
    named = [one for one in (*command, *env.values()) if one.startswith(os.sep)]
    named += [os.path.dirname(one) for one in named]
    if os.geteuid():  # root writes in every folder
        starts = (event.data for event in tape.events() if event.kind == WORKSPACE and event.ours)
        named = [*(str(one.get("root")) for one in starts), *named]
    found = [one for one in dict.fromkeys(named) if os.path.isdir(one) and os.access(one, os.W_OK)]
    return (*(one for one in usual if one and os.path.isdir(one)), *found[:_MOST_NAMED])


def _fence(wishes: ReplayOptions, needs: FenceNeeds) -> Fence | None:
    """Return the fence of the command. None: real effects are intended.

    Live tools of a fork work on the fork's own files if the machine has overlays.
    """
    live = {one.partition(":")[0] for one in wishes.policy.live}
    if live - _OF_THE_NETWORK or wishes.policy.allow_tools or wishes.policy.allow_all_tools:
        if wishes.fork_at is None:
            return None
        with suppress(NoFence):
            return build(needs._replace(network=True), ("namespaces",))
        return None
    try:
        return build(needs)
    except NoFence as error:
        raise NoFence(
            f"This machine has no fence for the replay: {error}. Nothing was started. "
            "With `--unfenced` it runs without one: hooks stop only the calls that they see, and the verdict "
            "is `unproven`. `playhead doctor` says what is missing."
        ) from None


def notes_on(fence: Fence | None) -> tuple[str, ...]:
    """Return notes on the limits of the fence, for the report."""
    if fence is None or fence.kind != "landlock":
        return ()
    limits = "the command could not write files, and files that its calls wrote are not restored"
    return (f"This machine has no namespaces, so Landlock is the fence: {limits}.",)


def report_on(limits: Limits, *, asked: bool) -> FenceReport:
    fence = limits.fence
    if fence is None:
        return FenceReport(why="a live part has real effects" if asked else "--unfenced")
    return FenceReport(
        kind=fence.kind,
        network_open=limits.network,
        read_only=tuple(fence.read_only),
        written=tuple(fence.written()),
    )
