"""Which paths of a folder belong to the workspace, and which are left out and why. Reads no content.

Knows names, sizes, ignore rules and limits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

from playhead.workspace.git_ignore import IgnoreRules
from playhead.workspace.git_objects import tracked_files
from playhead.workspace.known_files import FolderListings

# A larger file that the project's repository does not track is named, not stored.
LARGEST_FILE = 64 * 1024 * 1024
# A larger file that git ignores is named, not stored.
LARGEST_IGNORED = 1024 * 1024
# A folder that git ignores is kept up to these limits: agents read test results and small outputs again, but build
# trees and downloaded packages are not worth the disk space.
_MOST_IGNORED = 500
_MOST_IGNORED_BYTES = 8 * 1024 * 1024
MOST_ENTRIES = 400_000
# Maximum time that a snapshot may delay the start of a command.
LONGEST_S = 20.0
# Maximum number of left-out files that are named; the others are counted.
MOST_NAMED = 200

# Folders that programs rebuild from the workspace.
_DERIVED = frozenset(
    {
        *(b"node_modules", b"__pycache__", b".venv", b".tox", b".nox", b".cache", b".gradle"),
        *(b".mypy_cache", b".pytest_cache", b".ruff_cache", b".hypothesis", b".ipynb_checkpoints"),
    }
)
# Folders that are never a single project.
_SHARED = frozenset(
    os.fsencode(one)
    for one in (
        *("/", "/tmp", "/var/tmp", "/var", "/usr", "/etc", "/home", "/Users", "/root", "/opt"),  # noqa: S108
        *("/dev", "/proc", "/sys", "/run", "/mnt", "/media", "/bin", "/sbin", "/lib", "/boot"),
    )
)
_SECRET_NAMES = frozenset(
    {
        *(b".env", b".netrc", b".pgpass", b".npmrc", b".pypirc", b".htpasswd", b"credentials"),
        *(b"id_rsa", b"id_dsa", b"id_ecdsa", b"id_ed25519", b"secrets.toml", b"secrets.yaml"),
        *(b"secrets.yml", b"secrets.json", b"credentials.json", b".git-credentials"),
    }
)
_SECRET_ENDS = (b".pem", b".key", b".p12", b".pfx", b".jks", b".keystore", b".kdbx", b".ppk")
# Templates, which are meant to be shared.
_SHARED_ENDS = (b".example", b".sample", b".template", b".dist")


class LeftOut(NamedTuple):
    """A file or folder that is not in the snapshot."""

    path: bytes
    why: str


def is_derived(name: bytes) -> bool:
    return name in _DERIVED


def is_secret(path: bytes) -> bool:
    """Return whether a file is named like one that holds secrets: its hash is recorded, not its content."""
    name = path.rpartition(b"/")[2].lower()
    if path.startswith(b".git/") or name.endswith(_SHARED_ENDS):
        return False
    return name in _SECRET_NAMES or name.startswith(b".env.") or name.endswith(_SECRET_ENDS)


def why_refused(folder: str) -> str | None:
    """Return why a folder is not accepted as a workspace. None: it is accepted."""
    real = os.fsencode(os.path.realpath(folder))
    home = os.fsencode(os.path.realpath(os.path.expanduser("~")))
    if real == home:
        return (
            "it is the home folder; run the agent in a project folder, or name one with --workspace"
        )
    if real in _SHARED or home.startswith(real.rstrip(b"/") + b"/"):
        return "it is shared by many programs; run the agent in a project folder, or name one with --workspace"
    if not os.path.isdir(folder):
        return "it is not a folder"
    return None


_ATTEMPTED_INDEX = 64 * 1024 * 1024


class TrackedFolders(NamedTuple):
    """The folders with tracked files, and the version of git's index that they come from."""

    stamp: bytes
    folders: frozenset[bytes]


# The reason for leaving out a file that receives the command's own output.
OUTPUT = "output of the command"


def output_files() -> tuple[str, ...]:
    """Return the files to which stdout and stderr of this process are redirected."""
    found = []
    for fd in (1, 2):
        with suppress(OSError):
            if S_ISREG(os.fstat(fd).st_mode):
                found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return tuple(found)


class IgnoredUse:
    """Counts the kept files of one folder that git ignores."""

    __slots__ = ("_bytes", "_is_limited", "_sizes", "is_exceeded", "is_named")

    def __init__(self, *, is_limited: bool) -> None:
        self._is_limited = is_limited
        self._sizes: dict[bytes, int] = {}
        self._bytes = 0
        self.is_exceeded = False
        self.is_named = False

    def why_not(self, path: bytes, size: int) -> str | None:
        """Count a file of this size. Return None, or the reason why it is not kept."""
        if not self._is_limited:
            return None
        self._bytes += size - self._sizes.get(path, 0)
        self._sizes[path] = size
        if len(self._sizes) > _MOST_IGNORED or self._bytes > _MOST_IGNORED_BYTES:
            self.is_exceeded = True
        return "ignored" if self.is_exceeded else None


