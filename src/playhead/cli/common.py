"""Options, arguments and parameter types that several verbs share. Knows click.

Covers --store and --json, filters for runs, durations and sizes.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from playhead import clock, config
from playhead.errors import UsageError
from playhead.host.later import pattern
from playhead.host.project import project_of
from playhead.views.text.safe import clean_json

F = TypeVar("F", bound=Callable[..., Any])

store_option = click.option(
    "--store",
    "-s",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of tapes. Default: PLAYHEAD_HOME, the config, or the user data folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def home_of(store: Path | None) -> Path:
    """Return the folder of tapes: --store, or the one of the settings. It may not exist yet."""
    return store.expanduser().absolute() if store is not None else config.load().home


def home_to_read(store: Path | None) -> Path:
    """Return the folder of tapes for a verb that only reads. UsageError: --store names a folder that does not exist."""
    home = home_of(store)
    if store is not None and not home.is_dir():
        raise UsageError(f"There is no folder {store}. --store takes the folder of tapes.")
    return home


def overrides() -> dict[str, Any]:
    """The user's own prices."""
    return dict(config.load().sections.get("prices", {}))


def print_json(value: Any) -> None:
    terminal = sys.stdout.isatty()
    text = json.dumps(value, ensure_ascii=False, indent=2 if terminal else None)
    click.echo(clean_json(text, terminal=terminal))


_DURATION = pattern(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, None: 1.0}
_SIZE = pattern(r"(?i:(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?)")


class Duration(click.ParamType[float]):
    """`1s`, `250ms`, `30d`: seconds as a float."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        hit = _DURATION.fullmatch(value.strip().lower())
        if hit is None:
            self.fail(
                f"{value!r} is not a duration; expected a number with ms, s, m, h, d or w: 30d.",
                param,
                ctx,
            )
        return float(hit.group(1)) * _SECONDS[hit.group(2)]


class Size(click.ParamType[int]):
    """`5GB`, `200MB`: bytes as an int."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        hit = _SIZE.fullmatch(value.strip())
        if hit is None:
            self.fail(
                f"{value!r} is not a size; expected a number with KB, MB, GB or TB: 5GB.",
                param,
                ctx,
            )
        power = " kmgt".index(hit.group(2).lower() or " ")
        return int(float(hit.group(1)) * 1000**power)


STATUSES = ["running", "ok", "failed", "interrupted"]
_OPTIONS = (
    click.option(
        "--status", multiple=True, type=click.Choice(STATUSES), help="Only runs with this status."
    ),
    click.option(
        "--model", multiple=True, help="Only runs that called this model; * is a wildcard."
    ),
    click.option("--tool", multiple=True, help="Only runs that called this tool; * is a wildcard."),
    click.option("--tag", multiple=True, metavar="K[=V]", help="Only runs with this tag."),
    click.option("--name", help="Only runs with this name; * and ? are wildcards."),
    click.option("--since", type=Duration(), help="Only runs started within this time: 2h, 7d."),
    click.option("--all", "everything", is_flag=True, help="Include the runs of all projects."),
    click.option("--replays", is_flag=True, help="Include replays."),
)
_NAMES = ("status", "model", "tool", "tag", "name", "since", "everything", "replays")


def filter_options(function: F) -> F:
    """Add the filter options; the function gets them as `wanted`, the arguments of a Search."""

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        common = {name: given.pop(name) for name in _NAMES}
        return function(wanted=_wanted(common, given.get("store")), **given)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[return-value]  # the same signature, but for `wanted`


def _wanted(given: dict[str, Any], store: Path | None) -> dict[str, Any]:
    everywhere = given["everything"] or store is not None
    since = given["since"]
    return {
        "project": None if everywhere else str(project_of(Path.cwd())),
        "statuses": frozenset(given["status"]),
        "models": given["model"],
        "tools": given["tool"],
        "tags": tuple(tag_of(one) for one in given["tag"]),
        "name": given["name"],
        "since_ns": None if since is None else clock.wall_ns() - int(since * 1e9),
        "replays": given["replays"],
    }


def tag_of(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    return key, value if equals else None
