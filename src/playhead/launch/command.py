"""Record a command from its start to its end. Knows the order of the steps; other modules implement them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from playhead import clock, events
from playhead.config import Settings
from playhead.encoding.values import safe_str
from playhead.errors import PlayheadError, StoreError, UsageError
from playhead.host.later import Later
from playhead.host.stderr import say
from playhead.launch import command_input, native_build
from playhead.launch import spawn_command as launch
from playhead.launch.command_input import InputPlan, TapedInput
from playhead.launch.connections import proxy_ports
from playhead.launch.environment import kept
from playhead.launch.guest import rules
from playhead.launch.guest.children_env import equip
from playhead.launch.guest.python_argv import is_python
from playhead.launch.guest.variables import SEED, Ticket
from playhead.launch.proxy.ports import ProxyPorts, listen
from playhead.launch.record_run import Wish, open_run
from playhead.launch.shims.post import Shims, make_shims
from playhead.launch.shims.program_names import Wanted, wanted
from playhead.launch.sidecar import command_streams as streams
from playhead.launch.sidecar import control as sidecars
from playhead.launch.sidecar import process_tree
from playhead.launch.sidecar.command_streams import StreamPlan, TapedOutput
from playhead.launch.spawn_command import Attended, Ended
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.recording.runs import Run
from playhead.tape import output_position as output_at
from playhead.tape.store import PLAN

if TYPE_CHECKING:
    from playhead.launch import closing
    from playhead.launch.follow import agent_settings, followed_tree, roles, tracer
    from playhead.launch.follow.tracer import Tracer
    from playhead.launch.sidecar import connection_watch
    from playhead.launch.sidecar.connection_watch import Watching
    from playhead.replay.fence import barrier
    from playhead.replay.fence.barrier import Fence
    from playhead.workspace import taping
else:
    agent_settings = Later("playhead.launch.follow.agent_settings")
    roles = Later("playhead.launch.follow.roles")
    tracer = Later("playhead.launch.follow.tracer")
    followed_tree = Later("playhead.launch.follow.followed_tree")
    barrier = Later("playhead.replay.fence.barrier")
    connection_watch = Later("playhead.launch.sidecar.connection_watch")
    closing = Later("playhead.launch.closing")  # loaded while the command runs
    taping = Later("playhead.workspace.taping")


class Recorded(NamedTuple):
    """A command that was run, and how it ended."""

    run: Run
    ended: Ended
    # Why the tape was not sealed; None: it was.
    plain: str | None


class FilesBeside(Protocol):
    """Records or restores the files of a run while its command runs."""

    def start(self, recorder: Recorder) -> None:
        """Start. Called after the last fork, just before the command starts."""

    def stop(self) -> None:
        """Stop. Called when the command has ended."""


class Start(NamedTuple):
    """A run that has begun, and the settings for starting its command."""

    run: Run
    plan: StreamPlan
    stdin: InputPlan
    env: Mapping[str, str]
    seed: str
    files: FilesBeside | None


def record_command(
    command: list[str],
    wish: Wish,
    settings: Settings,
    *,
    seal: bool = True,
    proxy: bool = True,
    shims: Wanted | None = None,
    workspaces: Sequence[Path] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Recorded:
    """Run `command` and record it. If nothing can be recorded, print the reason and exec the command.

    `workspaces` are the folders whose files are recorded; `shims` names the programs that are recorded through
    shims; None: as configured. UsageError: the request is invalid; nothing was run.
    """
    if shims is None:
        shims = wanted(command, configured=settings.shims, mounted=settings.shim_mounts)
    if workspaces is None:
        workspaces = workspaces_of(settings)
    shims = _possible(shims, command)
    try:
        return run_command(
            command,
            wish,
            settings,
            seal=seal,
            proxy=proxy,
            shims=shims.found(os.environ),
            files=lambda run: _recorded_files(run, workspaces),
            meanwhile=meanwhile,
            fence=_watchable(followed=shims.followed),
        )
    except UsageError:
        raise
    except (PlayheadError, OSError) as error:
        say(f"nothing is recorded: {safe_str(error)} The program is not affected.")
        launch.become(command)


def run_command(
    command: list[str],
    wish: Wish,
    settings: Settings,
    *,
    seal: bool = True,
    proxy: bool = True,
    shims: Wanted = Wanted(),  # noqa: B008  frozen
    prepare: Callable[[Run], None] | None = None,
    meanwhile: Callable[[], object] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    seed: str | None = None,
    fence: Fence | None = None,
    files: Callable[[Run], FilesBeside | None] | None = None,
    stdin: TapedInput | None = None,
    output: TapedOutput | None = None,
) -> Recorded:
    """Run `command` as a new run. PlayheadError and OSError: nothing was run.

    `proxy`: programs that cannot be hooked call their models through our proxy. `shims`: programs that get a shim on
    the command's PATH.

    `prepare` gets the run before the command starts; `meanwhile` is called while it runs, to load modules that are
    needed after its end; `env`, `cwd` and `seed` are the command's, by default ours. The command runs inside the
    `fence`, if there is one. `stdin` and `output` are those of the recorded command, in a replay. `files` makes the
    object that records or restores the files of the run.
    """
    given = command_input.plan(stdin, is_python=is_python(command[0]))
    plan = streams.plan(output)
    start = _start(
        wish, settings, command, shims, (plan, given), proxy=proxy, env=env, cwd=cwd, seed=seed
    )
    if prepare is not None:
        prepare(start.run)
    if files is not None:
        start = start._replace(files=files(start.run))
    if fence is not None:
        fence.keep(str(start.run.path), writable=True)
    attended = _attended(command, start, shims, proxy=proxy, meanwhile=meanwhile, fence=fence)
    plain = _closed(start.run, attended.ended, command, attended, seal=seal)
    if wish.vault:
        closing.fill_vault(start.run, settings.vault_key)
    return Recorded(run=start.run, ended=attended.ended, plain=plain)


def _start(
    wish: Wish,
    settings: Settings,
    command: list[str],
    shims: Wanted,
    planned: tuple[StreamPlan, InputPlan],
    *,
    proxy: bool,
    env: Mapping[str, str] | None,
    cwd: Path | None,
    seed: str | None,
) -> Start:
    """Open the run. Its first event has everything that a replay must know before it starts."""
    plan, given = planned
    env = os.environ if env is None else env
    if seed is not None:
        env = {name: value for name, value in env.items() if name != SEED}
    seed = seed or env.get(SEED) or str(int.from_bytes(clock.urandom(4), "big") or 1)
    facts: dict[str, Any] = {**(wish.facts or {}), **plan.facts}
    facts |= {"input": given.facts, "hash_seed": seed}
    if (wish.level or settings.level) == "full":
        native_build.prepare(env)
        facts["env"] = kept(env)
        facts["home"] = env.get("HOME")
    if not proxy:
        facts["proxy"] = False
    facts |= shims.as_facts()
    if cwd is not None:
        os.chdir(cwd)
    run = open_run(wish._replace(command=tuple(command), facts=facts), settings, '"playhead"')
    rules.post(run.recorder)
    command_input.record_file(run.recorder, given)
    return Start(run=run, plan=plan, stdin=given, env=env, seed=seed, files=None)


def workspaces_of(settings: Settings, more: Sequence[Path] = ()) -> list[Path]:
    """Return the folders whose files are recorded: the project folder, and the folders that the user named."""
    if not settings.workspace:
        return []
    try:
        cwd = Path.cwd()
    except OSError:
        return []  # the folder was deleted meanwhile
    named = [cwd / Path(one).expanduser() for one in settings.workspaces]
    return taping.workspaces_for(cwd, [*named, *(cwd / one for one in more)])


def _recorded_files(run: Run, folders: Sequence[Path]) -> FilesBeside | None:
    """Record the workspaces. Fails open, like everything that is recorded beside the command."""
    if not folders or run.recorder.level != "full":
        return None
    try:
        return taping.open_workspaces(run.recorder, run.path.parent.parent, folders)
    except Exception as error:  # noqa: BLE001  the command must run
        run.recorder.warn(f"files are not recorded ({safe_str(error)}).")
        return None


def _attended(
    command: list[str],
    start: Start,
    wanted: Wanted,
    *,
    proxy: bool,
    meanwhile: Callable[[], object] | None,
    fence: Fence | None,
) -> Attended:
    """Run the command with the sidecar beside it."""
    run, plan = start.run, start.plan
    followed = wanted.followed
    ports = _proxy_ports(run, command, start.env, fence, followed=followed) if proxy else None
    ticket = Ticket(
        run=str(run.path),
        parent=run.recorder.root,
        terminals=plan.terminals,
        seed=start.seed,
        detours=None if ports is None else ports.detours,
        stdin=start.stdin.identity,
    )
    argv, env = (command, start.env) if ports is None else (ports.command, ports.env)
    argv, env = equip(argv, env, ticket)
    mask = launch.block_signals()
    tree = followed_tree.FollowedTree(command, ticket, ports) if followed else None
    shims = make_shims(
        run.recorder, wanted, env, tree=tree, cwd=None if fence is None else fence.cwd
    )
    if fence is not None and shims.folder is not None:
        fence.keep(str(shims.folder))
    piped = (*plan.streams, *((start.stdin.stream,) if start.stdin.stream is not None else ()))
    sidecar = sidecars.start(
        run.recorder, streams=piped, signals=launch.PASSED_ON, proxy=ports, shims=shims
    )
    if start.files is not None:
        start.files.start(run.recorder)
    follows = _followed(fence, run, shims)
    started = launch.spawn(
        [*shims.prefix, *argv], shims.env, piped, mask, fence, stdin=start.stdin.entry
    )
    # From here on nothing is raised: the command has run, and must not run a second time.
    watching = namespace = None
    if isinstance(started, Ended):
        ended = started
    else:
        namespace = process_tree.HeldNamespace(started)
        numbers = () if ports is None else ports.numbers
        watching = _watched(fence, run, started, numbers, shims.folder)
        sidecar.watch(started)
        _load(meanwhile)
        ended = launch.wait(started, sidecar)._replace(pid=started)
    sidecar.dismiss()
    left = process_tree.left_running(run.path, namespace)
    shims.remove()
    if start.files is not None:
        start.files.stop()
    seen = None if watching is None else watching.dismiss()
    return Attended(
        ended=ended,
        own=frozenset({run.recorder.segment, *sidecar.segments}),
        connections=seen,
        is_watch_lost=watching is not None and seen is None,
        known_ports=proxy_ports(start.env),
        unfollowed=[] if follows is None else follows.unfollowed(),
        left=left,
    )


def _followed(fence: Fence | None, run: Run, shims: Shims) -> Tracer | None:
    """Trace the process that is about to become the command, so that the processes it starts are recorded."""
    if shims.tree is None or shims.folder is None:
        return None
    try:
        return tracer.start(shims.folder / "bin", fence)
    except OSError as error:
        if (run.path / PLAN).exists():
            raise StoreError(f"This replay cannot be followed: {safe_str(error)}") from error
        why = f"nothing that the command starts is recorded: {safe_str(error)}"
        hole = {"boundary": "process", "what": "follow", "why": why}
        run.recorder.append(NewEvent(events.HOLE, hole))
        return None


def _watched(
    fence: Fence | None, run: Run, command: int, ports: Collection[int], shims: Path | None
) -> Watching | None:
    """Start the process that watches the command's connections. None: the kernel does not announce them."""
    if fence is None or fence.announced is None:
        return None
    tree = connection_watch.WatchedTree(
        run=str(run.path),
        root=command,
        ports=frozenset(ports),
        shims=None if shims is None else str(shims),
        fenced=fence.kind != "open",
        guards_sockets=fence.kind == "landlock",
    )
    return connection_watch.post(fence.announced, tree)