class ChosenFiles:
    """Decides which paths belong to one workspace. `excluded` paths never do: the store, and files that receive the
    command's own output (`playhead record … > log.txt`), because Playhead writes them, not the command.
    """

    def __init__(
        self,
        root: bytes,
        excluded: tuple[bytes, ...] = (),
        known: TrackedFolders | None = None,
        *,
        only: frozenset[bytes] | None = None,
        recorded: Container[bytes] | None = None,
    ) -> None:
        """`known` is the result of the last run in this folder; it is valid if git's index is unchanged.

        `only`: the names that belong to the workspace if the folder is not a project: single files, or the
        repository of a worktree. `recorded`: the paths of a recorded tree, which decides about folders that git
        ignores.
        """
        self.root = root
        self.only = only
        self._recorded = recorded
        # Ignored folders that are kept: the number of files in each, and their size.
        self._ignored: dict[bytes, IgnoredUse] = {}
        # In a worktree and a submodule `.git` is a file.
        is_git = only is None and os.path.lexists(os.path.join(root, b".git"))
        self.ignore = IgnoreRules(root, git=is_git)
        self._tracked: dict[bytes, bytes] | None = None if only is None else {}
        self._stamp = _index_stamp(root)
        is_known = known is not None and known.stamp == self._stamp
        self._folders = known.folders if known and is_known else _parents(self.tracked)
        self._excluded = frozenset(
            os.path.relpath(one, root) for one in excluded if one.startswith(root + b"/")
        )
        self._excluded_parents = frozenset(os.path.dirname(one) for one in self._excluded)

    @property
    def tracked(self) -> dict[bytes, bytes]:
        """Return path → object of the files that git tracks. Read on first use: most runs change few files."""
        if self._tracked is None:
            self._tracked = _tracked(self.root)
        return self._tracked

    @property
    def tracked_folders(self) -> TrackedFolders:
        return TrackedFolders(self._stamp, self._folders)

    @property
    def has_index(self) -> bool:
        return bool(self._folders) or bool(self.tracked)

    def why_not_folder(self, path: bytes) -> str | None:
        """Return why a folder is left out with its contents. None: it is part of the workspace."""
        if path in self._excluded:
            return "store"
        if self.only is not None:
            return None if self.has_name(path) else "outside"
        if path in self._folders or path == b".git" or path.startswith(b".git/"):
            return None
        if is_derived(path.rpartition(b"/")[2]):
            return "derived"
        if self._top_ignored(path) is None and self.ignore.ignores(path, is_folder=True):
            return None if self._keeps_ignored(path) else "ignored"
        if os.path.exists(os.path.join(self.root, path, b"pyvenv.cfg")):
            return "derived"
        return None

    def why_not_file(self, path: bytes, size: int) -> str | None:
        """Return why a file is left out. Small files that git ignores are kept: an agent's behaviour depends on
        databases and logs.
        """
        if path in self._excluded:
            return OUTPUT
        if self.only is not None:
            return None if self.has_name(path) else "outside"
        if self._ignored and (top := self._top_ignored(path)) is not None:
            return self._ignored[top].why_not(path, size)
        if size <= LARGEST_IGNORED or path.startswith(b".git/") or path in self.tracked:
            return None
        return "ignored" if self.ignore.ignores(path, is_folder=False) else None

    def take_exceeded(self) -> list[bytes]:
        """Return the ignored folders that have outgrown their limits since the last call."""
        found = [
            path for path, one in self._ignored.items() if one.is_exceeded and not one.is_named
        ]
        for path in found:
            self._ignored[path].is_named = True
        return found

    def _keeps_ignored(self, path: bytes) -> bool:
        """Return whether a folder that git ignores is small enough. In a comparison, the recorded tree decides."""
        known = self._recorded
        full = os.path.join(self.root, path)
        is_kept = _is_small(full) if known is None else path in known
        if is_kept:
            self._ignored[path] = IgnoredUse(is_limited=known is None)
        return is_kept

    def _top_ignored(self, path: bytes) -> bytes | None:
        """Return the kept folder that contains a path, among those that git ignores."""
        if not self._ignored:
            return None
        names = path.split(b"/")
        above = (b"/".join(names[:count]) for count in range(1, len(names) + 1))
        return next((one for one in above if one in self._ignored), None)

    def has_name(self, path: bytes) -> bool:
        """Return whether a path is one of the names in `only`, or below one."""
        if self.only is None or path in self.only:
            return True
        return any(path.startswith(one + b"/") for one in self.only)

    def has(self, path: bytes) -> bool:
        """Return whether a path is not excluded, and all folders above it are part of the workspace."""
        if path in self._excluded:
            return False
        names = path.split(b"/")
        above = (b"/".join(names[:count]) for count in range(1, len(names)))
        return all(self.why_not_folder(one) is None for one in above)

    def walk(
        self,
        top: bytes = b"",
        *,
        entering: Callable[[bytes], object] | None = None,
        left_out: Callable[[LeftOut], object] | None = None,
        listings: FolderListings | None = None,
    ) -> Iterator[tuple[bytes, os.stat_result]]:
        """Yield every path below `top` with its status, folders before their contents.

        `entering` is called for each folder before it is listed: a watch added then misses nothing. `listings` saves
        listing folders that have not changed, and keeps their unchanged files: these are not yielded.
        """
        waiting = [top]
        if self.only is not None and not top:
            waiting = []
            if entering is not None:
                entering(b"")
            for name in sorted(self.only):
                with suppress(OSError):
                    status = os.lstat(os.path.join(self.root, name))
                    yield name, status
                    if S_ISDIR(status.st_mode):
                        waiting.append(name)
        while waiting:
            folder = waiting.pop()
            if entering is not None:
                entering(folder)
            is_ignored = self._top_ignored(folder) is not None
            is_each = is_ignored or folder in self._excluded_parents
            try:
                found = self._listed(folder, listings, is_each=is_each)
            except OSError as error:
                if left_out is not None and not isinstance(error, FileNotFoundError):
                    left_out(LeftOut(folder, f"unreadable: {error.strerror}"))
                continue
            for path, status in found:
                why = None
                if S_ISDIR(status.st_mode):
                    why = self.why_not_folder(path)
                    if why is None:
                        waiting.append(path)
                elif is_ignored or status.st_size > LARGEST_IGNORED or path in self._excluded:
                    why = self.why_not_file(path, status.st_size)
                if why is None:
                    yield path, status
                elif left_out is not None and why != "store":
                    left_out(LeftOut(path, why))

    def _listed(
        self, folder: bytes, listings: FolderListings | None, *, is_each: bool
    ) -> list[tuple[bytes, os.stat_result]]:
        """Return the paths in a folder, each with its status. Paths that are deleted meanwhile are left out, and so are
        files that `listings` found unchanged, unless `is_each`.
        """
        if listings is None:
            return _scanned(os.path.join(self.root, folder), folder)
        if (paths := listings.to_examine(folder, is_each=is_each)) is not None:
            start, found = self.root + b"/", []
            for path in paths:
                with suppress(OSError):
                    found.append((path, os.lstat(start + path)))
            return found
        full = os.path.join(self.root, folder)
        # The status comes before the list: a name that is added in between changes the next status.
        status = os.lstat(full)
        found = _scanned(full, folder)
        listings.note(folder, status, len(found))
        return found


