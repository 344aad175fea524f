"""Which calls a pattern of the person's means: `search`, `git*`, `api.example.com/*`. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase


def is_named(name: str, pattern: str) -> bool:
    """Whether a call's name fits, or what follows its first word: people write the host of
    `POST api.example.com/v1/things` and the model of `anthropic.messages claude-…`.
    """
    rest = name.partition(" ")[2]
    return fnmatchcase(name, pattern) or bool(rest and fnmatchcase(rest, pattern))
