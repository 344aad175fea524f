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
    """The loop's recording for shell scripts, step by step. Each step takes well under 100 ms.

    \b
    playhead session init fix --stage work:5 --level full
    while env=$(playhead session iteration-start fix); do
      eval "$env"
      playhead session prompt fix prompts/work.md
      claude -p --output-format stream-json --verbose < prompts/work.md > out.jsonl
      playhead session response fix out.jsonl --exit-code $? || break
    done
    playhead session end fix

    NAME may be left out where PLAYHEAD_SESSION is set. A disk that fails costs the recording, never the
    script. The session is a run of that name: playhead show fix.
    """


@command.command("init")
@_name
@click.option("--stage", multiple=True, metavar="NAME[:N]", help="As in playhead loop.")
@click.option("--level", type=click.Choice(LEVELS), help="How much to keep. Default: standard.")
@click.option("--resume", is_flag=True, help="Go on with the session of that name.")
@click.option("--force", is_flag=True, help="Start over; the old one is kept as NAME.old.TIME.")
@json_option
@store_option
def init(**given: Any) -> None:
    """Begin a session, or go on with one."""
    _perform("init", given)


@command.command("iteration-start")
@_name
@click.option("--stage", help="Go over to this stage.")
@click.option("--context", type=_context, help="A file that it may read.")
@json_option
@store_option
def iteration_start(**given: Any) -> None:
    """Begin the next iteration; prints its variables for eval. Exit code 1: there is none."""
    _perform("iteration-start", given)


@command.command("prompt")
@_name
@_file
@click.option("--command", help="What the agent is called.")
@store_option
def prompt(**given: Any) -> None:
    """What the iteration is asked, from FILE or stdin."""
    _perform("prompt", given)


@command.command("response")
@_name
@_file
@click.option("--exit-code", type=int, help="How the agent ended.")
@json_option
@store_option
def response(**given: Any) -> None:
    """What it answered, from FILE or stdin: ends the iteration and prints its decision.

    Exit code 0: continue, or stop (the stage is over). 1: error.
    """
    _perform("response", given)


@command.command("end")
@_name
@click.option("--status", type=click.Choice(STATUSES), help="Default: what the iterations say.")
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
