"""Commands with a time limit: `timeout 60 python agent.py`. Pure; knows the options of `timeout` of coreutils."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_WITH_VALUE = ("-k", "-s", "--kill-after", "--signal")


def without_limit(command: Sequence[str]) -> list[str]:
    """Return the command with the limit of `timeout` off (0). The limit is in real time, which a replay does not keep:
    on a busy machine it would end the program anywhere. In a replay the program ends where the tape ends.
    """
    words = list(command)
    if not words or Path(words[0]).name != "timeout":
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            at += 1
            break
        at += 2 if words[at] in _WITH_VALUE else 1
    if at < len(words) - 1 and words[at][:1].isdigit():
        words[at] = "0"
    return words
