"""`playhead demo`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from playhead.cli.common import store_option
from playhead.cli.demo.steps import STEPS, Step
from playhead.cli.demo.world import furnish, model
from playhead.errors import PlayheadError
from playhead.library.catalogue import Filter, Library


@click.command("demo")
@store_option
def command(*, store: Path | None) -> None:
    """Record, watch, verify and replay a small agent: without a key, a network or a bill.

    A refund agent with three tools talks to a model that follows a script. Then an orchestrator is
    tapped, and a job fails. The programs and their tapes stay where they are, to be played with.

    \b
    playhead demo
    playhead demo --store ./demo-tapes
    """
    folder = Path(tempfile.mkdtemp(prefix="playhead-demo-"))
    home = (store or folder / "tapes").expanduser().absolute()
    furnish(folder)
    click.echo(f"The programs are in {folder}, their tapes in {home}.")
    for number, step in enumerate(STEPS, 1):
        click.secho(f"\n[{number}/{len(STEPS)}] {step.title}", bold=_is_coloured())
        click.secho(f"$ {shlex.join(step.words)}", dim=_is_coloured())
        code = _perform(step, folder, home)
        if code != step.exit_code:
            raise PlayheadError(
                f"{shlex.join(step.words)} left with {code}; expected {step.exit_code}. "
                f"Everything is in {folder}."
            )
    click.echo(_next(home, _newest(home, "refund-agent")))


def _perform(step: Step, folder: Path, home: Path) -> int:
    environ = _environ(home)
    if not step.online:
        return _run(step, folder, environ)
    with model() as llm:
        _remembered.update(llm.environ(), PAYMENTS_URL=f"{llm.url}/payments")
        return _run(step, folder, _environ(home))


# Where the model was: a replay finds the same addresses in its environment, and nobody there.
_remembered: dict[str, str] = {}


def _environ(home: Path) -> dict[str, str]:
    """The user's own settings are for the user's own runs."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")}
    # An SDK that calls the demo's model old would say so in the middle of it.
    quiet = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
    return {**plain, **quiet, **_remembered, "PLAYHEAD_HOME": str(home)}


def _run(step: Step, folder: Path, environ: Mapping[str, str]) -> int:
    verb, *rest = (sys.executable if word == "python" else word for word in step.words)
    argv = [sys.executable, "-m", "playhead", *rest] if verb == "playhead" else [verb, *rest]
    sys.stdout.flush()
    return subprocess.run(argv, cwd=folder, env=dict(environ), check=False).returncode


def _is_coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _newest(home: Path, name: str) -> str:
    """The id of the recording, not of its replay."""
    found = Library(home).entries(Filter(name=name, replays=False))
    return next((entry.id for entry in found), "last")


def _next(home: Path, agent: str) -> str:
    return f"""
What next:
  export PLAYHEAD_HOME={shlex.quote(str(home))}
  playhead list --all                            these tapes
  playhead play {agent}             space pauses, . steps, f finds the failure
  playhead show {agent} --call 8    everything about one call
  unset PLAYHEAD_HOME
  playhead record -- python my_agent.py          an agent of your own"""
