"""`playhead loop` and `playhead session`: record a loop of agent runs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from playhead import config
from playhead.cli.common import home_of, json_option, store_option
from playhead.cli.recording.closing_line import counted, load_model, note, say
from playhead.cli.recording.record_command import prune_automatically
from playhead.events import LEVELS, Level
from playhead.host.project import project_of
from playhead.launch.command import record_command
from playhead.loop import steps
from playhead.loop.beginning import (
    check_free,
    chosen_level,
    is_replaying,
    resumed_level,
    started_state,
    wants_record,
    wish_for,
)
from playhead.loop.plan import Plan, check_plan, prompt_path, takes_prompt
from playhead.loop.progress import Progress
from playhead.loop.resumed_parts import facts_of
from playhead.loop.running import run
from playhead.loop.shell import STATUSES
from playhead.loop.stages import parse_stages, spell_stage
from playhead.recording import runs
from playhead.tape.store import run_path


@click.command(
    "loop", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option(
    "--session",
    required=True,
    metavar="NAME",
    help="Name of the session; --resume finds it by this name.",
)
@click.option(
    "--stage",
    "stages",
    multiple=True,
    required=True,
    metavar="NAME[:N]",
    help="A stage of at most N iterations. Repeatable.",
)
@click.option("--prompt", metavar="FILE", help="Prompt of each iteration: 'prompts/{stage}.md'.")
@click.option(
    "--context", type=click.Path(path_type=Path), help="A context file for every iteration."
)
@click.option(
    "--record/--no-record",
    default=None,
    help="Record the session. Default: PLAYHEAD_RECORD, else no, but a recorded session stays recorded with --resume.",
)
@click.option(
    "--record-level",
    "level",
    type=click.Choice(LEVELS),
    help="How much to record; implies --record. Default: standard.",
)
@click.option("--resume", is_flag=True, help="Continue where the session ended.")
@click.option(
    "--force", "-f", is_flag=True, help="Start over; rename the old session to NAME.old.TIME."
)
@click.option("--dry-run", is_flag=True, help="Print what would be run.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the agent's output, no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stderr.")
@click.option("--within", is_flag=True, hidden=True)
@store_option
@click.argument(
    "command_line", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED
)
def loop_command(
    session: str, stages: tuple[str, ...], prompt: str | None, context: Path | None,
    record: bool | None, level: Level | None, resume: bool, force: bool, dry_run: bool, quiet: bool,
    as_json: bool, within: bool, store: Path | None, command_line: tuple[str, ...],
) -> None:  # fmt: skip
    """Run an agent repeatedly, in stages, and record each iteration.

    \b
    playhead loop --session fix --stage plan:1 --stage work:5 --prompt 'prompts/{stage}.md' \\
      --record -- claude -p --output-format stream-json --verbose
    playhead loop --session fix … --resume -- …     continue after Ctrl-C, an error, a reboot
    playhead show fix; playhead diff fix fix2       a recorded session is an ordinary run

    The prompt is passed on stdin, or in place of {prompt} in CMD. An iteration writes its decision
    (continue, stop or error; one word or JSON) to the file that PLAYHEAD_STATUS names; `stop` ends the
    stage. It also gets PLAYHEAD_SESSION, _STAGE, _ITERATION, _ITERATIONS, _PROMPT and _CONTEXT.
    Exit codes: 0 all stages done, 1 an iteration failed, 130 interrupted.
    """
    plan = Plan(
        session=session,
        stages=parse_stages(stages),
        command=command_line,
        prompt=prompt,
        context=context,
        # The surrounding `playhead record` does the recording.
        record=False if within else record,
        level=level,
        store=store,
        resume=resume,
        force=force,
    )
    check_plan(plan, replaying=is_replaying())
    home = home_of(store)
    check_free(home, session, resume=resume, force=force)
    recorded = wants_record(home, session, asked=plan.record, level=level, resume=resume)
    level = resumed_level(home, session, level, resume=resume)
    if dry_run:
        click.echo("\n".join(forecast(plan, chosen_level(level) if recorded else None)))
        return
    around = isinstance(runs.current(), runs.Run)
    if recorded and not around and chosen_level(level) == "full":
        sys.exit(_recorded(plan, home, quiet=quiet, as_json=as_json))
    result = run(plan, Progress(quiet=quiet))
    if as_json:
        say(json.dumps(asdict(result)))
    if recorded and not around:
        _prune(home, session, quiet=quiet or as_json)
    sys.exit(result.exit_code)


def _prune(home: Path, session: str, *, quiet: bool) -> None:
    """Apply [retention], as `playhead record` does."""
    path = run_path(home, session)
    if not path.exists():
        return
    pruned = prune_automatically(path, str(project_of(Path.cwd())), config.load())
    if pruned and not quiet:
        say(pruned)


def _recorded(plan: Plan, home: Path, *, quiet: bool, as_json: bool) -> int:
    """Record at level `full`: run the loop itself under `playhead record`, so that its commands are
    calls of a recorded program and a replay can answer them from the tape.
    """
    settings = config.load()
    words = [sys.executable, "-m", "playhead", *words_of(plan, home, quiet=quiet, as_json=as_json)]
    facts = facts_of(plan, started_state(home, plan.session, plan.stages, resume=plan.resume))
    wish = wish_for(plan.session, home, "full", resume=plan.resume, force=plan.force, facts=facts)
    done = record_command(words, wish, settings, meanwhile=None if quiet else load_model)
    if not quiet and not as_json:
        say(note(done, counted(done, settings)).replace("show last", f"show {plan.session}"))
    _prune(home, plan.session, quiet=quiet or as_json)
    return done.ended.exit_code


def words_of(plan: Plan, home: Path, *, quiet: bool, as_json: bool) -> list[str]:
    """The command line of the loop that runs inside the recording."""
    words = ["loop", "--within", "--session", plan.session, "--store", str(home)]
    for stage in plan.stages:
        words += ["--stage", spell_stage(stage)]
    words += ["--prompt", plan.prompt] if plan.prompt is not None else []
    words += ["--context", str(plan.context)] if plan.context is not None else []
    flags = {"--resume": plan.resume, "--force": plan.force, "--quiet": quiet, "--json": as_json}
    words += [flag for flag, wanted in flags.items() if wanted]
    return [*words, "--", *plan.command]


def forecast(plan: Plan, level: Level | None) -> list[str]:
    """The lines of --dry-run. `level` is None if nothing is recorded."""
    lines = []
    for stage in plan.stages:
        path = prompt_path(plan, stage, 1)
        asked = "no prompt" if path is None else str(path)
        most = f"at most {stage.most}" if stage.most > 1 else "1" if stage.most else "any number"
        lines.append(f"{stage.name}: {most} × {' '.join(plan.command)}  ({asked})")
    where = "by {prompt}" if takes_prompt(plan.command) else "by stdin"
    recorded = "not recorded" if level is None else f"recorded at {level}"
    return [*lines, f"prompts {where}; {recorded}"]


def _required_name(_context: click.Context, _param: click.Parameter, name: str | None) -> str:
    if not name:
        raise click.UsageError("Name the session, or set PLAYHEAD_SESSION.")
    return name


_name = click.argument(
    "name",
    metavar="[NAME]",
    envvar="PLAYHEAD_SESSION",
    required=False,
    callback=_required_name,
)
_file = click.argument("file", metavar="[FILE]", default="-")
_context = click.Path(path_type=Path)


@click.group("session")
def session_command() -> None:
    """Run a loop from a shell script, step by step, and optionally record it.

    \b
    playhead session init fix --stage work:5 --record
    while env=$(playhead session next fix --prompt 'prompts/{stage}.md' \\
                  --response out.jsonl --exit-code $?); do
      eval "$env"
      claude -p --output-format stream-json --verbose < "$PLAYHEAD_PROMPT" > out.jsonl
    done
    playhead session end fix

    `next` is one process per iteration. iteration-start, prompt and response do the same in three.
    NAME defaults to PLAYHEAD_SESSION. Nothing is recorded without --record or PLAYHEAD_RECORD=1. If the
    disk fails, the recording is lost but the script continues. The session becomes a run with this name:
    playhead show fix.
    """


@session_command.command("init")
@_name
@click.option(
    "--stage",
    multiple=True,
    metavar="NAME[:N]",
    help="A stage of at most N iterations. Repeatable.",
)
@click.option(
    "--record/--no-record",
    default=None,
    help="Record the session. Default: PLAYHEAD_RECORD, else no, but a recorded session stays recorded with --resume.",
)
@click.option(
    "--record-level",
    "--level",
    "level",
    type=click.Choice(LEVELS),
    help="How much to record; implies --record. Default: standard.",
)
@click.option("--resume", is_flag=True, help="Continue the session with this name.")
@click.option(
    "--force", "-f", is_flag=True, help="Start over; rename the old session to NAME.old.TIME."
)
@json_option
@store_option
def init(**given: Any) -> None:
    """Start or continue a session.

    \b
    playhead session init fix --stage plan:1 --stage work:5 --record
    """
    _perform("init", given)


@session_command.command("next", short_help="End the current iteration and start the next one.")
@_name
@click.option(
    "--prompt", metavar="FILE", help="Prompt of the next iteration: 'prompts/{stage}.md'."
)
@click.option(
    "--response", metavar="FILE", help="Answer of the agent in the current iteration; - is stdin."
)
@click.option(
    "--exit-code", type=int, metavar="N", help="Exit code of the agent in the current iteration."
)
@click.option("--command", help="The command line of the agent.")
@click.option("--stage", help="Switch to this stage.")
@click.option("--context", type=_context, help="A context file for the iteration.")
@json_option
@store_option
def next_step(**given: Any) -> None:
    """End the current iteration, start the next one, and print its variables for eval.

    \b
    playhead session next fix --prompt 'prompts/{stage}.md' --response out.jsonl --exit-code $?

    The first call has no current iteration, and ignores --response and --exit-code. Exit code 1: no
    iteration is left, or the current one failed.
    """
    _perform("next", given)


@session_command.command("iteration-start", short_help="Start the next iteration.")
@_name
@click.option("--stage", help="Switch to this stage.")
@click.option("--context", type=_context, help="A context file for the iteration.")
@json_option
@store_option
def iteration_start(**given: Any) -> None:
    """Start the next iteration and print its variables for eval. Exit code 1: no iteration is left.

    \b
    eval "$(playhead session iteration-start fix)"
    """
    _perform("iteration-start", given)


@session_command.command("prompt")
@_name
@_file
@click.option("--command", help="The command line of the agent.")
@store_option
def prompt(**given: Any) -> None:
    """Record the prompt of the iteration, from FILE or stdin.

    \b
    playhead session prompt fix prompts/work.md
    """
    _perform("prompt", given)


@session_command.command("response", short_help="Record the agent's answer and end the iteration.")
@_name
@_file
@click.option("--exit-code", type=int, metavar="N", help="Exit code of the agent.")
@json_option
@store_option
def response(**given: Any) -> None:
    """Record the agent's answer from FILE or stdin, end the iteration and print its decision.

    \b
    playhead session response fix out.jsonl --exit-code $?

    Exit codes: 0 continue, or stop (the stage is over); 1 error.
    """
    _perform("response", given)


@session_command.command("end")
@_name
@click.option(
    "--status",
    type=click.Choice(STATUSES),
    help="Status of the session. Default: derived from its iterations.",
)
@store_option
def end(**given: Any) -> None:
    """End the session and close its run.

    \b
    playhead session end fix
    """
    _perform("end", given)


def _perform(step: str, given: dict[str, Any]) -> None:
    renamed = {"as_json": "json", "exit_code": "exit-code"}
    options = {renamed.get(name, name): value for name, value in given.items() if value is not None}
    if options.get("record") is False:
        options["no-record"] = True
    text, code = steps.perform(step, options)
    if text:
        click.echo(text)
    sys.exit(code)
