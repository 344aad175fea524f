"""Options and arguments that replays share. Knows click; turns options into a plan."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from playhead.config import Settings
from playhead.errors import StoreError, UsageError
from playhead.events import BOUNDARIES
from playhead.host.private_files import copy_regular
from playhead.replay.matching.ignore import rules_from
from playhead.replay.modes.edits import Rewrite, parse_edit, parse_patch
from playhead.replay.modes.replay_options import (
    DEFAULT_THRESHOLD,
    Policy,
    ReplayOptions,
    effects_from,
    write_options,
)
from playhead.replay.replay_plan import ReplayPlan
from playhead.tape.layout import SEALED_FILE
from playhead.tape.reader import Tape

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_MIXED = (
    click.option(
        "--live", multiple=True, metavar="WHAT",
        help="Perform these calls live: llm, tool:search, http:api.*. Repeatable.",
    ),
    click.option(
        "--match-threshold", "threshold", type=click.FloatRange(0, 1), metavar="SCORE",
        help=f"Similarity that a request needs to get a taped answer. Default: {DEFAULT_THRESHOLD}.",
    ),
    click.option(
        "--allow-tool", "allow_tools", multiple=True, metavar="NAME",
        help="Execute this tool if the tape has no answer. Repeatable.",
    ),
    click.option(
        "--allow-reads/--no-allow-reads", default=True,
        help="Execute tools declared `read` if the tape has no answer. Default: yes.",
    ),
    click.option(
        "--allow-all-tools", is_flag=True,
        help="Execute any tool if the tape has no answer, also with effects: writes, mail, payments.",
    ),
    click.option(
        "--expect", type=click.Choice(("any", "same")), default="any",
        help="With live calls: `same` exits with 3 if the run differs from the recording. Default: any.",
    ),
    click.option("--strict", is_flag=True, help="Stop at the first call that is not on the tape."),
    click.option("--model", metavar="NAME", help="Send live LLM requests to this model."),
    click.option("--system-file", type=_FILE, help="Send live LLM requests with this system prompt."),
    click.option("--patch", "patch_file", type=_FILE, help="Apply a JSON Patch to each live LLM request."),
    click.option(
        "--max-context-messages", "max_messages", type=click.IntRange(min=1), metavar="N",
        help="Send only the last N messages.",
    ),
    click.option("--dry-run", is_flag=True, help="Print which calls would be served, live or blocked."),
    click.option("--no-persist", is_flag=True, help="Delete the new run at the end."),
)  # fmt: skip
_FAULTS = (
    click.option(
        "--fault", "faults", multiple=True, metavar="SPEC", help="Inject a failure: llm:3=529."
    ),
    click.option(
        "--seed", type=int, metavar="N", default=0, help="Random seed for probabilistic faults."
    ),
)


def mixed_options(function: F) -> F:
    return _with(function, _MIXED)


def fault_options(function: F) -> F:
    return _with(function, _FAULTS)


def _with(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def options_from(
    settings: Settings,
    asked: dict[str, Any],
    *,
    fork_at: int | None = None,
    request: int | None = None,
) -> ReplayOptions:
    """The options as a value. UsageError or ConfigError: one of them is invalid."""
    for one in asked["live"]:
        if one.partition(":")[0] not in BOUNDARIES:
            raise UsageError(
                f"--live {one}: expected one of {', '.join(BOUNDARIES)}, or BOUNDARY:NAME."
            )
    _check_specs(asked.get("faults", ()), asked.get("edits", ()))
    policy = Policy(
        live=tuple(asked["live"]),
        threshold=DEFAULT_THRESHOLD if asked["threshold"] is None else asked["threshold"],
        allow_tools=tuple(asked["allow_tools"]),
        allow_reads=asked["allow_reads"],
        allow_all_tools=asked["allow_all_tools"],
        strict=asked["strict"],
        effects=effects_from(settings.sections.get("effects")),
        rewrite=_rewrite(asked),
    )
    if not policy.rewrite.empty and not any(one.startswith("llm") for one in policy.live):
        raise UsageError("Only live requests can be changed: add --live llm.")
    return ReplayOptions(
        policy=policy,
        mixed=_is_mixed(asked) or fork_at is not None,
        faults=tuple(asked.get("faults", ())),
        seed=asked.get("seed", 0),
        fork_at=fork_at,
        edits=tuple(asked.get("edits", ())),
        request=request,
    )


def _check_specs(faults: Sequence[str], edits: Sequence[str]) -> None:
    """Parse faults and edits before anything starts."""
    if faults:
        from playhead.replay.modes.faults import parse_fault

        for spec in faults:
            parse_fault(spec)
    for spec in edits:
        parse_edit(spec)


def _is_mixed(asked: dict[str, Any]) -> bool:
    """Whether the options need mixed mode."""
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


def plan_of(
    tape: Tape,
    settings: Settings,
    wishes: ReplayOptions,
    *,
    pace: bool = False,
    order: str = "strict",
    timeout_s: float = 5.0,
) -> ReplayPlan:
    section = settings.sections.get("replay", {})
    return ReplayPlan(
        tape=str(tape.run),
        pace=pace,
        order=order,
        timeout_s=timeout_s,
        ignore=rules_from(section.get("ignore")),
        live=wishes.policy.live,
        options=write_options(wishes),
    )


def plain(tape: Tape) -> Tape:
    """An unsealed copy of a sealed tape: the agent's Python may have no zstd."""
    if not (tape.run / SEALED_FILE).exists():
        return tape
    from playhead.tape.sealed.seal import unseal

    folder = Path(tempfile.mkdtemp(prefix="playhead-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / tape.run.name
    try:
        copy_regular(tape.run, copy)
    except OSError as error:
        raise StoreError(f"{tape.run} cannot be unpacked for a replay ({error}).") from error
    unseal(copy)
    return Tape(copy)
