"""Options that say which runs are meant, shared by `search` and `stats`. Knows click."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from playhead import clock
from playhead.cli.common import Duration
from playhead.host.project import project_of

F = TypeVar("F", bound=Callable[..., Any])

STATUSES = ["running", "ok", "failed", "interrupted"]
_OPTIONS = (
    click.option(
        "--status", multiple=True, type=click.Choice(STATUSES), help="Only runs that ended so."
    ),
    click.option(
        "--model", multiple=True, help="Only runs that asked this model; * is a wildcard."
    ),
    click.option("--tool", multiple=True, help="Only runs that called this tool; * is a wildcard."),
    click.option("--tag", multiple=True, metavar="K[=V]", help="Only runs with this tag."),
    click.option("--name", help="Only runs of this name; * and ? are wildcards."),
    click.option("--since", type=Duration(), help="Only runs younger than this: 2h, 7d."),
    click.option("--all", "everything", is_flag=True, help="Runs of all projects."),
    click.option("--replays", is_flag=True, help="Replays, too."),
)
_NAMES = ("status", "model", "tool", "tag", "name", "since", "everything", "replays")


def filter_options(function: F) -> F:
    """Hands `wanted` on: what a Search needs to know, as a dict. `store` decides whose runs."""

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        told = {name: given.pop(name) for name in _NAMES}
        return function(wanted=_wanted(told, given.get("store")), **given)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[return-value]  # the same, but for who fills `wanted`


def _wanted(told: dict[str, Any], store: Path | None) -> dict[str, Any]:
    everywhere = told["everything"] or store is not None
    since = told["since"]
    return {
        "project": None if everywhere else str(project_of(Path.cwd())),
        "statuses": frozenset(told["status"]),
        "models": told["model"],
        "tools": told["tool"],
        "tags": tuple(tag_of(one) for one in told["tag"]),
        "name": told["name"],
        "since_ns": None if since is None else clock.wall_ns() - int(since * 1e9),
        "replays": told["replays"],
    }


def tag_of(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    return key, value if equals else None
