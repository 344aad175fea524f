"""Run a recorded command again against its tape, and judge it. Knows the order of the steps; `playhead.replay`
implements replaying.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from playhead.config import Settings
from playhead.errors import TapeDamaged, TapeNotReplayable
from playhead.events import Damage
from playhead.launch.command import Recorded, run_command
from playhead.launch.command_input import taped_input
from playhead.launch.connections import refusal_of
from playhead.launch.record_run import Wish
from playhead.launch.replaying.idle_replays import IdleWatch
from playhead.launch.replaying.replay_environment import RestoredEnvironment, restored
from playhead.launch.replaying.replay_limits import (
    has_own_clock,
    limits_for,
    notes_on,
    report_on,
)
from playhead.launch.replaying.replayed_files import ReplayedFiles, replayed_files
from playhead.launch.replaying.time_limits import without_limit
from playhead.launch.request_runs import request_of_server
from playhead.launch.sidecar.command_streams import taped_output
from playhead.recording.runs import Run
from playhead.redact.vault_notes import KeptSecret, VaultNotes, by_placeholder, filled
from playhead.replay.begin import keeps_order
from playhead.replay.fence.barrier import Fence, opened
from playhead.replay.modes.replay_options import ReplayOptions, read_options
from playhead.replay.replay_plan import ReplayPlan, write_plan
from playhead.replay.report.verdict import Report, judge
from playhead.tape.care.verify import verify
from playhead.tape.manifest import VERDICT, Manifest, read_manifest, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.sealed.vault import VaultLocked, open_vault
from playhead.tape.store import announce, redaction_key
from playhead.workspace.files_report import FilesReport
from playhead.workspace.fork_result import ForkedFiles

# Programs that install the dependencies of the command before they start it.
_RESOLVERS = frozenset({"uv", "uvx"})
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
    if of_server := request_of_server(tape.manifest):
        raise TapeNotReplayable(
            f"{path.name} has one request to a server, without the start of the server. Use "
            f"`playhead replay {of_server[0]} --request {of_server[1]}`."
        )
    level = tape.manifest.level
    if level != "full":
        raise TapeNotReplayable(
            f"{path.name} was recorded at level {level!r}: its tape has no requests and responses. "
            "Record again with `--level full` (a loop: `--record-level full`)."
        )
    if partial := tape.manifest.extra.get("partial"):
        raise TapeNotReplayable(f"{path.name} is {partial}. {refusal_of(str(partial))}")
    checked = verify(path, tape)
    found = [one for one in checked.damages if not _torn_end(one)]
    if found:
        advice = f"`playhead verify {path.name}` lists all, `playhead repair {path.name}` saves the readable part."
        if checked.file_checksum is not None:
            advice = "Export the run again, or take the file from its original place."
        raise TapeDamaged(
            f"{path.name} is damaged: {found[0]}. A replay of it would prove nothing. {advice}",
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
    then = tape.start_facts()
    wishes = read_options(plan.live, plan.options)
    choice = environment or EnvironmentChoice()
    secrets, vault_notes = _secrets(tape, settings, choice)
    tape.secrets = by_placeholder(secrets)
    restoring = _environment(tape, then, plan, choice)
    if Path(command[0]).name in _RESOLVERS and not plan.live:
        # Without uv.lock and .venv, as before the first `uv run`, uv resolves the dependencies again, by its own cache.
        restoring.variables.setdefault("UV_OFFLINE", "1")
    limits = limits_for(tape, command, then, wishes, restoring.variables, fenced=fenced)
    setup = _ReplaySetup(
        tape=tape,
        command=command,
        plan=plan,
        wishes=wishes,
        secrets=secrets,
        fence=None if in_place else limits.fence,
        pool=pool or tape.run.parent.parent,
    )
    cwd = Path(tape.manifest.cwd)
    try:
        recorded = run_command(
            without_limit(command),
            _wish(tape, command, store),
            settings,
            seal=False,
            proxy=proxy and then.get("proxy") is not False,
            shims=limits.shims,
            prepare=setup.prepare,
            meanwhile=partial(setup.begin_watch, meanwhile),
            env=restoring.variables,
            cwd=cwd if cwd.is_dir() else None,
            seed=str(then["hash_seed"]) if then.get("hash_seed") else None,
            fence=opened() if limits.fence is None and limits.shims.followed else limits.fence,
            files=setup.restore_files,
            stdin=taped_input(tape, then),
            output=taped_output(then, partial(has_own_clock, tape)),
        )
    finally:
        # Also after Ctrl-C: the secrets of a replay are deleted when it ends.
        setup.end_watch()
        setup.forget_secrets()
    report = judge(
        tape,
        Tape(recorded.run.path),
        notes=(*notes, *restoring.notes, *vault_notes, *notes_on(limits.fence)),
        wishes=wishes,
        order=_order_kept(tape, plan, wishes),
        fence=report_on(limits, asked=fenced),
        files=_compared(setup.files, wishes),
    )
    _keep_verdict(recorded.run.path, report)
    forked = () if setup.files is None else tuple(setup.files.forked)
    return Replayed(recorded=recorded, report=report, forked=forked)


@dataclass(slots=True, kw_only=True)
class _ReplaySetup:
    """Sets the run of a replay up before its command starts: its plan, its secrets and its files."""

    tape: Tape
    command: list[str]
    plan: ReplayPlan
    wishes: ReplayOptions
    secrets: list[KeptSecret]
    # None: the command uses the current files.
    fence: Fence | None
    # The store that has the content of the files.
    pool: Path
    files: ReplayedFiles | None = None
    _vault: VaultNotes | None = None
    _watch: IdleWatch | None = None

    def prepare(self, run: Run) -> None:
        is_taped = keeps_order(self.plan, self.wishes) and not self.plan.live
        if is_taped and self.wishes.request is None:
            self._watch = IdleWatch(run, self.plan.timeout_s)
        run.manifest = _kin(run.manifest, self.tape.manifest.run, self.wishes.fork_at)
        write_manifest(run.path, run.manifest)
        write_plan(run.path, self.plan)
        if self.secrets:
            self._vault = VaultNotes(str(run.path), redaction_key(run.path.parent.parent))
            self._vault.write(self.secrets)

    def restore_files(self, run: Run) -> ReplayedFiles | None:
        fence = self.fence
        if fence is None:
            return None
        self.files = replayed_files(
            self.tape, self.pool, self.command, fence, run.path, fork_at=self.wishes.fork_at
        )
        if self.files is not None:
            fence.cwd = self.tape.manifest.cwd  # its folder may exist only inside the fence
            write_plan(run.path, dataclasses.replace(self.plan, cwd=fence.cwd))
        return self.files

    def begin_watch(self, meanwhile: Callable[[], object] | None) -> None:
        """Watch the command, which has started, and call `meanwhile`."""
        if self._watch is not None:
            self._watch.start()
        if meanwhile is not None:
            meanwhile()

    def end_watch(self) -> None:
        if self._watch is not None:
            self._watch.stop()

    def forget_secrets(self) -> None:
        if self._vault is not None:
            self._vault.forget()


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


def _order_kept(tape: Tape, plan: ReplayPlan, wishes: ReplayOptions) -> str:
    """Return `strict`, or the reason why the order of concurrent work is not kept."""
    if tape.manifest.format < _FIRST_WITH_ORDER:
        return f"order of calls only: tape format {tape.manifest.format}"
    return "strict" if keeps_order(plan, wishes) else "order of calls only"


def _compared(files: ReplayedFiles | None, wishes: ReplayOptions) -> FilesReport | None:
    """Return the report on files. After live calls or injected faults, differing files are not a divergence; and the
    recorded files have the changes of all requests.
    """
    report = None if files is None else files.report
    if report is None or not (wishes.mixed or wishes.faults or wishes.request):
        return report
    why = "not everything was taped" if wishes.request is None else "one request was replayed"
    return dataclasses.replace(report, same=None, differing=(), why=why)


def _kin(manifest: Manifest, parent: str, forked_at: int | None) -> Manifest:
    """Return the relation of a run to its original: a replay, or a fork, which does not count as a replay."""
    if forked_at is None:
        return dataclasses.replace(manifest, replay_of=parent)
    extra = {**manifest.extra, "forked_from": parent, "forked_at": forked_at}
    return dataclasses.replace(manifest, extra=extra)