def _scanned(full: bytes, folder: bytes) -> list[tuple[bytes, os.stat_result]]:
    prefix = folder + b"/" if folder else b""
    found = []
    with os.scandir(full) as entries:
        for one in entries:
            with suppress(OSError):  # deleted since it was listed
                found.append((prefix + one.name, one.stat(follow_symlinks=False)))
    return found


def _is_small(folder: bytes) -> bool:
    """Return whether a folder is within the limits of folders that git ignores."""
    files = size = 0
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for one in entries:
                    files += 1
                    if one.is_dir(follow_symlinks=False):
                        waiting.append(one.path)
                    else:
                        size += one.stat(follow_symlinks=False).st_size
                    if files > _MOST_IGNORED or size > _MOST_IGNORED_BYTES:
                        return False
        except OSError:
            continue
    return True


def _index_stamp(root: bytes) -> bytes:
    try:
        status = os.stat(os.path.join(root, b".git", b"index"))
    except OSError:
        return b"none"
    return b"%d.%d.%d" % (status.st_size, status.st_mtime_ns, status.st_ino)


def _tracked(root: bytes) -> dict[bytes, bytes]:
    try:
        with open(os.path.join(root, b".git", b"index"), "rb") as file:
            return tracked_files(file.read(_ATTEMPTED_INDEX))
    except OSError:
        return {}


def _parents(paths: dict[bytes, bytes]) -> frozenset[bytes]:
    """Return all folders that contain one of these files."""
    found: set[bytes] = set()
    for path in paths:
        folder = path.rpartition(b"/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition(b"/")[0]
    return frozenset(found)
