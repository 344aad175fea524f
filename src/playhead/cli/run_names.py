"""How a user names a RUN: by id, by a prefix of one, as `last` or `last~2`, by its name, or by its path. Knows click.

Without a RUN every verb takes the newest run of this project.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from playhead import clock
from playhead.cli.common import home_of, home_to_read
from playhead.errors import PlayheadError, RunNotFound
from playhead.host.project import project_of
from playhead.tape import store as stores
from playhead.tape.layout import BUNDLE_SUFFIX, SINGLE_SUFFIX
from playhead.views.text import words
from playhead.views.text.safe import one_line

if TYPE_CHECKING:
    from playhead.library.catalogue import Entry

F = TypeVar("F", bound=Callable[..., Any])

_MOST_COMPLETIONS = 50
_LAST_IMPORT = "last-import.json"
_WORD = re.compile(r"[\w.@+-]+")


def run_argument(function: F) -> F:
    """Add RUN, which is `last` if it is left out."""
    return click.argument(
        "run", metavar="[RUN]", required=False, default="last", shell_complete=_complete
    )(function)


def named_run_argument(function: F) -> F:
    """Add RUN to a verb with a further argument, where a RUN that is left out could not be told from it."""
    return click.argument("run", metavar="RUN", shell_complete=_complete)(function)


def runs_argument(function: F) -> F:
    return click.argument("runs", metavar="[RUN]...", nargs=-1, shell_complete=_complete)(function)


class RunThenCommand(click.Command):
    """A verb with the arguments `[RUN] [-- CMD...]`. Words after `--` are never read as the RUN."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            given, _, _ = self.make_parser(ctx).parse_args(args[: args.index("--")])
            if not isinstance(given.get("run"), str):
                args = ["last", *args]
        return super().parse_args(ctx, args)


def find_run(store: Path | None, asked: str) -> Path:
    """The folder of run `asked`. `last` means the last of this project, unless --store is given."""
    home = home_to_read(store)
    last = re.fullmatch(r"last(?:~(\d+))?", asked)
    if last is None:
        try:
            return stores.find_run(home, asked)
        except RunNotFound:
            project = _project(store)
            newest = _newest_of_name(home, project, asked)
            if newest is not None:
                return newest
            if project is not None and (other := _run_of_another_project(home, asked)):
                raise RunNotFound(
                    f"No run of this project is named {asked!r}. The newest run of that name in another "
                    f"project is {other}: use this id.",
                    asked=asked,
                    candidates=[other],
                ) from None
            raise
    from playhead.library.catalogue import Filter, Library  # an id is found without the catalogue

    project = _project(store)
    # `last` never means a replay.
    entries = Library(home).entries(Filter(project=project, replays=False))
    count = int(last.group(1) or 0) + 1
    ids = _by_arrival(home, project, list(islice(entries, count)))[:count]
    if not ids and project is not None and (elsewhere := stores.run_ids(home)):
        raise RunNotFound(
            f"This project has no recorded runs. {home} has {len(elsewhere)} of other projects: "
            "`playhead list --all` shows them.",
            asked=asked,
            candidates=elsewhere[:5],
        )
    return stores.find_run(home, asked, among=ids)


def note_import(home: Path, runs: Sequence[str], now_ns: int) -> None:
    """Remember which runs were imported last: `last` means the newest of them, although others started later."""
    if runs:
        with contextlib.suppress(OSError):  # only a convenience is lost
            (home / _LAST_IMPORT).write_text(json.dumps({"at_ns": now_ns, "runs": list(runs)}))


