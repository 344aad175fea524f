"""The options of replays beyond the tape, for the verbs that have them. Knows click and `Wishes`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from playhead.config import Settings
from playhead.errors import TapeNotReplayable, UsageError
from playhead.events import BOUNDARIES
from playhead.replay.matching.ignore import rules_from
from playhead.replay.modes.edit import parse_edit
from playhead.replay.modes.faults import parse_fault
from playhead.replay.modes.mixed import DEFAULT_THRESHOLD, Policy
from playhead.replay.modes.request_edits import Rewrite, parse_patch
from playhead.replay.modes.wishes import Wishes, effects_from, options_of
from playhead.replay.plan import Plan
from playhead.tape.reader import Tape

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_MIXED = (
    click.option(
        "--live", multiple=True, metavar="WHAT", help="Ask the world: llm, tool:search, http:api.*."
    ),
    click.option(
        "--match-threshold", "threshold", type=click.FloatRange(0, 1), metavar="SCORE",
        help=f"How alike a request must be to get a taped answer. Default: {DEFAULT_THRESHOLD}.",
    ),
    click.option(
        "--allow-tool", "allow_tools", multiple=True, metavar="NAME",
        help="May run if the tape has no answer.",
    ),
    click.option("--allow-all-tools", is_flag=True, help="So may every tool that only reads."),
    click.option("--strict", is_flag=True, help="End at the first call that the tape cannot answer."),
    click.option("--model", metavar="NAME", help="Ask this model instead."),
    click.option("--system-file", type=_FILE, help="Ask with this system prompt."),
    click.option("--patch", "patch_file", type=_FILE, help="A JSON Patch on each live LLM request."),
    click.option(
        "--max-context-messages", "max_messages", type=click.IntRange(min=1), metavar="N",
        help="Send only the last N messages.",
    ),
    click.option("--dry-run", is_flag=True, help="Say what would be served, live and blocked."),
    click.option("--no-persist", is_flag=True, help="Keep nothing of this run."),
)  # fmt: skip
_FAULTS = (
    click.option(
        "--fault", "faults", multiple=True, metavar="SPEC", help="Inject a failure: llm:3=529."
    ),
    click.option("--seed", type=int, default=0, help="Of faults that fire by chance."),
)


def mixed_options(function: F) -> F:
    return _with(function, _MIXED)


def fault_options(function: F) -> F:
    return _with(function, _FAULTS)


def _with(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def wishes_from(settings: Settings, asked: dict[str, Any], *, fork_at: int | None = None) -> Wishes:
    """What the options say. UsageError and ConfigError say what is wrong with them."""
    for one in asked["live"]:
        if one.partition(":")[0] not in BOUNDARIES:
            raise UsageError(
                f"--live {one}: expected one of {', '.join(BOUNDARIES)}, or BOUNDARY:NAME."
            )
    for spec in asked.get("faults", ()):
        parse_fault(spec)
    for spec in asked.get("edits", ()):
        parse_edit(spec)
    policy = Policy(
        live=tuple(asked["live"]),
        threshold=DEFAULT_THRESHOLD if asked["threshold"] is None else asked["threshold"],
        allow_tools=tuple(asked["allow_tools"]),
        allow_all_tools=asked["allow_all_tools"],
        strict=asked["strict"],
        effects=effects_from(settings.sections.get("effects")),
        rewrite=_rewrite(asked),
    )
    if not policy.rewrite.empty and not any(one.startswith("llm") for one in policy.live):
        raise UsageError("Requests can be changed only where they are really made: add --live llm.")
    return Wishes(
        policy=policy,
        mixed=_is_mixed(asked) or fork_at is not None,
        faults=tuple(asked.get("faults", ())),
        seed=asked.get("seed", 0),
        fork_at=fork_at,
        edits=tuple(asked.get("edits", ())),
    )


def _is_mixed(asked: dict[str, Any]) -> bool:
    """Whether anything was asked for that plain replay does not do."""
    allows = asked["allow_tools"] or asked["allow_all_tools"]
    return bool(asked["live"] or allows or asked["threshold"] is not None)


def _rewrite(asked: dict[str, Any]) -> Rewrite:
    system, patch = asked["system_file"], asked["patch_file"]
    return Rewrite(
        model=asked["model"],
        system=None if system is None else system.read_text(encoding="utf-8").rstrip("\n"),
        max_context_messages=asked["max_messages"],
        patch=() if patch is None else parse_patch(patch.read_text(encoding="utf-8"), str(patch)),
    )


def plan_of(tape: Tape, settings: Settings, wishes: Wishes, *, pace: bool = False) -> Plan:
    section = settings.sections.get("replay", {})
    return Plan(
        tape=str(tape.run),
        pace=pace,
        ignore=rules_from(section.get("ignore")),
        live=wishes.policy.live,
        options=options_of(wishes),
    )


def words_of(tape: Tape, command_line: Sequence[str]) -> list[str]:
    """The command to run: the one that was given, or the recorded one."""
    words = list(command_line) or list(tape.manifest.command)
    if not words:
        raise TapeNotReplayable(
            "This tape does not say what was run. Name the command after the run: -- CMD…"
        )
    return words
