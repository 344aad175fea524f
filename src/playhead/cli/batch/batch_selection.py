"""Select the tapes of a batch from ids, filters and paths. Knows how they are written."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from playhead import clock, config
from playhead.cli.common import Duration, home_to_read, tag_of
from playhead.cli.progress_line import tally
from playhead.cli.run_names import find_run_anywhere
from playhead.errors import PlayheadError, RunNotFound, TapeError, UsageError
from playhead.host.project import project_of
from playhead.library.catalogue import Entry, Filter, Library
from playhead.library.run_rows import head_of, is_golden, single_tapes
from playhead.tape.layout import SINGLE_SUFFIX
from playhead.tape.manifest import read_manifest
from playhead.tape.store import MANIFEST
from playhead.views.text.safe import one_line

FILTERS = ("tag", "name", "status", "since")
_AT_ONCE = 8
_STATUSES = ("ok", "failed", "interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A tape of a batch. `key` is unique in the batch; `id` is the id of the recorded run.

    `is_remote`: the tape is in the shared store, and `path` is its place in the cache.
    """

    key: str
    id: str
    name: str
    path: Path
    is_remote: bool = False


def select(store: Path | None, words: tuple[str, ...], remote: str | None = None) -> list[Target]:
    """Runs that match all filters (`tag:env=ci status:ok`), plus those named by id or path.

    `remote`: the filters select runs of this shared store; an empty text means the configured one.
    """
    filters = [word for word in words if word.partition(":")[0] in FILTERS and ":" in word]
    found: dict[Path, Target] = {}
    if filters:
        wanted = _filter_of(store, filters)
        chosen = _filtered(store, wanted) if remote is None else _shared(store, wanted, remote)
        found.update((one.path, one) for one in chosen)
    for word in words:
        if word not in filters:
            found.update((one.path, one) for one in _named(store, word))
    if not found:
        where = "; `--remote` selects runs of the shared store" if config.load().remote else ""
        raise RunNotFound(
            f"No run matches {' '.join(words)}. `playhead list --all` lists all runs{where}.",
            asked=" ".join(words),
        )
    return list(found.values())


def shard_of(targets: list[Target], shard: tuple[int, int]) -> list[Target]:
    """Part i of n, by a hash of the id: machines agree without communicating."""
    index, count = shard
    return [one for one in targets if _number(one.id) % count == index - 1]


def _number(run_id: str) -> int:
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:8], "big")


def _filter_of(store: Path | None, words: list[str]) -> Filter:
    asked: dict[str, list[str]] = {name: [] for name in FILTERS}
    for word in words:
        name, _, value = word.partition(":")
        asked[name].append(value)
    wrong = [one for one in asked["status"] if one not in _STATUSES]
    if wrong:
        raise UsageError(f"status:{wrong[0]} is not a status; expected {', '.join(_STATUSES)}.")
    if len(asked["name"]) > 1:
        raise UsageError("Use name:GLOB only once: a run has one name.")
    since = [Duration().convert(one, None, None) for one in asked["since"]]
    return Filter(
        project=None if store is not None else str(project_of(Path.cwd())),
        statuses=frozenset(asked["status"]),
        tags=tuple(tag_of(one) for one in asked["tag"]),
        name=asked["name"][0] if asked["name"] else None,
        since_ns=clock.wall_ns() - int(min(since) * 1e9) if since else None,
    )


def _filtered(store: Path | None, wanted: Filter) -> list[Target]:
    entries = Library(home_to_read(store)).entries(wanted)
    return [
        Target(key=one.id, id=one.id, name=one.manifest.name, path=one.path)
        for one in entries
        if one.status != "running" and _is_original(one)
    ]


def _shared(store: Path | None, wanted: Filter, remote: str) -> list[Target]:
    """Runs of the shared store, of all projects: paths of other machines mean nothing here."""
    from playhead.cli.shared_store import shared_store
    from playhead.cli.sharing.remote_list import entries_of
    from playhead.remote.remote_runs import remote_runs
    from playhead.remote.run_cache import cached_path

    home, there = home_to_read(store), shared_store(remote or None)
    runs, problems = remote_runs(there, home)
    for problem in problems:
        click.echo(f"playhead: not selected: {one_line(problem, 300)}", err=True)
    return [
        Target(
            key=one.id,
            id=one.id,
            name=one.manifest.name,
            path=cached_path(one.id, there, home),
            is_remote=True,
        )
        for one in entries_of(runs, wanted, home)
        if _is_original(one)
    ]


def _is_original(one: Entry) -> bool:
    return one.manifest.replay_of is None or is_golden(one.manifest)


def fetch_all(store: Path | None, targets: Sequence[Target], remote: str) -> None:
    """Fetch the selected tapes of the shared store into the cache. A tape that cannot be fetched fails its replay."""
    from playhead.cli.shared_store import cache_limit, shared_store
    from playhead.remote.run_cache import fetch

    home, there, limit = home_to_read(store), shared_store(remote or None), cache_limit()

    def one(target: Target) -> None:
        try:
            fetch(target.id, there, home, limit)
        except (TapeError, RunNotFound) as error:
            click.echo(f"playhead: {one_line(str(error), 300)}", err=True)

    wanted = [target for target in targets if target.is_remote]
    with tally("Fetching tapes") as tell, ThreadPoolExecutor(_AT_ONCE) as pool:
        for number, _ in enumerate(pool.map(one, wanted), 1):
            if tell is not None:
                tell(number, len(wanted))


def _named(store: Path | None, word: str) -> list[Target]:
    path = Path(word).expanduser()
    pattern = any(one in word for one in "*?[")
    if not pattern and not path.exists() and not word.endswith(SINGLE_SUFFIX):
        return [_run(find_run_anywhere(store, word), own=True)]
    places = sorted(glob.glob(str(path), recursive=True)) if pattern else [str(path)]  # noqa: PTH207  Path.glob takes no absolute pattern
    found = [target for place in places for target in _at(Path(place))]
    if not found:
        raise RunNotFound(
            f"No tape found at {word}. Expected a *{SINGLE_SUFFIX} file, a folder of a run, or a folder of such files.",
            asked=word,
        )
    return found


def _at(path: Path) -> list[Target]:
    if path.is_file():
        return [_single(path)] if path.name.endswith(SINGLE_SUFFIX) else []
    if not path.is_dir():
        return []
    if (path / MANIFEST).exists():
        return [_run(path)]
    return [_single(one) for one in single_tapes(path)]


def _single(path: Path) -> Target:
    name = path.name.removesuffix(SINGLE_SUFFIX)
    said = head_of(path).get("run")
    return Target(
        key=_shown(path),
        id=said if isinstance(said, str) else name,
        name=name,
        path=path.resolve(),
    )


def _run(path: Path, *, own: bool = False) -> Target:
    try:
        name = read_manifest(path).name
    except PlayheadError:
        name = path.name  # the replay reports the problem
    key = path.name if own else _shown(path)
    return Target(key=key, id=path.name, name=name, path=path.resolve())


def _shown(path: Path) -> str:
    """Relative to the current folder, where it is inside it."""
    whole = path.resolve()
    here = Path.cwd().resolve()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)


class Shard(click.ParamType[tuple[int, int]]):
    """`2/5`: the second of five parts."""

    name = "i/n"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        left, _, right = str(value).partition("/")
        if not (left.isdigit() and right.isdigit() and 1 <= int(left) <= int(right)):
            self.fail(f"{value!r} is not a part; expected i/n with i from 1 to n: 2/5.", param, ctx)
        return int(left), int(right)


def cores() -> int:
    """The default number of parallel replays."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
