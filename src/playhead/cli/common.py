"""Options, arguments and parameter types that several verbs share. Knows click.

Covers --store and --json, how a user names a RUN, filters for runs, durations and sizes.
"""

from __future__ import annotations

import atexit
import functools
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from playhead import clock, config
from playhead.errors import PlayheadError, RunNotFound
from playhead.host.later import pattern
from playhead.host.project import project_of
from playhead.tape import store as stores
from playhead.tape.layout import BUNDLE_SUFFIX, SINGLE_SUFFIX
from playhead.views.text import words
from playhead.views.text.safe import clean_json, one_line

F = TypeVar("F", bound=Callable[..., Any])

_MOST_COMPLETIONS = 50

store_option = click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of tapes. Default: PLAYHEAD_HOME, the config, or the user data folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def run_argument(function: F) -> F:
    return click.argument("run", metavar="RUN", shell_complete=_complete)(function)


def runs_argument(function: F) -> F:
    return click.argument("runs", metavar="[RUN]...", nargs=-1, shell_complete=_complete)(function)


def home_of(store: Path | None) -> Path:
    return store.expanduser().absolute() if store is not None else config.load().home


def find_run(store: Path | None, asked: str) -> Path:
    """The folder of run `asked`. `last` means the last of this project, unless --store is given."""
    home = home_of(store)
    last = re.fullmatch(r"last(?:~(\d+))?", asked)
    if last is None:
        return stores.find_run(home, asked)
    from playhead.library.catalogue import Filter, Library  # an id is found without the catalogue

    project = None if store is not None else str(project_of(Path.cwd()))
    # `last` never means a replay.
    found = Library(home).entries(Filter(project=project, replays=False))
    ids = [entry.id for entry in islice(found, int(last.group(1) or 0) + 1)]
    if not ids and project is not None and (elsewhere := stores.run_ids(home)):
        raise RunNotFound(
            f"This project has no recorded runs. {home} holds {len(elsewhere)} of other projects: "
            "`playhead list --all` shows them.",
            asked=asked,
            candidates=elsewhere[:5],
        )
    return stores.find_run(home, asked, among=ids)


def find_tape(store: Path | None, asked: str) -> Path:
    """The run's folder; a single-file tape or a bundle is unpacked into a temporary one."""
    source = Path(asked).expanduser()
    is_named = asked.endswith((SINGLE_SUFFIX, BUNDLE_SUFFIX))
    if not is_named and not source.is_file():
        return find_run(store, asked)
    from playhead.tape.single_file import folder_of, is_single_file

    if not is_named and not is_single_file(source):
        return find_run(store, asked)
    if not source.is_file():
        raise RunNotFound(f"File not found: {asked}.", asked=asked)
    folder = Path(tempfile.mkdtemp(prefix="playhead-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if asked.endswith(BUNDLE_SUFFIX):
        from playhead.exporters.bundle import open_bundle

        return open_bundle(source.resolve(), folder)
    return folder_of(source.resolve(), folder / source.name.removesuffix(SINGLE_SUFFIX))


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


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Tab completion of RUN: `last` and matching ids, with a description for shells that show one."""
    return list(islice(_candidates(ctx.params.get("store"), incomplete), _MOST_COMPLETIONS))


def _candidates(store: Any, begun: str) -> Iterator[CompletionItem]:
    from playhead.library.catalogue import Filter, Library

    if "last".startswith(begun):
        yield CompletionItem("last", help="the newest run of this project")
    now = clock.wall_ns()
    try:
        home = home_of(Path(store) if store else None)
        for entry in Library(home).entries(Filter()):
            if entry.id.startswith(begun):
                age = words.age(entry.manifest.started_ns, now)
                said = f"{entry.manifest.name}, {entry.status}, {age} ago"
                yield CompletionItem(entry.id, help=one_line(said, 60))
    except PlayheadError:
        return  # an error message would break the command line that is being typed


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
        told = {name: given.pop(name) for name in _NAMES}
        return function(wanted=_wanted(told, given.get("store")), **given)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[return-value]  # the same signature, but for `wanted`


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
