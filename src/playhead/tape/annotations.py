"""Name, tags, note, comments and keep flag of a run, changed after it was recorded. Knows one JSON file."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.host.private_files import read_regular, replace_file
from playhead.tape.store import announce

FILE = "marks.json"
_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment of a person on a run. `text`: None if the comment was removed; the id stays, so that a copy of the
    run on another machine does not bring the text back.
    """

    id: str
    by: str
    at: str
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """The annotations of a run. None: not annotated. A tag that is None was removed."""

    name: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    note: str | None = None
    keep: bool | None = None
    # From a program that joined the run; see `playhead.record(details=…)`.
    details: Mapping[str, Any] = field(default_factory=dict)
    comments: tuple[Comment, ...] = ()
    # Who changed what and when: {"tags.env": {"by": "Ada", "at": "2026-11-16T18:08:04Z"}, "note": …}.
    authors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


NONE = Annotations()


def read_annotations(run: Path) -> Annotations:
    """Read the annotations; empty if the file is missing or invalid: they are only remarks about a run."""
    try:
        return decode_annotations(read_regular(f"{run}/{FILE}", _LARGEST))
    except OSError:
        return NONE


def decode_annotations(raw: bytes) -> Annotations:
    """Decode the content of the file; empty if it is invalid."""
    try:
        return annotations_of(json.loads(raw))
    except (ValueError, RecursionError):
        return NONE


def annotations_of(members: Any) -> Annotations:
    """Return the annotations in the decoded file; invalid members are left out."""
    if not isinstance(members, dict):
        return NONE
    name, tags = members.get("name"), members.get("tags")
    note, keep = members.get("note"), members.get("keep")
    details = members.get("details")
    return Annotations(
        name=name if isinstance(name, str) else None,
        tags={
            key: value
            for key, value in (tags.items() if isinstance(tags, dict) else ())
            if value is None or isinstance(value, str)
        },
        note=note if isinstance(note, str) else None,
        keep=keep if isinstance(keep, bool) else None,
        details=details if isinstance(details, dict) else {},
        comments=_comments(members.get("comments")),
        authors=_authors(members.get("authors")),
    )


def _comments(found: Any) -> tuple[Comment, ...]:
    return tuple(
        Comment(id=one["id"], by=one["by"], at=one["at"], text=one.get("text"))
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, dict)
        and all(isinstance(one.get(name), str) for name in ("id", "by", "at"))
        and isinstance(one.get("text"), (str, type(None)))
    )


def _authors(found: Any) -> dict[str, dict[str, str]]:
    return {
        what: {"by": one["by"], "at": one["at"]}
        for what, one in (found.items() if isinstance(found, dict) else ())
        if isinstance(one, dict)
        and isinstance(one.get("by"), str)
        and isinstance(one.get("at"), str)
    }


def annotate(run: Path, *, by: str | None = None, **said: Any) -> Annotations:
    """Annotate a run: `annotate(run, keep=True)`, `annotate(run, tags={"env": "ci"}, by="Ada")`. Earlier annotations
    stay; tags are added to the existing ones, and None removes a tag. `by`: the person, who is noted as the author.
    """
    with _alone(run):
        before = read_annotations(run)
        if by is not None:
            names = [one for one in said if one != "tags"]
            names += [f"tags.{key}" for key in said.get("tags", ())]
            said["authors"] = {**before.authors, **_noted(before, by, names)}
        if "tags" in said:
            said["tags"] = {**before.tags, **said["tags"]}
        if "details" in said:
            said["details"] = {**before.details, **said["details"]}
        after = replace(before, **said)
        _write(run, after)
    announce(run)
    return after


def _noted(before: Annotations, by: str, names: list[str]) -> dict[str, dict[str, str]]:
    """Return the author and time of these changes. A change is later than the one that it replaces, even if that was
    made on a machine whose clock is ahead: the later one wins when two copies are joined.
    """
    at = clock.iso(clock.wall_ns())
    latest = max((_time_of(before, name) for name in names), default="")
    if latest >= at:
        with suppress(ValueError, OverflowError):  # not a time, or the last one that there is
            after = datetime.fromisoformat(latest.rstrip("Z")) + timedelta(microseconds=1)
            at = after.isoformat(timespec="microseconds") + "Z"
    return {name: {"by": by, "at": at} for name in names}


def change_comments(
    run: Path, change: Callable[[tuple[Comment, ...]], tuple[Comment, ...]]
) -> Annotations:
    """Replace the comments of a run. ValueError: the file would be too large to be read again."""
    with _alone(run):
        before = read_annotations(run)
        after = replace(before, comments=change(before.comments))
        if len(encode_annotations(after)) > _LARGEST:
            raise ValueError(f"the comments of a run have at most {_LARGEST:,} bytes")
        _write(run, after)
    announce(run)
    return after


def joined(mine: tuple[Comment, ...], theirs: tuple[Comment, ...]) -> tuple[Comment, ...]:
    """Return the comments of both copies of a run, oldest first. A comment that one copy removed stays removed."""
    found: dict[str, Comment] = {}
    for one in (*mine, *theirs):
        there = found.get(one.id)
        if there is None or one.text is None:
            found[one.id] = one
    return tuple(sorted(found.values(), key=lambda one: (one.at, one.id)))


def joined_marks(mine: Annotations, theirs: Annotations) -> Annotations:
    """Return the annotations of two copies of a run. Each name, note, tag and keep flag is the one that was set last;
    one without a time is the oldest, and of two equal times mine counts.
    """
    told: dict[str, Any] = {}
    authors = {**theirs.authors, **mine.authors}

    def is_theirs(what: str, own: object, other: object) -> bool:
        if other is _ABSENT:
            return False
        if own is not _ABSENT and _time_of(mine, what) >= _time_of(theirs, what):
            return False
        if what in theirs.authors:
            authors[what] = theirs.authors[what]
        return True

    for what in ("name", "note", "keep"):
        own, other = getattr(mine, what), getattr(theirs, what)
        absent = [_ABSENT if one is None else one for one in (own, other)]
        told[what] = other if is_theirs(what, *absent) else own
    later = {
        key: value
        for key, value in theirs.tags.items()
        if is_theirs(f"tags.{key}", mine.tags.get(key, _ABSENT), value)
    }
    tags = {**mine.tags, **later}
    details = {**theirs.details, **mine.details}
    comments = joined(mine.comments, theirs.comments)
    return Annotations(**told, tags=tags, details=details, comments=comments, authors=authors)


_ABSENT = object()


def _time_of(marks: Annotations, what: str) -> str:
    return marks.authors.get(what, {}).get("at", "")


def join_annotations(run: Path, theirs: Annotations) -> None:
    """Add the annotations of another copy of the run to this one; see `joined_marks`."""
    with _alone(run):
        before = read_annotations(run)
        after = joined_marks(before, theirs)
        if after == before or len(encode_annotations(after)) > _LARGEST:
            return
        _write(run, after)
    announce(run)


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """Lock the file, so that two concurrent changes are both kept."""
    fd = os.open(run, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _write(run: Path, marks: Annotations) -> None:
    replace_file(run / FILE, encode_annotations(marks))


def encode_annotations(marks: Annotations) -> bytes:
    text = json.dumps(asdict(marks), ensure_ascii=False, indent=1)
    return text.encode("utf-8", "backslashreplace") + b"\n"
