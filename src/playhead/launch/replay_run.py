"""Run a recorded command again against its tape, and judge it. Knows the order of the steps; `playhead.replay`
implements replaying.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead.config import Settings
from playhead.errors import NoFence, TapeDamaged, TapeNotReplayable
from playhead.events import CALL, WORKSPACE, Damage
from playhead.launch.command import Recorded, run_command
from playhead.launch.command_input import taped_input
from playhead.launch.connections import ADVICE
from playhead.launch.record_run import Wish
from playhead.launch.replay_environment import RestoredEnvironment, restored
from playhead.launch.replayed_files import ReplayedFiles, replayed_files
from playhead.launch.shims.program_names import of_facts
from playhead.recording.runs import Run
from playhead.redact.vault_notes import KeptSecret, VaultNotes, by_placeholder, filled
from playhead.replay.begin import keeps_order
from playhead.replay.fence.barrier import Fence, build, opened
from playhead.replay.fence.inside import FenceNeeds
from playhead.replay.modes.replay_options import ReplayOptions, read_options
from playhead.replay.replay_plan import ReplayPlan, write_plan
from playhead.replay.report.verdict import FenceReport, Report, judge
from playhead.tape.care.verify import verify
from playhead.tape.manifest import VERDICT, Manifest, read_manifest, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.sealed.vault import VaultLocked, open_vault
from playhead.tape.store import announce, redaction_key
from playhead.workspace.files_report import FilesReport
from playhead.workspace.fork_result import ForkedFiles

# Boundaries that need only the network when they are live.
_OF_THE_NETWORK = frozenset({"llm", "http"})
_SCRATCH = ("/tmp", "/var/tmp")  # noqa: S108  covered, not used
_MOST_NAMED = 24


# Tapes of earlier formats do not have the order of concurrent work.
_FIRST_WITH_ORDER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentChoice:
    """How the variables of a replay are chosen. `foreign`: another person recorded the tape."""

    foreign: bool = False
    from_here: bool = False
    chosen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The run of a replay, and the verdict on it."""

    recorded: Recorded
    report: Report
    # The files that a fork left behind in its workspaces.
    forked: tuple[ForkedFiles, ...] = ()


def check_tape(path: Path) -> Tape:
    """Return the tape if it can be replayed. TapeError gives the reason why it cannot."""
    tape = Tape(path)
    level = tape.manifest.level
    if level != "full":
        raise TapeNotReplayable(
            f"{path.name} was recorded at level {level!r}: its tape has no requests and responses. "
            "Record again with `--level full`."
        )
    if partial := tape.manifest.extra.get("partial"):
        raise TapeNotReplayable(
            f"{path.name} is {partial}. A replay could not answer them, and will not make them. {ADVICE}"
        )
    found = [one for one in verify(path).damages if not _torn_end(one)]
    if found:
        raise TapeDamaged(
            f"{path.name} is damaged: {found[0]}. A replay of it would prove nothing. "
            f"`playhead verify {path.name}` lists all, `playhead repair {path.name}` saves what is whole.",
            found,
        )
    return tape


def _torn_end(damage: Damage) -> bool:
    """Return whether only the last line is cut short, as a killed process leaves its tape: such a run replays up to
    there.
    """
    return "torn" in damage.why


