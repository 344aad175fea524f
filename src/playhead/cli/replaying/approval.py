"""Decide whether the command of a tape may run, and ask the user if that is not clear. Knows click.

`approved_command` is the only way from a tape to its command: every verb that runs a recorded command calls it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from playhead.errors import TapeNotReplayable, TapeNotTrusted, UsageError
from playhead.launch.replaying.replay_run import EnvironmentChoice
from playhead.tape.manifest import Manifest
from playhead.tape.origin import digest_of, is_own, is_trusted, trust
from playhead.tape.reader import Tape
from playhead.views.text.safe import one_line, whole_line

F = TypeVar("F", bound=Callable[..., Any])
_LONGEST_FOLDER = 2000
# A question shows the whole command. A person does not read a longer one.
_LONGEST_COMMAND = 10_000

trust_option = click.option(
    "--trust", "trusted", is_flag=True,
    help="Run the recorded command of a tape that another person recorded, without asking.",
)  # fmt: skip
_ENVIRONMENT = (
    click.option(
        "--env", "variables", multiple=True, metavar="K=V",
        help="Set this environment variable in the replay. Repeatable.",
    ),
    click.option(
        "--env-from-here", is_flag=True,
        help="Use the current environment variables, not the recorded ones.",
    ),
)  # fmt: skip


def environment_options(function: F) -> F:
    for option in reversed(_ENVIRONMENT):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The command that may run. `foreign`: another user recorded the tape."""

    words: list[str]
    foreign: bool


def approved_command(
    source: Path,
    tape: Tape,
    command_line: Sequence[str],
    *,
    trusted: bool = False,
    real_effects: str | None = None,
) -> Approval:
    """The command given, else the recorded one if this user recorded it or agrees to run it.

    `source` is the run as the user named it; a tape may be an unpacked copy of it. `real_effects` names the
    option by which the replay leaves its fence. TapeNotTrusted: the user must say more.
    """
    foreign = not is_own(source, tape.manifest)
    if command_line:
        return Approval(words=list(command_line), foreign=foreign)
    words = recorded_command(tape.manifest)
    if foreign:
        if real_effects is not None:
            name = one_line(source.name, 200)
            raise TapeNotTrusted(
                f"Another person recorded {name}. With {real_effects} its command would have real "
                "effects, so Playhead does not take it from the tape. Add the command to run: -- CMD…"
            )
        agree(source, tape, words, trusted=trusted)
    return Approval(words=words, foreign=foreign)


def recorded_command(manifest: Manifest) -> list[str]:
    words = list(manifest.command)
    if not words or any("\0" in one for one in words):
        raise TapeNotReplayable("This tape has no command. Add the command to run: -- CMD…")
    return words


def agree(source: Path, tape: Tape, words: Sequence[str], *, trusted: bool) -> None:
    """Return if the user agrees now or has agreed before; TapeNotTrusted otherwise."""
    digest = digest_of(tape.run, tape.manifest)
    if is_trusted(digest):
        return
    shown = whole_line(shlex.join(words))
    is_long = len(shown) > _LONGEST_COMMAND
    if is_long:
        shown = (
            f"{shown[:_LONGEST_COMMAND]}\n  … and {len(shown) - _LONGEST_COMMAND:,} more characters. "
            "`playhead show --json` prints all of them."
        )
    folder = one_line(tape.manifest.cwd or "(not recorded)", _LONGEST_FOLDER)
    name = one_line(source.name, 200)
    said = f"{name} runs this command:\n  {shown}\n  in {folder}"
    if not trusted:
        if is_long or not can_ask():
            # The reason in the last line: a batch shows that one.
            raise TapeNotTrusted(
                f"{said}\nAnother person recorded {name}, so Playhead does not run its command "
                "without your approval. Read it; then add --trust, or your own command: -- CMD…"
            )
        click.echo(f"Another person recorded this tape. {said}", err=True)
        if not click.confirm("Run it inside the fence?", err=True):
            raise TapeNotTrusted("Nothing was started.")
    try:
        trust(digest)
    except OSError as error:
        click.echo(f"playhead: this answer was not saved ({error}).", err=True)


def can_ask() -> bool:
    # A stream that the caller has closed is None.
    return all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr))


def environment_choice(approval: Approval, asked: dict[str, Any]) -> EnvironmentChoice:
    """From `--env K=V` and `--env-from-here`."""
    chosen = {}
    for one in asked["variables"]:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise UsageError(f"--env {one}: expected NAME=VALUE.")
        chosen[name] = value
    return EnvironmentChoice(
        foreign=approval.foreign, from_here=asked["env_from_here"], chosen=chosen
    )


def option_with_real_effects(asked: dict[str, Any], *, unfenced: bool = False) -> str | None:
    """The option that lets a replay change the world; None: everything stays in the fence."""
    given = {
        "--live": asked.get("live"),
        "--allow-tool": asked.get("allow_tools"),
        "--allow-all-tools": asked.get("allow_all_tools"),
        "--unfenced": unfenced,
    }
    return next((name for name, value in given.items() if value), None)
