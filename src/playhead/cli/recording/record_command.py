"""`playhead record`, and the line that it prints at the end."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from playhead import clock, config
from playhead.cli.common import store_option
from playhead.cli.recording.closing_line import as_members, counted, load_model, note, plural, say
from playhead.cli.run_names import find_run
from playhead.config import Settings
from playhead.errors import PlayheadError
from playhead.events import LEVELS, Level
from playhead.launch.command import Recorded, record_command, workspaces_of
from playhead.launch.guest.python_argv import is_python
from playhead.launch.record_run import Wish, write_session
from playhead.launch.shims.program_names import Wanted, wanted, where_is
from playhead.tape.sealed.vault import check as check_vault


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--name", "-n", help="Name of the run. Default: the program's name.")
@click.option("--tag", "tags", multiple=True, metavar="K=V", help="Add a tag. Repeatable.")
@click.option("--level", type=click.Choice(LEVELS), help="How much to record. Default: full.")
@store_option
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="Continue RUN, or the last run with --name.",
)
@click.option(
    "--force", "-f", is_flag=True, help="Move an existing run with this --run-id or --name aside."
)
@click.option("--run-id", metavar="ID", help="Id of the run. Default: derived from the time.")
@click.option("--no-redact", is_flag=True, help="Do not redact secrets.")
@click.option(
    "--vault",
    is_flag=True,
    help="Keep redacted secrets encrypted on this machine, for replays.",
)
@click.option(
    "--record-session",
    "session",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="PLAYHEAD_RECORD_SESSION",
    help="Also write the run to one file.",
)
@click.option(
    "--no-proxy", is_flag=True, help="Do not route non-Python programs through the proxy."
)
@click.option(
    "--shim",
    "shims",
    multiple=True,
    metavar="NAME",
    help="Record every call of this program through a shim. Repeatable.",
)
@click.option(
    "--shim-mounts",
    is_flag=True,
    help="Also shim programs that are started by their full path (Linux).",
)
@click.option(
    "--no-shims", is_flag=True, help="Do not record the subprocesses of non-Python programs."
)
@click.option(
    "--workspace",
    "workspaces",
    multiple=True,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Also record the files of this folder. Repeatable.",
)
@click.option("--no-workspace", is_flag=True, help="Do not record the files of the project.")
@click.option(
    "--run-per",
    type=click.Choice(("request",)),
    help="For an HTTP server: also write a run for each request, at the end.",
)
@click.option("--no-seal", is_flag=True, help="Do not compress the finished tape.")
@click.option(
    "--push",
    is_flag=True,
    help="Push the finished run into the shared store, in the background.",
)
@click.option("--quiet", "-q", is_flag=True, help="Do not print the closing line.")
@click.option("--json", "as_json", is_flag=True, help="Print the closing line as JSON, on stderr.")
@click.argument(
    "command_line", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED
)
def command(
    name: str | None, tags: tuple[str, ...], level: Level | None, store: Path | None,
    resume: str | None, force: bool, run_id: str | None, no_redact: bool, vault: bool, no_proxy: bool,
    shims: tuple[str, ...], shim_mounts: bool, no_shims: bool, no_seal: bool,
    workspaces: tuple[Path, ...], no_workspace: bool, run_per: str | None, push: bool,
    quiet: bool, as_json: bool, session: Path | None, command_line: tuple[str, ...],
) -> None:  # fmt: skip
    """Run a command and record everything that it does.

    \b
    playhead record -- python my_agent.py
    playhead record --name nightly --tag env=ci -- uv run agent
    playhead record --level standard --quiet -- ./loop.sh > out.txt
    playhead record -- claude -p "What does this project do?"
    playhead record --run-per request -- uvicorn app:app

    The command keeps its stdin, stdout, stderr, terminal, signals and exit code. Every Python process
    that it starts is recorded, in any virtual environment, without installing anything there.
    Non-Python programs (Claude Code, Codex, Gemini CLI) reach their models through a proxy.
    """
    settings = config.load()
    has_vault = (vault or settings.vault) and settings.redact and not no_redact
    if vault and no_redact:
        raise click.UsageError(
            "--vault keeps redacted secrets, so it cannot be combined with --no-redact."
        )
    if push and not settings.remote:
        raise click.UsageError(
            "--push needs a shared store: set PLAYHEAD_REMOTE, or [store] remote in playhead.toml."
        )
    if force and not (name or run_id):
        raise click.UsageError("--force needs --run-id or --name: it moves that run aside.")
    if has_vault:
        check_vault(settings.vault_key)
    wish = Wish(
        name=name or settings.name or called(command_line),
        tags=dict(tag_of(one) for one in tags),
        level=level or settings.level,
        store=store,
        run_id=run_id,
        resume=_resumed(resume, store, name, run_id),
        force=force,
        redact=False if no_redact else None,
        session_file=session,
        vault=has_vault,
    )
    done = record_command(
        list(command_line),
        wish,
        settings,
        seal=not no_seal,
        proxy=not no_proxy,
        shims=shims_for(list(command_line), shims, settings, mounted=shim_mounts, none=no_shims),
        workspaces=_workspaces(workspaces, settings, none=no_workspace),
        meanwhile=None if quiet else load_model,
    )
    write_session(done.run, session)
    requests = None if run_per is None else _runs_of_requests(done.run.path)
    if not quiet:
        _print_closing(done, settings, requests, as_json=as_json)
    is_silent = quiet or as_json
    if push and settings.remote:
        pushing = _start_push(done.run.path, settings.remote)
        if not is_silent or (pushing.startswith("not") and not as_json):
            say(f"● {pushing}")
    pruned = prune_automatically(done.run.path, done.run.manifest.project, settings)
    if pruned is not None and not is_silent:
        say(f"● {pruned}")
    sys.exit(done.ended.exit_code)


def _print_closing(
    done: Recorded, settings: Settings, requests: list[str] | None, *, as_json: bool
) -> None:
    """Print the closing line. `requests`: the runs of single requests, if the user asked for them."""
    totals = counted(done, settings)
    if as_json:
        members = as_members(done, totals)
        say(json.dumps(members if requests is None else {**members, "requests": requests}))
        return
    say(note(done, totals, "last" if requests is None else ""))
    if requests is not None:
        say(f"● {plural(len(requests), 'request')}, each as a run of its own · playhead list")


def _runs_of_requests(run: Path) -> list[str]:
    """Write a run for each inbound request. Recording fails open: the run of the server has all of them anyway."""
    from playhead.launch.request_runs import write_request_runs

    try:
        return write_request_runs(run)
    except (PlayheadError, OSError) as error:
        say(f"playhead: the runs of single requests cannot be written ({error}).")
        return []


def _start_push(run: Path, url: str) -> str:
    """Start the upload; the result as a sentence. The recorded command's exit code stays as it is."""
    from playhead.cli.sharing.push_command import push_in_background

    try:
        push_in_background(run, url)
    except (PlayheadError, OSError) as error:
        return f"not pushed: {error}"
    return f"pushing to {url} in the background"