def replay_command(
    tape: Tape,
    command: list[str],
    settings: Settings,
    plan: ReplayPlan,
    *,
    store: Path | None = None,
    proxy: bool = True,
    notes: tuple[str, ...] = (),
    fenced: bool = True,
    in_place: bool = False,
    pool: Path | None = None,
    meanwhile: Callable[[], object] | None = None,
    environment: EnvironmentChoice | None = None,
) -> Replayed:
    """Run `command` against the tape; without a `proxy` if it was recorded without one.

    Its files are restored from the tape, in the fence; `in_place`: it uses the current files. `pool` is the store
    that has their content, if it is not the tape's own. `meanwhile` is called while the command runs, to load
    modules that are needed after its end.

    `fenced`: the kernel keeps the command off the network and the files. NoFence: this machine cannot do that.
    """
    then = first_words(tape)
    manifest = tape.manifest
    cwd = Path(manifest.cwd)
    wishes = read_options(plan.live, plan.options)
    choice = environment or EnvironmentChoice()
    secrets, vault_notes = _secrets(tape, settings, choice)
    tape.secrets = by_placeholder(secrets)
    restoring = _environment(tape, then, plan, choice)
    env = restoring.variables

    shims = of_facts(then)
    if shims.followed:
        shims = shims._replace(names=_taped_programs(tape))
    sockets = shims.followed or bool(shims.names)
    network = _needs_network(tape, wishes, followed=shims.followed)
    own = _written_folders(env, cwd, command, tape)
    fence = _fence(wishes, own, sockets=sockets, network=network) if fenced else None

    served: list[ReplayedFiles] = []
    vault: list[VaultNotes] = []

    def files(run: Run) -> ReplayedFiles | None:
        if fence is None or in_place:
            return None
        home = pool or tape.run.parent.parent
        found = replayed_files(tape, home, command, fence, run.path, fork_at=wishes.fork_at)
        if found is not None:
            served.append(found)
            fence.cwd = str(cwd)  # its folder may exist only inside the fence
            write_plan(run.path, dataclasses.replace(plan, cwd=str(cwd)))
        return found

    def prepare(run: Run) -> None:
        run.manifest = _kin(run.manifest, manifest.run, wishes.fork_at)
        write_manifest(run.path, run.manifest)
        write_plan(run.path, plan)
        if secrets:
            vault.append(VaultNotes(str(run.path), redaction_key(run.path.parent.parent)))
            vault[0].write(secrets)

    try:
        recorded = run_command(
            command,
            _wish(tape, command, store),
            settings,
            seal=False,
            proxy=proxy and then.get("proxy") is not False,
            shims=shims,
            prepare=prepare,
            meanwhile=meanwhile,
            env=env,
            cwd=cwd if cwd.is_dir() else None,
            seed=str(then["hash_seed"]) if then.get("hash_seed") else None,
            fence=opened() if fence is None and shims.followed else fence,
            files=files,
            stdin=taped_input(tape, then),
        )
    finally:
        # Also after Ctrl-C: the secrets of a replay are deleted when it ends.
        for notes_of_secrets in vault:
            notes_of_secrets.forget()
    report = judge(
        tape,
        Tape(recorded.run.path),
        notes=(*notes, *restoring.notes, *vault_notes, *_limits(fence)),
        wishes=wishes,
        order=_order_kept(tape, plan, wishes),
        fence=_report_on(fence, network=network, asked=fenced),
        files=_compared(served, wishes),
    )
    _keep_verdict(recorded.run.path, report)
    forked = tuple(one for files in served for one in files.forked)
    return Replayed(recorded=recorded, report=report, forked=forked)


def _wish(tape: Tape, command: list[str], store: Path | None) -> Wish:
    """Return the wish for the run that records the replay."""
    manifest = tape.manifest
    return Wish(
        name=manifest.name,
        tags=manifest.tags,
        level="full",
        store=store,
        redact=manifest.redacted,
        command=tuple(command),
    )


def _environment(
    tape: Tape, then: Mapping[str, Any], plan: ReplayPlan, choice: EnvironmentChoice
) -> RestoredEnvironment:
    """Return the variables of the replay, with the secrets of the vault in their places.

    A run that `playhead.record()` opened without hooks has no variables on its tape: it gets the current ones.
    """
    taped = filled(then.get("env"), tape.secrets)
    is_unknown = taped is None and not choice.foreign
    return restored(
        os.environ,
        taped if isinstance(taped, dict) else {},
        live=bool(plan.live),
        foreign=choice.foreign,
        from_here=choice.from_here or is_unknown,
        chosen=choice.chosen,
    )


def _secrets(
    tape: Tape, settings: Settings, choice: EnvironmentChoice
) -> tuple[list[KeptSecret], tuple[str, ...]]:
    """Return the secrets in the vault of the run, and a note for the report. A tape of another person has none: its
    author must not choose where the secrets of this user go.
    """
    if choice.foreign or not tape.manifest.redacted:
        return [], ()
    try:
        return open_vault(tape.run, settings.vault_key), ()
    except (VaultLocked, OSError) as error:
        return [], (f"Placeholders are used in place of secrets: {error}.",)


def _keep_verdict(run: Path, report: Report) -> None:
    """Write the verdict to the manifest, for lists: the exit status of the program says nothing about the replay."""
    verdict = "recovered" if report.recovered and report.verdict == "identical" else report.verdict
    with suppress(OSError, TapeDamaged):
        manifest = read_manifest(run)
        write_manifest(
            run, dataclasses.replace(manifest, extra={**manifest.extra, VERDICT: verdict})
        )
        announce(run)


def _taped_programs(tape: Tape) -> tuple[str, ...]:
    """Return the programs that the recorded command found on PATH, by name."""
    names = set()
    for event in tape.events():
        if event.kind == CALL and event.ours and event.data.get("boundary") == "process":
            argv = (tape.whole(event).data.get("request") or {}).get("argv")
            if isinstance(argv, list) and argv and os.sep not in str(argv[0]):
                names.add(str(argv[0]))
    return tuple(sorted(names - {"", ".", ".."}))


