"""The store of tapes: the user's runs, and the names by which a user selects one.

Knows folders, ids and permissions; does not know the contents of tapes.
"""

from __future__ import annotations

import os
import sys

from playhead import clock
from playhead.errors import RunNotFound, StoreError, UsageError
from playhead.host.later import Later, pattern
from playhead.host.private_files import create_part, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator, Mapping
    from pathlib import Path
else:
    pathlib = Later("pathlib")


MANIFEST = "manifest.json"
# In the folder of a replay: the plan for its processes.
PLAN = "replay.json"
# The file in which the processes of a replay report what they have printed: see `replay/print_order`.
PRINT_TURNS = ".printed"
# The connections that servers of a replay have answered: see `replay/answered_connections`.
ANSWERED_CONNECTIONS = ".answered"
_RUNS = "runs"
_KEY = "redact.key"
_LARGEST_KEY = 4096
_CHANGED = "changed"
_ID = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LAST = pattern(r"last(?:~(\d+))?")
# A folder that an earlier run was moved to (`force`): kept, listed on request, never resolved.
_ASIDE = pattern(r"\.old\.\d{8}T\d{6}(?:\.\d+)?$")


def default_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return `PLAYHEAD_HOME`, else the user's data folder. It is outside every workspace on purpose: an agent that
    greps its own tree must not find its own tapes.
    """
    if home := environ.get("PLAYHEAD_HOME"):
        return pathlib.Path(home).expanduser().absolute()
    if data := environ.get("XDG_DATA_HOME"):
        return pathlib.Path(data) / "playhead"
    if sys.platform == "darwin":
        return pathlib.Path.home() / "Library" / "Application Support" / "playhead"
    return pathlib.Path.home() / ".local" / "share" / "playhead"


def open_store(home: Path) -> Path:
    """Create the store if necessary, readable by its owner alone, and ignored by git inside a work tree.

    A folder that existed before keeps its permissions.
    """
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        is_ours = not home.exists()
        home.mkdir(mode=0o700, exist_ok=True)
        (home / _RUNS).mkdir(mode=0o700, exist_ok=True)
        ignore = home / ".gitignore"
        if not ignore.exists() and _in_work_tree(home):
            _write_private(
                ignore,
                (
                    "*\n" if is_ours else f"/{_RUNS}/\n/{_CHANGED}/\n/{_KEY}*\n/library.db*\n"
                ).encode(),
            )
    except OSError as error:
        raise StoreError(
            f"The store {home} cannot be used ({error.strerror or error}). "
            "Name another with --store DIR or PLAYHEAD_HOME."
        ) from error
    return home


def _in_work_tree(home: Path) -> bool:
    return any((above / ".git").exists() for above in home.resolve().parents)


def redaction_key(home: Path | str) -> bytes:
    """Return the store's own secret: equal secrets get equal placeholders in all its tapes."""
    return private_key(home, _KEY)


def private_key(home: Path | str, name: str) -> bytes:
    """Return 32 random bytes from a file of the store, created when they are first needed."""
    path = os.path.join(home, name)
    try:
        key = _content(path)
        if len(key) >= 32:
            return key
        os.unlink(path)  # cut short: not a usable key
    except FileNotFoundError:
        key = b""
    key = clock.urandom(32)
    fd, part = create_part(path)
    with open(fd, "wb") as file:
        file.write(key)
    try:
        os.link(part, path)
    except FileExistsError:
        key = _content(path)  # another process was first: use its key
    except OSError:
        os.replace(part, path)  # a file system without links
        return key
    os.unlink(part)
    return key


def _content(path: str) -> bytes:
    return read_regular(path, _LARGEST_KEY)


