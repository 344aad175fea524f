"""Tag, annotate, comment on, rename, keep and delete runs, or make one golden. Knows a store by its folder.

Every change is written to the run's folder; the catalogue notices it on its next scan.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from playhead import clock
from playhead.errors import RunNotFound, StoreError, UsageError
from playhead.library.catalogue import Entry, Filter, Library, entry_at
from playhead.library.retention import Doomed, remove_all, size_of
from playhead.library.run_rows import SUPERSEDES, TAG, comments_of, is_golden
from playhead.tape.annotations import Comment, annotate, change_comments, joined
from playhead.tape.manifest import Manifest, read_manifest, write_manifest
from playhead.tape.store import run_path

LONGEST_NOTE = 100_000
LONGEST_COMMENT = 16_000
_LONGEST_TAG = 1000


def set_tags(
    home: Path, run_id: str, tags: Mapping[str, str], *, by: str | None = None
) -> dict[str, str]:
    """Replace all tags of a run. Return its tags. `by`: the person who does it."""
    run = _run(home, run_id)
    before = read_manifest(run).tags
    out = {key: None for key in before if key not in tags}
    new = {key: value for key, value in tags.items() if before.get(key) != value}
    return change_tags(run, {**out, **new}, by=by)


def set_note(home: Path, run_id: str, note: str, *, by: str | None = None) -> None:
    """Set the note of a run. An empty note removes it."""
    write_note(_run(home, run_id), note, by=by)


def set_keep(home: Path, run_id: str, keep: bool, *, by: str | None = None) -> None:  # noqa: FBT001  the value itself
    """Set or remove the mark that keeps a run from being pruned."""
    keep_run(_run(home, run_id), keep, by=by)


def rename(home: Path, run_id: str, name: str, *, by: str | None = None) -> None:
    """Give a run a new name; its id stays."""
    rename_run(_run(home, run_id), name, by=by)


def change_tags(
    run: Path, tags: Mapping[str, str | None], *, by: str | None = None
) -> dict[str, str]:
    """Add or replace these tags; a value of None removes the tag. Return the tags of the run."""
    for key, value in tags.items():
        if not key or "=" in key or max(len(key), len(value or "")) > _LONGEST_TAG:
            raise UsageError(f"{key[:80]!r} cannot be a tag; expected K=V, such as env=ci.")
    _mark(run, by=by, tags=dict(tags))
    return dict(read_manifest(run).tags)


def change_tags_by_words(
    run: Path, words: Sequence[str], remove: Sequence[str] = (), *, by: str | None = None
) -> dict[str, str]:
    """Add the tags that a person typed (`env=ci`, `reviewed`) and remove others. Return the tags of the run.

    A tag without a value gets the value true. UsageError: a tag to remove does not exist.
    """
    before = read_manifest(run).tags
    for key in remove:
        if key not in before:
            names = ", ".join(before) or "none"
            raise UsageError(f"{run.name} has no tag {key!r}. Its tags: {names}.")
    changed: dict[str, str | None] = dict.fromkeys(remove)
    for word in words:
        key, equals, value = word.partition("=")
        changed[key] = value if equals else "true"
    return change_tags(run, changed, by=by) if changed else dict(before)


def write_note(run: Path, note: str, *, by: str | None = None) -> None:
    if len(note) > LONGEST_NOTE:
        raise UsageError(
            f"The note has {len(note):,} characters; at most {LONGEST_NOTE:,} are kept."
        )
    _mark(run, by=by, note=note)


def keep_run(run: Path, keep: bool, *, by: str | None = None) -> None:  # noqa: FBT001  the value itself
    _mark(run, by=by, keep=keep)


def rename_run(run: Path, name: str, *, by: str | None = None) -> None:
    if not name.strip() or len(name) > _LONGEST_TAG:
        raise UsageError(f"A run needs a name, of at most {_LONGEST_TAG:,} characters.")
    _mark(run, by=by, name=name.strip())


def comment(run: Path, text: str, *, by: str) -> Comment:
    """Add a comment of that person. UsageError: it is empty or too long, or the run has too many."""
    text = text.strip()
    if not text or len(text) > LONGEST_COMMENT:
        raise UsageError(f"A comment needs a text, of at most {LONGEST_COMMENT:,} characters.")
    made = Comment(id=clock.urandom(6).hex(), by=by[:200], at=clock.iso(clock.wall_ns()), text=text)
    _change_comments(run, lambda there: joined(there, (made,)))
    return made


def remove_comment(run: Path, comment_id: str) -> None:
    """Remove the text of a comment. UsageError: there is no such comment."""
    if comment_id not in {one["id"] for one in comments_of(read_manifest(run))}:
        raise UsageError(f"{run.name} has no comment {comment_id[:80]!r}.")
    _change_comments(
        run,
        lambda there: tuple(
            dataclasses.replace(one, text=None) if one.id == comment_id else one for one in there
        ),
    )


def _change_comments(
    run: Path, change: Callable[[tuple[Comment, ...]], tuple[Comment, ...]]
) -> None:
    try:
        change_comments(run, change)
    except ValueError as error:
        raise UsageError(f"{run.name} has too many comments: {error}.") from None
    except FileNotFoundError:
        raise RunNotFound(f"{run} is gone.", asked=run.name) from None
    except OSError as error:
        raise StoreError(f"{run} cannot be written ({error.strerror or error}).") from error


def remove(home: Path, run_id: str) -> int:
    """Delete a run, kept or not, and return its size in bytes. UsageError: the run is still in progress."""
    run = _run(home, run_id)
    entry = entry_at(run)
    if entry.status == "running":
        raise UsageError(f"{run_id} is still running: delete it when it has ended.")
    one = Doomed(entry=entry, bytes=size_of(run), why="asked for")
    return sum(gone.bytes for gone in remove_all(home, [one]))


def _run(home: Path, run_id: str) -> Path:
    run = run_path(home, run_id)
    if not run.is_dir():
        raise RunNotFound(f"No run is called {run_id!r} in {home}.", asked=run_id)
    return run


def _mark(run: Path, *, by: str | None, **said: object) -> None:
    try:
        annotate(run, by=by, **said)
    except FileNotFoundError:
        raise RunNotFound(f"{run} is gone.", asked=run.name) from None
    except OSError as error:
        raise StoreError(f"{run} cannot be written ({error.strerror or error}).") from error


def make_golden(home: Path, run: Path) -> list[str]:
    """Make this run the golden one of its kind. Return the ids of the runs that were golden before."""
    manifest = read_manifest(run)
    old = [entry for entry in _predecessors(home, manifest) if entry.path.name != run.name]
    named = [entry.id for entry in old] or ([manifest.replay_of] if manifest.replay_of else [])
    # Mark the new run first: if this is interrupted, there are two golden runs, never none.
    extra = {**manifest.extra, SUPERSEDES: named}
    write_manifest(run, dataclasses.replace(manifest, extra=extra))
    annotate(run, tags={TAG: "true"})
    for entry in old:
        annotate(entry.path, tags={TAG: None})
    return [entry.id for entry in old if is_golden(entry.manifest)]


def _predecessors(home: Path, manifest: Manifest) -> Iterator[Entry]:
    """Yield the golden runs of the same name and project, and the run that this is a replay of, if it is golden."""
    for entry in Library(home).entries(Filter()):
        theirs = entry.manifest
        if entry.problem is not None:
            continue
        alike = (theirs.name, theirs.project) == (manifest.name, manifest.project)
        if is_golden(theirs) and (alike or entry.id == manifest.replay_of):
            yield entry