def shims_for(
    words: list[str],
    asked: tuple[str, ...],
    settings: config.Settings,
    *,
    mounted: bool,
    none: bool,
) -> Wanted:
    """The programs that get a shim. UsageError: one of them is not on PATH."""
    if none and (asked or mounted):
        raise click.UsageError("--no-shims cannot be combined with --shim or --shim-mounts.")
    for name in asked:
        if os.sep in name or where_is(name, os.environ) is None:
            raise click.UsageError(f"--shim {name!r}: not found on PATH.")
    if none:
        return Wanted()
    mounted = mounted or settings.shim_mounts
    return wanted(words, asked=asked, configured=settings.shims, mounted=mounted)


def _workspaces(named: tuple[Path, ...], settings: config.Settings, *, none: bool) -> list[Path]:
    if none and named:
        raise click.UsageError("--no-workspace cannot be combined with --workspace.")
    return [] if none else workspaces_of(settings, named)


def called(command_line: tuple[str, ...]) -> str:
    """The default name of a run: the program, not its interpreter."""
    first, *rest = command_line
    if is_python(first):
        for at, word in enumerate(rest):
            if word == "-m" and at + 1 < len(rest):
                return rest[at + 1]
            if word == "-c":
                break
            if not word.startswith("-"):
                return Path(word).name
    return Path(first).name or first


def _resumed(
    resume: str | None, store: Path | None, name: str | None, run_id: str | None
) -> bool | str:
    """`--resume` alone continues the run with --run-id or --name, else the last one."""
    if resume is None:
        return False
    if not resume and (name or run_id):
        return True
    return find_run(store, resume or "last").name


def tag_of(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.UsageError(f"--tag {text!r} is not a tag; expected K=V, such as env=ci.")
    return key, value


def prune_automatically(run: Path, project: str, settings: Settings) -> str | None:
    """Apply [retention] if auto = true; the result as a sentence, or None."""
    if settings.sections.get("retention", {}).get("auto") is not True:
        return None
    from playhead.cli.managing.prune_commands import configured_rules
    from playhead.library.catalogue import Filter, Library
    from playhead.library.retention import plan, remove, weighed
    from playhead.views.text.maintenance import weight
    from playhead.workspace.blob_collection import collect

    home = run.parent.parent
    try:
        rules = configured_rules(settings)
        found = list(Library(home).entries(Filter(project=project)))
        sized = weighed(found, needed=rules.max_bytes is not None)
        gone = list(remove(home, plan(sized, rules, clock.wall_ns())))
        if gone:
            collect(home)
    except (PlayheadError, OSError) as error:
        return f"could not prune old runs: {error}"
    return f"pruned {weight(gone)}, by the rules of [retention]" if gone else None