def _write_private(path: Path | str, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(content)


def new_run(home: Path, run_id: str | None, at_wall_ns: int) -> tuple[str, Path]:
    """Create a new folder for a run; without an id, generate one. FileExistsError: the id is taken."""
    if run_id is not None:
        path = home / _RUNS / checked_id(run_id)
        path.mkdir(mode=0o700)
        return run_id, path
    for _ in range(64):
        made = clock.new_run_id(at_wall_ns)
        path = home / _RUNS / made
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return made, path
    raise StoreError(f"No free run id found in {home}.")


def can_be_id(text: str) -> bool:
    return bool(_ID.fullmatch(text)) and not _ASIDE.search(text) and not _LAST.fullmatch(text)


def checked_id(run_id: str) -> str:
    if not can_be_id(run_id):
        raise UsageError(
            f"{run_id!r} cannot be a run id: letters, digits, '.', '_' and '-', at most 128 of them."
        )
    return run_id


def move_aside(path: Path, at_wall_ns: int) -> Path:
    """Rename `NAME` to `NAME.old.TIMESTAMP`. Never deletes."""
    target = path.with_name(f"{path.name}.old.{clock.stamp(at_wall_ns)}")
    again = 1
    while target.exists():
        again += 1
        target = path.with_name(f"{path.name}.old.{clock.stamp(at_wall_ns)}.{again}")
    os.rename(path, target)
    return target


def run_ids(home: Path) -> list[str]:
    """Return all runs of the store, newest first."""
    try:
        with os.scandir(home / _RUNS) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"The store {home} cannot be read ({error.strerror}).") from error
    return sorted((name for name in names if not _ASIDE.search(name)), reverse=True)


def announce(run: Path) -> None:
    """Announce that a finished run of the store has changed: the catalogue reads only runs again that are new, in
    progress, or announced.
    """
    if run.parent.name != _RUNS:
        return  # not in a store
    folder = run.parent.parent / _CHANGED
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        os.close(
            os.open(
                folder / run.name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
        )
        os.utime(folder / run.name)
    except OSError:
        return  # the store cannot be written, so it has no catalogue


def announced(home: Path) -> dict[str, int]:
    """Return the runs that were announced, and when."""
    try:
        names = os.listdir(home / _CHANGED)
    except OSError:
        return {}
    found = {}
    for name in names:
        try:
            found[name] = os.stat(home / _CHANGED / name, follow_symlinks=False).st_mtime_ns
        except OSError:
            continue  # another process has removed it
    return found


def heard(home: Path, announcements: Mapping[str, int]) -> None:
    """Remove these announcements, except for those that were made again meanwhile."""
    for run_id, at in announcements.items():
        path = home / _CHANGED / run_id
        try:
            if os.stat(path, follow_symlinks=False).st_mtime_ns == at:
                path.unlink()
        except OSError:
            # another process was faster, or it cannot be removed: then the run is read once more
            continue


def run_path(home: Path, run_id: str) -> Path:
    return home / _RUNS / checked_id(run_id)


def runs(home: Path) -> Iterator[Path]:
    for run_id in run_ids(home):
        yield home / _RUNS / run_id


def find_run(home: Path, asked: str, *, among: list[str] | None = None) -> Path:
    """Return the folder of the run that the user selects: by id, unique prefix, `last`, `last~2`, or a path.

    `among`: the ids to choose from, newest first (the current project's); all of the store if None.
    """
    path = pathlib.Path(asked).expanduser()
    if (os.sep in asked or asked.startswith((".", "~"))) or path.is_dir():
        return _run_at(path, asked)
    ids = run_ids(home) if among is None else among
    if last := _LAST.fullmatch(asked):
        back = int(last.group(1) or 0)
        if back < len(ids):
            return home / _RUNS / ids[back]
        raise RunNotFound(
            f"There is no run {asked!r}: {_number_of_runs(len(ids))} recorded here. "
            "`playhead list` shows them, `--all` those of other projects too.",
            asked=asked,
            candidates=ids[:5],
        )
    everything = run_ids(home)
    if asked in everything:
        return home / _RUNS / asked
    found = [one for one in everything if one.startswith(asked)]
    if len(found) == 1:
        return home / _RUNS / found[0]
    if found:
        raise RunNotFound(
            f"{asked!r} is the beginning of {len(found)} runs: {', '.join(found[:5])}… Type more of it.",
            asked=asked,
            candidates=found,
        )
    raise RunNotFound(
        f"No run is called {asked!r} in {home}. `playhead list --all` lists all runs.",
        asked=asked,
        candidates=ids[:5],
    )


def _number_of_runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count:,} runs are"


def _run_at(path: Path, asked: str) -> Path:
    if (path / MANIFEST).exists() or any(path.glob("tape*")):
        return path
    if not path.exists():
        raise RunNotFound(f"There is no file or folder {asked}.", asked=asked)
    raise RunNotFound(
        f"{asked} holds no run: expected a folder with {MANIFEST} and tape-*.jsonl.", asked=asked
    )
