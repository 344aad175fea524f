"""The shared store that a verb uses: --remote, PLAYHEAD_REMOTE or the config. Knows click."""

from __future__ import annotations

from pathlib import Path

import click

from playhead import config
from playhead.cli.common import Size, home_of
from playhead.cli.progress_line import tally
from playhead.errors import ConfigError, RunNotFound, UsageError
from playhead.remote.objects import ObjectFolder
from playhead.remote.partial_runs import Connections
from playhead.remote.remote_runs import find_remote_run
from playhead.remote.run_cache import DEFAULT_BYTES, fetch, open_run
from playhead.tape.reading.partial_run import connect_with


def shared_store(remote: str | None, *, for_writing: bool = False) -> ObjectFolder:
    """Open the shared store. UsageError: none is configured."""
    url = remote or config.load().remote
    if not url:
        raise UsageError(
            "No shared store is configured. Add --remote s3://bucket/prefix, or set it in playhead.toml: "
            '[store] remote = "s3://bucket/prefix".'
        )
    return ObjectFolder(url, for_writing=for_writing)


def one_remote_run(remote: ObjectFolder, asked: str) -> str:
    """The id of the run of the shared store that the user means. RunNotFound: none, or several."""
    found = find_remote_run(remote, asked)
    if len(found) == 1:
        return found[0]
    if found:
        raise RunNotFound(
            f"{asked!r} is the beginning of {len(found)} runs in {remote.url}: {', '.join(found[:5])}… "
            "Type more of it.",
            asked=asked,
            candidates=found,
        )
    raise RunNotFound(
        f"{remote.url} has no run {asked!r}. `playhead list --remote` lists its runs.",
        asked=asked,
    )


def fetched_run(store: Path | None, asked: str, *, whole: bool = True) -> Path | None:
    """A run that only the shared store has, in the cache. None: no shared store, or no such run there.

    `whole`: False for a first view, which reads a part of a large run.
    """
    settings = config.load()
    if not settings.remote or store is not None:
        return None
    remote = ObjectFolder(settings.remote)
    if not find_remote_run(remote, asked):
        return None
    connect_with(Connections().connect)
    with tally("Fetching bytes") as tell:
        return (fetch if whole else open_run)(
            one_remote_run(remote, asked), remote, home_of(store), cache_limit(), tell
        )


def cache_limit() -> int:
    """The maximum size of the cache, in bytes."""
    settings = config.load()
    section = settings.sections.get("store", {})
    try:
        return Size().convert(section.get("cache", DEFAULT_BYTES), None, None)
    except (AttributeError, click.BadParameter):
        raise ConfigError(
            f"{settings.source}: store.cache is {section['cache']!r}; expected a size such as 5GB."
        ) from None