def _closed(
    run: Run, ended: Ended, command: list[str], attended: Attended, *, seal: bool
) -> str | None:
    """Write the last events of the run. Return None, or the reason why its tape was not sealed."""
    output_at.forget(run.path)
    if ended.error is not None:
        say(f"cannot run {ended.error}.")
    try:
        closing.close(run, command, attended)
        return closing.seal_if_worth(run) if seal else "not asked for"
    except Exception as error:  # noqa: BLE001  the command has ended: its exit code is what counts now
        plain = f"{type(error).__name__}: {safe_str(error)}"
        say(f"the tape of {run.id} could not be closed ({plain}).")
        return plain


def _possible(shims: Wanted, command: list[str]) -> Wanted:
    """Use shims by name instead of a tracer if this command or this machine does not allow following."""
    if not shims.followed:
        return shims
    if roles.traces_others(command):
        why: str | None = f"{command[0]} traces its own children"
    else:
        why = tracer.why_not(os.environ)
    return shims if why is None else shims._replace(followed=False, unfollowed=why)


def _watchable(*, followed: bool) -> Fence | None:
    """Return a start that announces the command's connections, else one that can be followed, else None."""
    try:
        return barrier.watched(os.environ)
    except OSError:
        pass  # the tape and the summary then say "connections not watched"
    try:
        return barrier.opened() if followed else None
    except OSError:
        return None  # the command is recorded without being followed, and the tape says so


