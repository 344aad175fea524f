"""`playhead record`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from playhead import config
from playhead.cli.common import find_run, store_option
from playhead.cli.recording.afterwards import prune_if_asked, remember
from playhead.errors import PlayheadError
from playhead.events import LEVELS, Level
from playhead.launch.command import Recorded, record_command, workspaces_of
from playhead.launch.guest.python_argv import is_python
from playhead.launch.record_run import Wish, write_session
from playhead.launch.shims.program_names import Wanted, wanted, where_is
from playhead.views.text import words

if TYPE_CHECKING:
    from playhead.story import Totals

# A longer tape is not read once more just to say what is on it.
_LONGEST_TOLD = 64 * 1024 * 1024


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--name", help="What to call the run. Default: the program's name.")
@click.option("--tag", "tags", multiple=True, metavar="K=V", help="A tag to find it by.")
@click.option("--level", type=click.Choice(LEVELS), help="How much to keep. Default: full.")
@store_option
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="Append to RUN, or to the last of --name.",
)
@click.option("--force", is_flag=True, help="Move an earlier run of that --run-id or --name aside.")
@click.option("--run-id", metavar="ID", help="The id of the run. Default: made from the time.")
@click.option("--no-redact", is_flag=True, help="Keep secrets on the tape.")
@click.option(
    "--record-session",
    "session",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="PLAYHEAD_RECORD_SESSION",
    help="Write the run as one file, too.",
)
@click.option(
    "--no-proxy", is_flag=True, help="Leave the base URLs of programs that are no Python alone."
)
@click.option(
    "--shim",
    "shims",
    multiple=True,
    metavar="NAME",
    help="Tape this program too, whoever starts it. Repeatable.",
)
@click.option(
    "--shim-mounts",
    is_flag=True,
    help="Tape those too that are started by their full path (Linux).",
)
@click.option("--no-shims", is_flag=True, help="Tape no subprocess of programs that are no Python.")
@click.option(
    "--workspace",
    "workspaces",
    multiple=True,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Record the files of this folder, too. Repeatable.",
)
@click.option("--no-workspace", is_flag=True, help="Do not record the files of the project.")
@click.option("--no-seal", is_flag=True, help="Leave the tape as plain lines.")
@click.option("--quiet", is_flag=True, help="Say nothing at the end.")
@click.option("--json", "as_json", is_flag=True, help="Say it as JSON (on stderr, too).")
@click.argument(
    "command_line", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED
)
def command(
    name: str | None, tags: tuple[str, ...], level: Level | None, store: Path | None,
    resume: str | None, force: bool, run_id: str | None, no_redact: bool, no_proxy: bool,
    shims: tuple[str, ...], shim_mounts: bool, no_shims: bool, no_seal: bool,
    workspaces: tuple[Path, ...], no_workspace: bool,
    quiet: bool, as_json: bool, session: Path | None, command_line: tuple[str, ...],
) -> None:  # fmt: skip
    """Run a command and put everything it does on a tape.

    \b
    playhead record -- python my_agent.py
    playhead record --name nightly --tag env=ci -- uv run agent
    playhead record --level standard --quiet -- ./loop.sh > out.txt
    playhead record -- claude -p "What does this project do?"

    The command finds its stdin, stdout, stderr, terminal, signals and exit code as they were. Every
    Python that it starts is recorded, in whatever environment it lives; nothing is installed there.
    Programs that are not Python (Claude Code, Codex, Gemini CLI) talk to their models by a proxy.
    """
    settings = config.load()
    wish = Wish(
        name=name or settings.name or called(command_line),
        tags=dict(tag_of(one) for one in tags),
        level=level or settings.level,
        store=store,
        run_id=run_id,
        resume=_resumed(resume, store, name, run_id),
        force=force,
        redact=False if no_redact else None,
    )
    if force and not (name or run_id):
        raise click.UsageError("--force needs to know which run to move aside: --run-id or --name.")
    told = None if quiet else load_model
    done = record_command(
        list(command_line),
        wish,
        settings,
        seal=not no_seal,
        proxy=not no_proxy,
        shims=shims_for(list(command_line), shims, settings, mounted=shim_mounts, none=no_shims),
        workspaces=_workspaces(workspaces, settings, none=no_workspace),
        meanwhile=told,
    )
    write_session(done.run, session)
    if not quiet:
        totals = counted(done, settings)
        say(json.dumps(as_members(done, totals)) if as_json else note(done, totals))
    pruned = prune_if_asked(done.run.path, done.run.manifest.project, settings)
    if pruned is not None and not quiet and not as_json:
        say(f"● {pruned}")
    sys.exit(done.ended.exit_code)


def shims_for(
    words: list[str],
    asked: tuple[str, ...],
    settings: config.Settings,
    *,
    mounted: bool,
    none: bool,
) -> Wanted:
    """The programs that get a shim. A name that leads nowhere is a mistake, and said so."""
    if none and (asked or mounted):
        raise click.UsageError("--no-shims contradicts --shim and --shim-mounts.")
    for name in asked:
        if os.sep in name or where_is(name, os.environ) is None:
            raise click.UsageError(f"--shim {name!r}: there is no such program on PATH.")
    if none:
        return Wanted()
    mounted = mounted or settings.shim_mounts
    return wanted(words, asked=asked, configured=settings.shims, mounted=mounted)


def _workspaces(named: tuple[Path, ...], settings: config.Settings, *, none: bool) -> list[Path]:
    if none and named:
        raise click.UsageError("--no-workspace contradicts --workspace.")
    return [] if none else workspaces_of(settings, named)


def load_model() -> ModuleType:
    """What tells a run's story takes a while to load: done while the command runs."""
    import playhead.story

    return playhead.story


