"""Options of `playhead batch`: invariants, reports, and every option of `playhead replay`.

Knows their form on the command line and in the config; not what they do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from playhead.cli.common import Duration
from playhead.config import Settings
from playhead.errors import ConfigError
from playhead.exporters.batch_reports import junit_xml, step_summary
from playhead.host.private_files import write_export
from playhead.story.invariants import Invariants
from playhead.story.verdicts import Results
from playhead.views.html_page import results_page

F = TypeVar("F", bound=Callable[..., Any])

PASSED = "playhead.batch.passed"
COMMAND = "playhead.batch.command"
# Options that the batch sets itself, and options that would leave nothing to judge.
_NOT_PASSED = frozenset({"--report", "--quiet", "--json", "--store", "--dry-run", "--no-persist"})

_OPTIONS = (
    click.option(
        "--max-steps", type=click.IntRange(min=0), metavar="N", help="Maximum number of steps."
    ),
    click.option("--max-cost", "max_cost_usd", type=float, metavar="USD", help="Maximum cost."),
    click.option(
        "--max-tokens", type=click.IntRange(min=0), metavar="N", help="Maximum number of tokens."
    ),
    click.option(
        "--max-duration", "max_duration_s", type=Duration(), help="Maximum duration: 30s."
    ),
    click.option("--must-call", multiple=True, metavar="TOOL", help="The run must call this tool."),
    click.option(
        "--must-not-call", multiple=True, metavar="TOOL", help="The run must not call this tool."
    ),
    click.option(
        "--in-order", metavar="A,B,C", help="The run must call these tools in this order."
    ),
    click.option(
        "--must-say", multiple=True, metavar="TEXT", help="The output must contain this text."
    ),
    click.option(
        "--must-not-say",
        multiple=True,
        metavar="TEXT",
        help="The output must not contain this text.",
    ),
    click.option(
        "--min-similarity",
        type=click.FloatRange(0, 1),
        metavar="X",
        help="Minimum similarity to the recorded result, 0 to 1.",
    ),
    click.option(
        "--no-new-tools",
        is_flag=True,
        help="Fail if the run calls a tool that the recorded run did not.",
    ),
)


def invariant_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_FILE = click.Path(dir_okay=False, path_type=Path)
_REPORTS = (
    click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML."),
    click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write JSON."),
    click.option("--html", type=_FILE, metavar="FILE", help="Write a single HTML file."),
)
min_pass_rate_option = click.option(
    "--min-pass-rate",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Exit with 0 if at least this share of the replays passed, 0 to 1.",
)


def report_options(function: F) -> F:
    for option in reversed(_REPORTS):
        function = option(function)
    return function


def write_reports(
    results: Results, *, junit: Path | None, json_file: Path | None, html: Path | None
) -> None:
    """Write the files that were asked for, and the summary of the step on GitHub."""
    if junit is not None:
        junit.write_bytes(junit_xml(results))
    if json_file is not None:
        text = json.dumps(results.as_json(), ensure_ascii=False, indent=2)
        write_export(json_file, text + "\n")
    if html is not None:
        write_export(html, results_page(results))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(step_summary(results))


def invariants_from(settings: Settings, options: Mapping[str, Any]) -> Invariants:
    """Invariants of `[batch.invariants]`, overridden or extended by those of the command line."""
    section = settings.sections.get("batch", {})
    written = section.get("invariants", {})
    if not isinstance(written, dict):
        raise ConfigError(f"{settings.source}: batch.invariants is not a table.")
    rules = _configured(written, settings)
    order = tuple(one.strip() for one in (options.get("in_order") or "").split(",") if one.strip())
    changes: dict[str, Any] = {"in_order": order} if order else {}
    for name in _SCALARS:
        value = options.get(name)
        # 0 is a limit, though it equals False.
        if value is not None and value is not False:
            changes[name] = value
    for name in _LISTS:
        changes[name] = (*getattr(rules, name), *options.get(name, ()))
    return replace(rules, **changes)


_LISTS = ("must_call", "must_not_call", "must_say", "must_not_say")
_SCALARS = (
    "max_steps",
    "max_cost_usd",
    "max_tokens",
    "max_duration_s",
    "min_similarity",
    "no_new_tools",
)
_TYPES: dict[str, tuple[type, ...]] = {
    "max_steps": (int,),
    "max_cost_usd": (int, float),
    "max_tokens": (int,),
    "min_similarity": (int, float),
    "no_new_tools": (bool,),
}
# The names of the command line work in the config, too.
_ALIASES = {"max_cost": "max_cost_usd", "max_duration": "max_duration_s"}


def _configured(written: Mapping[str, Any], settings: Settings) -> Invariants:
    known = {one.name for one in fields(Invariants)}
    members: dict[str, Any] = {}
    for given, value in written.items():
        name = _ALIASES.get(given, given)
        if name not in known:
            names = ", ".join(sorted(known))
            raise ConfigError(
                f"{settings.source}: batch.invariants.{given} is not an invariant; expected one of {names}."
            )
        members[name] = _value(given, name, value, settings)
    return Invariants(**members)


def _value(given: str, name: str, value: Any, settings: Settings) -> Any:
    if name == "max_duration_s":
        try:
            return Duration().convert(value, None, None)
        except click.BadParameter as error:
            raise ConfigError(
                f"{settings.source}: batch.invariants.{given}: {error.message}"
            ) from None
    if name in _TYPES:
        if isinstance(value, _TYPES[name]) and isinstance(value, bool) == (name == "no_new_tools"):
            return value
        expected = "true or false" if name == "no_new_tools" else "a number"
    else:
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        expected = "a list of strings"
    raise ConfigError(
        f"{settings.source}: batch.invariants.{given} is {value!r}; expected {expected}."
    )


class WithReplayOptions(click.Command):
    """A command that also accepts the options of `playhead replay`, and a command after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        own, passed = self._divided(args[:at])
        ctx.meta[PASSED], ctx.meta[COMMAND] = tuple(passed), tuple(args[at + 1 :])
        if passed:
            with _replay().make_context("replay", ["last", *passed]):
                pass  # report an invalid value once, here, instead of in every child
        return super().parse_args(ctx, own)

    def _divided(self, words: list[str]) -> tuple[list[str], list[str]]:
        theirs = self._theirs()
        own: list[str] = []
        passed: list[str] = []
        rest = iter(words)
        for word in rest:
            option = theirs.get(word.partition("=")[0])
            if option is None:
                own.append(word)
                continue
            passed.append(word)
            if not option.is_flag and not option.count and "=" not in word:
                passed += islice(rest, option.nargs)
        return own, passed

    def _theirs(self) -> dict[str, click.Option]:
        mine = {name for param in self.params for name in (*param.opts, *param.secondary_opts)}
        return {
            name: param
            for param in _replay().params
            if isinstance(param, click.Option)
            for name in (*param.opts, *param.secondary_opts)
            if name not in mine and name not in _NOT_PASSED
        }


def _replay() -> click.Command:
    from playhead.cli.replaying.replay_command import command

    return command
