"""A folder tree as data: entries, the listing that stores a whole tree as bytes, and changes to it.

Paths are bytes relative to the workspace, with `/` between names: file names need not be text.
A listing is one record per entry, sorted by path:

    MODE SIZE MTIME_NS ID PATH NUL

`ID` names the content: 64 hexadecimal digits for a blob of the pool, `git:` and 40 digits for an object
of the repository, `link:` and the target in hexadecimal for a symbolic link, `hash:` and 64 digits for
content that is not stored (a secret), `none` for content that could not be read, `-` for a folder.
"""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from playhead.errors import TapeDamaged

FOLDER = "-"
UNREAD = "none"
_GIT = "git:"
_HASH = "hash:"
_LINK = "link:"


class FileEntry(NamedTuple):
    """A file, folder or symbolic link. `mode` includes the file type.

    A tuple and not a dataclass: a snapshot of 50,000 files creates 50,000 of them, and tuples are four times as
    fast.
    """

    mode: int
    size: int
    mtime_ns: int
    id: str

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_stored(self) -> bool:
        """Return whether the content of this entry can be restored."""
        return not (self.id == UNREAD or self.id.startswith(_HASH))

    @property
    def target(self) -> bytes:
        """Return the target of a symbolic link."""
        return bytes.fromhex(self.id.removeprefix(_LINK)) if self.is_link else b""

    @property
    def git_object(self) -> str | None:
        """Return the object of the repository that has the content. None: the pool has it."""
        return self.id.removeprefix(_GIT) if self.id.startswith(_GIT) else None

    def same_as(self, other: FileEntry | None) -> bool:
        """Return whether two entries restore to the same file; times do not count."""
        return other is not None and (self.mode, self.id) == (other.mode, other.id)


Tree = Mapping[bytes, FileEntry]


class Change(NamedTuple):
    """One path before and after a change. None: it did not exist."""

    path: bytes
    before: FileEntry | None
    after: FileEntry | None

    @property
    def is_touch(self) -> bool:
        """Return whether only the time of the file changed: two versions whose content is not stored may differ."""
        before, after = self.before, self.after
        return before is not None and before.same_as(after) and before.is_stored

    @property
    def how(self) -> str:
        if self.before is None:
            return "added"
        if self.after is None:
            return "deleted"
        if self.before.id == self.after.id:
            return "mode"
        return "modified"


def link_id(target: bytes) -> str:
    return f"{_LINK}{target.hex()}"


def hash_only(digest: str) -> str:
    return f"{_HASH}{digest}"


def git_id(sha1: str) -> str:
    return f"{_GIT}{sha1}"


def encode_listing(tree: Tree) -> bytes:
    return b"".join(
        b"%o %d %d %s %s\0" % (entry.mode, entry.size, entry.mtime_ns, entry.id.encode(), path)
        for path, entry in sorted(tree.items())
    )


def decode_listing(listing: bytes) -> dict[bytes, FileEntry]:
    """Decode a listing. TapeDamaged: the bytes are not a listing."""
    tree: dict[bytes, FileEntry] = {}
    try:
        for record in listing.split(b"\0")[:-1]:
            mode, size, mtime, name, path = record.split(b" ", 4)
            tree[checked_path(path)] = FileEntry(int(mode, 8), int(size), int(mtime), name.decode())
    except ValueError as error:
        raise TapeDamaged(f"The listing of a workspace cannot be read ({error}).") from None
    return tree


def checked_path(path: bytes) -> bytes:
    """Return the path if it stays inside the workspace: a tape may come from a stranger."""
    if (
        path.startswith(b"/")
        or b"\0" in path
        or any(n in (b"", b".", b"..") for n in path.split(b"/"))
    ):
        raise TapeDamaged(f"A workspace has a file named {path[:80]!r}, outside of it.")
    return path


def encode_changes(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """Encode changes for the tape."""
    return [
        {**_named(one.path), "before": _members(one.before), "after": _members(one.after)}
        for one in changes
    ]


def decode_changes(data: Any) -> list[Change]:
    """Decode changes. TapeDamaged: these are not changes."""
    try:
        return [
            Change(checked_path(_path(one)), _entry(one["before"]), _entry(one["after"]))
            for one in data
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise TapeDamaged(f"The file changes of a call cannot be read ({error!r}).") from None


def between(before: Tree, after: Tree) -> list[Change]:
    """Return the changes that turn one tree into the other; times do not count."""
    paths = sorted(before.keys() | after.keys())
    pairs = ((path, before.get(path), after.get(path)) for path in paths)
    return [
        Change(path, old, new)
        for path, old, new in pairs
        if not (old is not None and old.same_as(new))
    ]


def shown(path: bytes) -> str:
    """Return a path for people and for JSON: bytes that are not text are escaped."""
    return os.fsdecode(path).encode("utf-8", "backslashreplace").decode()


def _named(path: bytes) -> dict[str, str]:
    try:
        return {"path": path.decode()}
    except UnicodeDecodeError:
        return {"path_b64": base64.b64encode(path).decode()}


def _path(members: Any) -> bytes:
    if "path" in members:
        return str(members["path"]).encode()
    return base64.b64decode(members["path_b64"], validate=True)


def _members(entry: FileEntry | None) -> list[Any] | None:
    return None if entry is None else [f"{entry.mode:o}", entry.size, entry.mtime_ns, entry.id]


def _entry(members: Any) -> FileEntry | None:
    if members is None:
        return None
    mode, size, mtime, name = members
    return FileEntry(int(mode, 8), int(size), int(mtime), str(name))
