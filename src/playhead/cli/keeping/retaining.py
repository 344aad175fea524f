"""The rules of `[retention]` in the config. Knows how they are written; not what is done by them."""

from __future__ import annotations

import click

from playhead.cli.common import Duration, Size
from playhead.config import Settings
from playhead.errors import ConfigError, UsageError
from playhead.library.retention import Rules

_KNOWN = {"older_than", "keep", "max_size", "auto"}


def configured_rules(settings: Settings) -> Rules:
    """UsageError: none is set. ConfigError: one is set that cannot be."""
    told = settings.sections.get("retention", {})
    wrong = sorted(told.keys() - _KNOWN)
    if wrong:
        known = ", ".join(sorted(_KNOWN))
        raise ConfigError(f"{settings.source}: [retention] has {wrong[0]!r}; expected {known}.")
    try:
        older = Duration().convert(told["older_than"], None, None) if "older_than" in told else None
        size = Size().convert(told["max_size"], None, None) if "max_size" in told else None
        keep = click.IntRange(min=0).convert(told["keep"], None, None) if "keep" in told else None
    except click.BadParameter as error:
        raise ConfigError(f"{settings.source}: [retention]: {error.message}") from None
    if older is None and size is None and keep is None:
        raise UsageError(
            "Which runs may go? Say --older-than 30d, --keep 100 or --max-size 5GB, "
            "or set them under [retention] in playhead.toml."
        )
    return rules_of(older, keep, size)


def rules_of(older_than_s: float | None, keep: int | None, max_size: int | None) -> Rules:
    older_ns = None if older_than_s is None else int(older_than_s * 1e9)
    return Rules(older_than_ns=older_ns, keep=keep, max_bytes=max_size)