def _order_kept(tape: Tape, plan: ReplayPlan, wishes: ReplayOptions) -> str:
    """Return `strict`, or the reason why the order of concurrent work is not kept."""
    if tape.manifest.format < _FIRST_WITH_ORDER:
        return f"order of calls only: tape format {tape.manifest.format}"
    return "strict" if keeps_order(plan, wishes) else "order of calls only"


def _compared(served: list[ReplayedFiles], wishes: ReplayOptions) -> FilesReport | None:
    """Return the report on files. After live calls or injected faults, differing files are not a divergence."""
    report = served[0].report if served else None
    if report is None or not (wishes.mixed or wishes.faults):
        return report
    return dataclasses.replace(report, same=None, differing=(), why="not everything was taped")


def _needs_network(tape: Tape, wishes: ReplayOptions, *, followed: bool) -> bool:
    """Return whether live calls are made inside the fence. A hooked Python makes them there. The sidecar makes the
    calls of the proxy outside of it: then no other process of the tree has a network.
    """
    live = {one.partition(":")[0] for one in wishes.policy.live} & _OF_THE_NETWORK
    if not live or not followed:
        return bool(live)
    calls = (event.data for event in tape.events() if event.kind == CALL and event.ours)
    return any(one.get("boundary") in live and one.get("library") != "proxy" for one in calls)


def _written_folders(
    env: Mapping[str, str], cwd: Path, command: Sequence[str], tape: Tape
) -> tuple[str, ...]:
    """Return the folders that the command is likely to write to: the usual ones, those in its variables and
    arguments, and those in which the recorded run wrote. The folders of other users must be known beforehand (see
    `namespaces.survey`).
    """
    usual = (str(cwd), env.get("HOME"), env.get("TMPDIR"), *_SCRATCH)
    named = [one for one in (*command, *env.values()) if one.startswith(os.sep)]
    named += [os.path.dirname(one) for one in named]
    if os.geteuid():  # root writes in every folder
        starts = (event.data for event in tape.events() if event.kind == WORKSPACE and event.ours)
        named = [*(str(one.get("root")) for one in starts), *named]
    found = [one for one in dict.fromkeys(named) if os.path.isdir(one) and os.access(one, os.W_OK)]
    return (*(one for one in usual if one and os.path.isdir(one)), *found[:_MOST_NAMED])


def _fence(
    wishes: ReplayOptions, own: tuple[str, ...], *, sockets: bool, network: bool
) -> Fence | None:
    """Return the fence of the command. None: real effects are intended.

    Live tools of a fork work on the fork's own files if the machine has overlays.
    """
    live = {one.partition(":")[0] for one in wishes.policy.live}
    if live - _OF_THE_NETWORK or wishes.policy.allow_tools or wishes.policy.allow_all_tools:
        if wishes.fork_at is None:
            return None
        with suppress(NoFence):
            return build(FenceNeeds(own=own, network=True, sockets=sockets), ("namespaces",))
        return None
    try:
        return build(FenceNeeds(own=own, network=network, sockets=sockets))
    except NoFence as error:
        raise NoFence(
            f"This machine has no fence for the replay: {error}. Nothing was started. "
            "With `--unfenced` it runs without one: hooks stop only the calls that they see, and the verdict "
            "is `unproven`. `playhead doctor` says what is missing."
        ) from None


def _limits(fence: Fence | None) -> tuple[str, ...]:
    """Return notes on the limits of the fence, for the report."""
    if fence is None or fence.kind != "landlock":
        return ()
    limits = "the command could not write files, and files that its calls wrote are not restored"
    return (f"This machine has no namespaces, so Landlock is the fence: {limits}.",)


def _report_on(fence: Fence | None, *, network: bool, asked: bool) -> FenceReport:
    if fence is None:
        return FenceReport(why="a live part has real effects" if asked else "--unfenced")
    return FenceReport(
        kind=fence.kind,
        network_open=network,
        read_only=tuple(fence.read_only),
        written=tuple(fence.written()),
    )


def _kin(manifest: Manifest, parent: str, forked_at: int | None) -> Manifest:
    """Return the relation of a run to its original: a replay, or a fork, which does not count as a replay."""
    if forked_at is None:
        return dataclasses.replace(manifest, replay_of=parent)
    extra = {**manifest.extra, "forked_from": parent, "forked_at": forked_at}
    return dataclasses.replace(manifest, extra=extra)


def first_words(tape: Tape) -> Mapping[str, Any]:
    """The data of the run's first event."""
    for event in tape.events():
        if event.kind == "run.start" and event.ours:
            data = tape.whole(event).data
            return data if isinstance(data, dict) else {}
    return {}
