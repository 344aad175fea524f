"""The task of a loop: stages, prompts and the command. Pure but for reading prompts; knows placeholders, not
processes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playhead.errors import UsageError
from playhead.events import Level
from playhead.loop.stages import Stage, filled

_PROMPT = "{prompt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The task of a loop. `prompt` is the path of a file, with the placeholders {stage}, {iteration} and {session}."""

    session: str
    stages: tuple[Stage, ...]
    command: tuple[str, ...]
    prompt: str | None = None
    context: Path | None = None
    record: bool | None = None
    level: Level | None = None
    store: Path | None = None
    resume: bool = False
    force: bool = False


def prompt_path(plan: Plan, stage: Stage, number: int) -> Path | None:
    if plan.prompt is None:
        return None
    words = {"stage": stage.name, "iteration": str(number), "session": plan.session}
    return Path(filled(plan.prompt, words)).expanduser()


def read_prompt(plan: Plan, stage: Stage, number: int) -> str | None:
    """Return the text to send. None: the command takes no prompt. UsageError: the file cannot be read."""
    path = prompt_path(plan, stage, number)
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"The prompt of stage {stage.name} cannot be read: {path} ({error.strerror}). "
            "Set its path with --prompt; {stage} and {iteration} in the path are replaced."
        ) from None


def check_plan(plan: Plan, *, replaying: bool = False) -> None:
    """Check before the first command that every prompt and the context exist. A replay does not need the
    context: only the command reads it, and the command is answered from the tape.
    """
    if not plan.command:
        raise UsageError("A loop needs a command: playhead loop … -- claude -p.")
    for stage in plan.stages:
        path = prompt_path(plan, stage, 1)
        if path is not None and "{iteration}" not in (plan.prompt or "") and not path.is_file():
            raise UsageError(
                f"The prompt of stage {stage.name} does not exist: {path}. "
                "Set its path with --prompt; {stage} and {iteration} in the path are replaced."
            )
    if replaying or plan.context is None:
        return
    if not plan.context.expanduser().is_file():
        raise UsageError(f"The context file does not exist: {plan.context}.")


def argv_of(command: Sequence[str], prompt: str | None, values: Mapping[str, str]) -> list[str]:
    """Return the command with its placeholders filled; `values` is the environment of the iteration."""
    words = {
        "prompt": prompt or "",
        "session": values["PLAYHEAD_SESSION"],
        "stage": values["PLAYHEAD_STAGE"],
        "iteration": values["PLAYHEAD_ITERATION"],
        "status": values["PLAYHEAD_STATUS"],
        "context": values.get("PLAYHEAD_CONTEXT", ""),
    }
    return [filled(word, words) for word in command]


def takes_prompt(command: Sequence[str]) -> bool:
    """Return whether the prompt is a word of the command; otherwise it is sent to stdin."""
    return any(_PROMPT in word for word in command)


def command_name(command: Sequence[str]) -> str:
    """The display name of a command."""
    return os.path.basename(command[0]) or command[0]
