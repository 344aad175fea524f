"""`playhead session`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from playhead.cli.common import json_option, store_option
from playhead.events import LEVELS
from playhead.loop import steps
from playhead.loop.shell import STATUSES

_name = click.argument("name", metavar="[NAME]", envvar="PLAYHEAD_SESSION")
_file = click.argument("file", metavar="[FILE]", default="-")
_context = click.Path(path_type=Path)


@click.group("session")
def command() -> None:
    """Record a loop from a shell script, step by step. Each step takes well under 100 ms.

    \b
    playhead session init fix --stage work:5 --level full
    while env=$(playhead session iteration-start fix); do
      eval "$env"
      playhead session prompt fix prompts/work.md
      claude -p --output-format stream-json --verbose < prompts/work.md > out.jsonl
      playhead session response fix out.jsonl --exit-code $? || break
    done
    playhead session end fix

    NAME defaults to PLAYHEAD_SESSION. If the disk fails, the recording is lost but the script continues.
    The session becomes a run with this name: playhead show fix.
    """


@command.command("init")
@_name
@click.option("--stage", multiple=True, metavar="NAME[:N]", help="As in playhead loop.")
@click.option("--level", type=click.Choice(LEVELS), help="How much to record. Default: standard.")
@click.option("--resume", is_flag=True, help="Continue the session with this name.")
@click.option("--force", is_flag=True, help="Start over; rename the old session to NAME.old.TIME.")
@json_option
@store_option
def init(**given: Any) -> None:
    """Start or continue a session."""
    _perform("init", given)


@command.command("iteration-start")
@_name
@click.option("--stage", help="Switch to this stage.")
@click.option("--context", type=_context, help="A context file for the iteration.")
@json_option
@store_option
def iteration_start(**given: Any) -> None:
    """Start the next iteration and print its variables for eval. Exit code 1: no iteration is left."""
    _perform("iteration-start", given)


@command.command("prompt")
@_name
@_file
@click.option("--command", help="The command line of the agent.")
@store_option
def prompt(**given: Any) -> None:
    """Record the prompt of the iteration, from FILE or stdin."""
    _perform("prompt", given)


@command.command("response")
@_name
@_file
@click.option("--exit-code", type=int, help="Exit code of the agent.")
@json_option
@store_option
def response(**given: Any) -> None:
    """Record the agent's answer from FILE or stdin, end the iteration and print its decision.

    Exit codes: 0 continue, or stop (the stage is over); 1 error.
    """
    _perform("response", given)


@command.command("end")
@_name
@click.option(
    "--status",
    type=click.Choice(STATUSES),
    help="Status of the session. Default: derived from its iterations.",
)
@store_option
def end(**given: Any) -> None:
    """End the session and close its run."""
    _perform("end", given)


def _perform(step: str, given: dict[str, Any]) -> None:
    renamed = {"as_json": "json", "exit_code": "exit-code"}
    told = {renamed.get(name, name): value for name, value in given.items() if value is not None}
    text, code = steps.perform(step, told)
    if text:
        click.echo(text)
    sys.exit(code)
