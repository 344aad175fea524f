"""What the verbs share: --store, --json, how a RUN is named, durations and sizes. Knows click."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from playhead import config
from playhead.errors import RunNotFound
from playhead.library.catalogue import Filter, entries
from playhead.project import project_of
from playhead.tape import store as stores

F = TypeVar("F", bound=Callable[..., Any])

store_option = click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of tapes. Default: PLAYHEAD_HOME, the config, or your data folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def run_argument(function: F) -> F:
    return click.argument("run", metavar="RUN", shell_complete=_complete)(function)


def home_of(store: Path | None) -> Path:
    return store.expanduser().absolute() if store is not None else config.load().home


def find_run(store: Path | None, asked: str) -> Path:
    """The run that is meant. `last` is this project's, unless a store was named or it has none."""
    home = home_of(store)
    if not asked.startswith("last"):
        return stores.find_run(home, asked)
    ids = project_ids(home) if store is None else stores.run_ids(home)
    try:
        return stores.find_run(home, asked, among=ids)
    except RunNotFound:
        if ids or not (elsewhere := stores.run_ids(home)):
            raise
        raise RunNotFound(
            f"No run was recorded in this project. {len(elsewhere)} of other projects are in {home}: "
            "`playhead list --all` shows them.",
            asked=asked,
            candidates=elsewhere[:5],
        ) from None


def project_ids(home: Path) -> list[str]:
    return [entry.id for entry in entries(home, Filter(project=str(project_of(Path.cwd()))))]


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, None: 1.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


class Duration(click.ParamType):
    """`1s`, `250ms`, `30d`: seconds as a float."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        hit = _DURATION.fullmatch(value.strip())
        if hit is None:
            self.fail(f"{value!r} is no duration; expected a number with ms, s, m, h, d or w, such as 30d.", param, ctx)
        return float(hit.group(1)) * _SECONDS[hit.group(2)]


class Size(click.ParamType):
    """`5GB`, `200MB`: bytes as an int."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        hit = _SIZE.fullmatch(value.strip())
        if hit is None:
            self.fail(f"{value!r} is no size; expected a number with KB, MB, GB or TB, such as 5GB.", param, ctx)
        return int(float(hit.group(1)) * 1000 ** " kmgt".index(hit.group(2).lower() or " "))


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """RUN by tab: `last` and the ids that begin so."""
    ids = stores.run_ids(home_of(ctx.params.get("store")))
    return [one for one in ["last", *ids] if one.startswith(incomplete)][:50]
