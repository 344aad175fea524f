"""`playhead prune` and `playhead clean`: delete old runs and replays, by rules or on request."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from playhead import clock, config
from playhead.cli.common import (
    Duration,
    Size,
    home_to_read,
    json_option,
    print_json,
    store_option,
    tag_of,
)
from playhead.cli.progress_line import counted
from playhead.cli.remote_options import optional_remote
from playhead.config import Settings
from playhead.errors import ConfigError, RemoteError, UsageError
from playhead.host.project import project_of
from playhead.library.catalogue import Filter, Library
from playhead.library.retention import (
    Doomed,
    RetentionRules,
    Sized,
    clear_rubbish,
    is_safe,
    plan,
    remove,
    run_size,
    size_of,
)
from playhead.views.text import words
from playhead.views.text.console import console
from playhead.views.text.maintenance import plan_lines, weight
from playhead.workspace.blob_collection import collect


@click.command("prune")
@click.option("--older-than", type=Duration(), help="Delete runs older than this: 30d.")
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    metavar="N",
    help="Always keep the newest N runs; without another rule, delete the rest.",
)
@click.option("--max-size", type=Size(), help="Delete the oldest runs until the rest fits: 5GB.")
@click.option("--all", "everything", is_flag=True, help="Include the runs of all projects.")
@click.option("--tag", "tags", multiple=True, metavar="K[=V]", help="Only runs with this tag.")
@optional_remote
@click.option("--dry-run", is_flag=True, help="Print what would be deleted; delete nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@json_option
@store_option
def prune_command(
    *,
    older_than: float | None,
    keep: int | None,
    max_size: int | None,
    everything: bool,
    tags: tuple[str, ...],
    remote: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Delete old runs of this project. Running and kept runs are never deleted.

    Without an option, the rules under [retention] in the config apply: older_than, keep, max_size.
    With auto = true there, they also apply after every `playhead record`.

    \b
    playhead prune --older-than 30d --dry-run
    playhead prune --older-than 30d --keep 100 --max-size 5GB --yes
    playhead prune --remote --older-than 90d --tag env=ci --dry-run

    --remote deletes runs of the shared store instead, of all projects; it needs a rule on the command line. Objects
    that no run needs are deleted there when they are a day old.
    """
    home = home_to_read(store)
    wanted = tuple(tag_of(one) for one in tags)
    if remote is not None:
        if older_than is None and keep is None and max_size is None:
            raise UsageError("Add a rule: --older-than, --keep or --max-size.")
        rules = rules_of(older_than, keep, max_size)
        _prune_remote(home, remote, rules, wanted, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    project = None if everything or store is not None else str(project_of(Path.cwd()))
    found = list(Library(home).entries(Filter(project=project, tags=wanted)))
    runs = [Sized(entry=one, bytes=run_size(one.path)) for one in counted(found, "Weighing")]
    going = plan(runs, _rules(older_than, keep, max_size), clock.wall_ns())
    freed = unneeded = 0
    if not dry_run:
        if going and not yes:
            _ask(going, runs)
        freed = clear_rubbish(home)
        going = list(remove(home, counted(going, "Deleting")))
        unneeded = collect(home) if going else 0
    if as_json:
        print_json(_json(going, runs, dry_run=dry_run))
    elif dry_run:
        _print_plan(going, runs)
    else:
        left = f", and {words.size(freed)} left over from an interrupted prune" if freed else ""
        left += (
            f", and {words.size(unneeded)} of files that no run needs any more" if unneeded else ""
        )
        click.echo(f"Deleted {weight(going)} of {weight(runs)}{left}.")


def _prune_remote(
    home: Path,
    remote: str,
    rules: RetentionRules,
    tags: Sequence[tuple[str, str | None]],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    from playhead.cli.shared_store import shared_store
    from playhead.cli.sharing.remote_list import entries_of, sized
    from playhead.remote.remote_runs import delete_runs, remote_runs, sweep

    there = shared_store(remote or None)
    found, problems = remote_runs(there, home)
    if problems:
        raise RemoteError(f"{there.url} has a run that cannot be read: {problems[0]}")
    runs = sized(entries_of(found, Filter(tags=tuple(tags)), home), found)
    going = plan(runs, rules, clock.wall_ns())
    number = size = 0
    if not dry_run:
        if going and not yes:
            _ask(going, runs)
        delete_runs(there, [one.entry.id for one in going])
        number, size = sweep(there, home)
    if as_json:
        print_json(_json(going, runs, dry_run=dry_run))
    elif dry_run:
        _print_plan(going, runs)
    else:
        left = f", and {number} objects that no run needs ({words.size(size)})" if number else ""
        click.echo(f"Deleted {weight(going)} of {weight(runs)} from {there.url}{left}.")


def _ask(going: Sequence[Doomed], runs: Sequence[Sized]) -> None:
    """Show the plan and ask for confirmation; without a terminal, require --yes."""
    if not sys.stdin.isatty():
        raise UsageError(
            f"This would delete {weight(going)}. Add --yes to delete them, or --dry-run to list them."
        )
    _print_plan(going, runs)
    click.confirm("Delete them?", abort=True, err=True)


def _print_plan(going: Sequence[Doomed], runs: Sequence[Sized]) -> None:
    out = console()
    for line in plan_lines(going, runs, clock.wall_ns()):
        out.print(line, no_wrap=True, overflow="crop")


def _rules(older_than: float | None, keep: int | None, max_size: int | None) -> RetentionRules:
    if older_than is None and keep is None and max_size is None:
        return configured_rules(config.load())
    return rules_of(older_than, keep, max_size)


def _json(going: Sequence[Doomed], runs: Sequence[Sized], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "bytes": sum(one.bytes for one in going),
        "bytes_before": sum(one.bytes for one in runs),
        "runs": [
            {
                "id": one.entry.id,
                "name": one.entry.manifest.name,
                "started_at": one.entry.manifest.started_at,
                "bytes": one.bytes,
                "why": one.why,
            }
            for one in going
        ],
    }


@click.command("clean")
@click.option("--all", "everything", is_flag=True, help="Include the replays of all projects.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted; delete nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@json_option
@store_option
def clean_command(
    *, everything: bool, dry_run: bool, yes: bool, as_json: bool, store: Path | None
) -> None:
    """Delete the replays of this project, except running, kept and golden ones.

    \b
    playhead clean --dry-run
    playhead clean --yes
    """
    home = home_to_read(store)
    project = None if everything or store is not None else str(project_of(Path.cwd()))
    going = _replays(home, project)
    if going and not dry_run:
        if not yes:
            _ask(going, _sized(going))
        clear_rubbish(home)
        going = list(remove(home, counted(going, "Deleting")))
    if as_json:
        total = sum(one.bytes for one in going)
        ids = [one.entry.id for one in going]
        print_json({"dry_run": dry_run, "bytes": total, "runs": ids})
    elif dry_run:
        _print_plan(going, _sized(going))
    else:
        click.echo(f"Deleted {weight(going)}.")


def _sized(going: Sequence[Doomed]) -> list[Sized]:
    return [Sized(entry=one.entry, bytes=one.bytes) for one in going]


def _replays(home: Path, project: str | None) -> list[Doomed]:
    """Oldest first."""
    found = [
        one
        for one in Library(home).entries(Filter(project=project))
        if one.manifest.replay_of is not None and not is_safe(one)
    ]
    weighed = counted(found[::-1], "Weighing")
    return [Doomed(entry=one, bytes=size_of(one.path), why="a replay") for one in weighed]


_KNOWN = {"older_than", "keep", "max_size", "auto"}


def configured_rules(settings: Settings) -> RetentionRules:
    """The rules of [retention]. UsageError: none is set. ConfigError: one is invalid."""
    section = settings.sections.get("retention", {})
    wrong = sorted(section.keys() - _KNOWN)
    if wrong:
        known = ", ".join(sorted(_KNOWN))
        raise ConfigError(f"{settings.source}: [retention] has {wrong[0]!r}; expected {known}.")
    try:
        older = (
            Duration().convert(section["older_than"], None, None)
            if "older_than" in section
            else None
        )
        size = Size().convert(section["max_size"], None, None) if "max_size" in section else None
        keep = (
            click.IntRange(min=0).convert(section["keep"], None, None)
            if "keep" in section
            else None
        )
    except click.BadParameter as error:
        raise ConfigError(f"{settings.source}: [retention]: {error.message}") from None
    if older is None and size is None and keep is None:
        raise UsageError(
            "No retention rule is set. Use --older-than 30d, --keep 100 or --max-size 5GB, "
            "or set them under [retention] in playhead.toml."
        )
    return rules_of(older, keep, size)


def rules_of(older_than_s: float | None, keep: int | None, max_size: int | None) -> RetentionRules:
    older_ns = None if older_than_s is None else int(older_than_s * 1e9)
    return RetentionRules(older_than_ns=older_ns, keep=keep, max_bytes=max_size)
