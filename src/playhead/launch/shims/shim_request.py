"""Turn the call of a shim into the call that is recorded. Knows the run's command, its folder and its
environment; does not know the socket.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from playhead.hooks.process.request import call_of, known_input
from playhead.launch.shims.shim_frames import ShimCall
from playhead.recording.calls import Call
from playhead.replay.matching.shell_snapshot import without_snapshot

# Variables that shells and Playhead set: they are not part of the request.
_NOISE = frozenset({"_", "OLDPWD", "PATH", "PWD", "PYTHONHASHSEED", "PYTHONPATH", "SHELL", "SHLVL"})
_MOST_CHANGED = 64
# A longer file is treated as a stream and not as part of the request.
LONGEST_INPUT = 1 << 20


class Surroundings(NamedTuple):
    """The environment and folder of the run's command."""

    # The folder of the shims, which is different in every run.
    folder: str
    cwd: str
    env: Mapping[str, str]


def call_from(asked: ShimCall, then: Surroundings, stdin: bytes | None) -> Call:
    """`stdin` is the content of the file that the program reads, as far as it is known."""
    made = call_of(
        via="shim",
        argv=[_without(then.folder, word) for word in without_snapshot(asked.argv)],
        cwd=_place(asked.cwd, then.cwd),
        stdin=asked.kinds[0] if stdin is None else known_input(stdin),
        stdout=asked.kinds[1],
        stderr=asked.kinds[2],
    )
    facts: dict[str, Any] = dict(made.facts)
    if asked.real:
        facts["program"] = asked.real
    # Not part of the request: agents put the ids of their sessions there.
    if changed := _changed(asked.env, then.env):
        facts["env"] = changed
    return replace(made, facts=facts, at='""')


def _without(folder: str, word: str) -> str:
    """Remove our folder from a word: a program is then named without its path, and PATH is as before."""
    return word.replace(f"{folder}/", "").replace(f"{folder}:", "")


def _place(cwd: str, base: str) -> str | None:
    """Return the working folder relative to the command's. None: it is the same."""
    if not cwd or cwd == base:
        return None
    inside = cwd.startswith(base.rstrip("/") + "/")
    return os.path.relpath(cwd, base) if inside else cwd


def _changed(env: Mapping[str, str], then: Mapping[str, str]) -> dict[str, str]:
    changed = {
        name: value
        for name, value in sorted(env.items())
        if then.get(name) != value and name not in _NOISE and not name.startswith("PLAYHEAD_")
    }
    return changed if len(changed) <= _MOST_CHANGED else {}