def _proxy_ports(
    run: Run, command: list[str], env: Mapping[str, str], fence: Fence | None, *, followed: bool
) -> ProxyPorts | None:
    """Reserve the ports of the proxy. None: there is no free port, and the command runs without the proxy."""
    try:
        listens = listen if fence is None else fence.listen
        if is_python(command[0]):  # a Python is hooked, and needs no settings of agents
            return ProxyPorts(command, env, listens, followed=followed)
        cwd = run.manifest.cwd
        whole = agent_settings.with_file_variables(command, env, cwd)
        urls = agent_settings.urls_in(command, whole, cwd)
        made = ProxyPorts(command, whole, listens, followed=followed, urls=urls)
        made.command = agent_settings.with_settings(made.command, whole, cwd, made.turn)
        made.env = agent_settings.with_inline_settings(command, env, cwd, made.turn)
        return made
    except OSError as error:
        run.recorder.warn(f"no proxy for programs that are not Python ({safe_str(error)}).")
        return None


def _load(meanwhile: Callable[[], object] | None) -> None:
    """Load modules that are needed after the command's end while the command runs."""
    try:
        closing.prepare()
        if meanwhile is not None:
            meanwhile()
    except Exception as error:  # noqa: BLE001  the later import reports the error
        say(f"something is wrong with this installation ({safe_str(error)}).")