def counted(done: Recorded, settings: config.Settings) -> Totals | None:
    """What is on the tape, for the note and for the catalogue; None: it cannot be read, or that would
    take too long.
    """
    from playhead.story import Prices, tell
    from playhead.tape.reader import Tape

    if _size(done) > _LONGEST_TOLD:
        return None
    prices = Prices(overrides=settings.sections.get("prices", {}))
    try:
        story = tell(Tape(done.run.path), prices=prices)
    except PlayheadError:
        return None  # the command's own exit code is what its caller waits for
    remember(done.run.path, story, settings)
    return story.totals


def note(done: Recorded, totals: Totals | None) -> str:
    """The one line at the end."""
    manifest = done.run.manifest
    parts = [f"● recorded {manifest.run}"]
    if manifest.status != "ok":
        parts.append(f"{manifest.status} ({_ending(done.ended.code)})")
    if totals is not None:
        parts.append(_plural(totals.calls, "call"))
        if totals.llm_calls:
            parts.append(f"{totals.llm_calls:,} LLM")
        if totals.tokens is not None:
            parts.append(f"{words.count(totals.tokens)} tokens")
        if totals.cost_usd is not None:
            parts.append(words.money(totals.cost_usd, at_least=bool(totals.unpriced)))
        if totals.holes:
            parts.append(_plural(totals.holes, "hole"))
    parts.append(words.duration(manifest.duration_s))
    if manifest.lost:
        parts.append(f"{_plural(manifest.lost, 'event')} lost")
    if done.plain not in (None, "small", "not asked for"):
        why = words.size(_size(done)) if done.plain == "large" else done.plain
        parts.append(f"left plain ({why})")
    return " · ".join([*parts, "playhead show last"])


def as_members(done: Recorded, totals: Totals | None) -> dict[str, Any]:
    manifest = done.run.manifest
    return {
        "run": manifest.run,
        "path": str(done.run.path),
        "name": manifest.name,
        "status": manifest.status,
        "exit_code": done.ended.exit_code,
        "duration_s": manifest.duration_s,
        "events": manifest.events,
        "lost": manifest.lost,
        "calls": None if totals is None else totals.calls,
        "llm_calls": None if totals is None else totals.llm_calls,
        "tokens": None if totals is None else totals.tokens,
        "cost_usd": None if totals is None else totals.cost_usd,
        "holes": None if totals is None else totals.holes,
        "sealed": done.plain is None,
        "left_plain": done.plain,
    }


def say(line: str) -> None:
    """Past Python's own stderr: the command may have left that descriptor closed, or broken."""
    try:
        os.write(2, f"{line}\n".encode(sys.getfilesystemencoding(), "replace"))
    except OSError:
        return


def called(command_line: tuple[str, ...]) -> str:
    """What a person would call this run: the program, not its interpreter."""
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
    """`--resume` alone goes on with the run of that id or name, else with the last one."""
    if resume is None:
        return False
    if not resume and (name or run_id):
        return True
    return find_run(store, resume or "last").name


def tag_of(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.UsageError(f"--tag {text!r} is no tag; expected K=V, such as env=ci.")
    return key, value


def _size(done: Recorded) -> int:
    return sum(one.bytes for one in done.run.manifest.segments)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