def _by_arrival(home: Path, project: str | None, newest: Sequence[Entry]) -> list[str]:
    """Return the ids of these runs and of those of the last import, by the time when they came into the store."""
    from playhead.library.catalogue import entry_at

    try:
        said = json.loads((home / _LAST_IMPORT).read_bytes())
        at_ns, names = int(said["at_ns"]), [str(one) for one in said["runs"]]
    except (OSError, ValueError, KeyError, TypeError):
        return [entry.id for entry in newest]
    there = [entry_at(path) for name in names if (path := stores.run_path(home, name)).is_dir()]
    imported = [one for one in there if project in (None, one.manifest.project)]
    found = {entry.id: (entry.manifest.started_ns, 0) for entry in newest}
    found |= {entry.id: (at_ns, entry.manifest.started_ns) for entry in imported}
    return sorted(found, key=lambda one: found[one], reverse=True)


def _project(store: Path | None) -> str | None:
    """The project whose runs are meant; None, all runs, where --store names the folder of tapes."""
    return None if store is not None else str(project_of(Path.cwd()))


def _newest_of_name(home: Path, project: str | None, name: str) -> Path | None:
    """The newest run of this name, and a line on stderr if there are several."""
    from playhead.library.catalogue import Filter, Library

    wanted = Filter(project=project, name=_literally(name), replays=False)
    found = list(Library(home).entries(wanted))
    if len(found) > 1:
        click.echo(
            f"playhead: {len(found)} runs are named {one_line(name, 60)}; this is the newest, {found[0].id}.",
            err=True,
        )
    return found[0].path if found else None


def _run_of_another_project(home: Path, name: str) -> str | None:
    from playhead.library.catalogue import Filter, Library

    found = Library(home).entries(Filter(name=_literally(name), replays=False))
    return next((entry.id for entry in found), None)


def _literally(name: str) -> str:
    """Escape wildcards with square brackets: a name may contain some of its own."""
    return re.sub(r"([*?[])", r"[\1]", name)


def find_run_anywhere(store: Path | None, asked: str, *, whole: bool = True) -> Path:
    """Like `find_run`; a run that only the shared store has is fetched into the cache. `whole`: see `fetched_run`."""
    try:
        return find_run(store, asked)
    except RunNotFound:
        from playhead import config

        # No network, and no imports, for users without a shared store, and for paths.
        if store is not None or not stores.can_be_id(asked) or not config.load().remote:
            raise
        from playhead.cli.shared_store import fetched_run

        found = fetched_run(store, asked, whole=whole)
        if found is None:
            raise
        return found


def find_tape(store: Path | None, asked: str, *, whole: bool = True) -> Path:
    """The run's folder; a single-file tape or a bundle is unpacked into a temporary one."""
    source = Path(asked).expanduser()
    is_named = asked.endswith((SINGLE_SUFFIX, BUNDLE_SUFFIX))
    if not is_named and not source.is_file():
        return find_run_anywhere(store, asked, whole=whole)
    from playhead.tape.origin import is_own_file, mark_as_own
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
    is_own = is_own_file(source)
    found = folder_of(source.resolve(), folder / source.name.removesuffix(SINGLE_SUFFIX))
    if is_own and found.parent == folder:
        mark_as_own(found)
    return found


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Tab completion of RUN: `last`, matching names and ids, with a description for shells that show one."""
    return list(islice(_candidates(ctx.params.get("store"), incomplete), _MOST_COMPLETIONS))


def _candidates(store: Any, begun: str) -> Iterator[CompletionItem]:
    from playhead.library.catalogue import Filter, Library

    if "last".startswith(begun):
        yield CompletionItem("last", help="the newest run of this project")
    now = clock.wall_ns()
    try:
        home = home_of(Path(store) if store else None)
        names: set[str] = set()
        for entry in Library(home).entries(Filter()):
            name = entry.manifest.name
            # Only names that a shell takes as one word.
            if begun and name.startswith(begun) and _WORD.fullmatch(name) and name not in names:
                names.add(name)
                yield CompletionItem(name, help="the newest run of this name")
            if entry.id.startswith(begun):
                age = words.age(entry.manifest.started_ns, now)
                said = f"{entry.manifest.name}, {entry.status}, {age} ago"
                yield CompletionItem(entry.id, help=one_line(said, 60))
    except PlayheadError:
        return  # an error message would break the command line that is being typed
