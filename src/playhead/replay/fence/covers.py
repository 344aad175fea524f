"""The cover over the real files: overlays whose upper layers are in a tmpfs, so that every write vanishes.

Every folder of `/` is covered, so a program reads the real files and may write wherever it could write before. An
overlay also cuts off Unix sockets and named pipes below it: their inodes are the overlay's own, and no daemon listens
on those. For an ordinary user, a folder that has mounts below it is composed of overlays (`composed`). Where neither is
possible, the folder is read-only. Knows mounts; does not know networks or the command.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from playhead.replay.fence import mount_table
from playhead.replay.fence.composed import Composed

# Kernel interfaces and devices: there is nothing to overlay in them.
_UNCOVERED = frozenset({"/proc", "/sys", "/dev"})
_SOCKET_FOLDERS = ("/run", "/var/run")
_STAGES = ("/dev/shm", "/tmp", "/run", "/mnt")  # noqa: S108  covered by a tmpfs while it is used
_REAL = frozenset(
    {
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "ramfs"),
        *("overlay", "fuse", "fuseblk", "9p", "virtiofs", "nfs", "nfs4", "cifs", "vfat", "exfat"),
        *("squashfs", "erofs", "iso9660", "shiftfs", "ntfs3", "ceph"),
    }
)


@dataclass(slots=True)
class Covered:
    """The cover over the real files."""

    # Path → folder of the stage that has the files written there.
    uppers: dict[str, str] = field(default_factory=dict)
    # Folders that are read-only because no overlay could be mounted, and why.
    read_only: dict[str, str] = field(default_factory=dict)
    # Copied file → size and time of modification: see `composed`.
    copies: dict[str, tuple[int, int]] = field(default_factory=dict)
    # The stage, held open, because it is no longer in the tree.
    stage: int = -1
    # Covered path → the real file or folder below it, held open.
    real: dict[str, int] = field(default_factory=dict)

    def keep(self, path: str, *, writable: bool) -> None:
        """Show the real file or folder at this path, so that a socket there can be reached again."""
        base = max((one for one in self.real if _is_inside(path, one)), key=len, default=None)
        if base is None:
            return  # not covered by anything
        real = f"/proc/self/fd/{self.real[base]}{path[len(base.rstrip('/')) :]}"
        if not os.path.lexists(path):  # made since the folder around it was composed
            os.makedirs(path if os.path.isdir(real) else os.path.dirname(path), exist_ok=True)
            if not os.path.isdir(real):
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        mount_table.bind(real, path)
        if writable:
            mount_table.set_writable(path)


class CoverPlan(NamedTuple):
    """The folders to cover. Computed before the namespaces exist: in a user namespace all files of other users
    appear to belong to the user `nobody`, and the sockets of the old network are no longer listed.
    """

    folders: tuple[str, ...]
    # Folders below those of other users.
    scattered: tuple[str, ...]
    sockets: tuple[str, ...]
    # Those of `folders` in which the program is likely to write.
    written: frozenset[str]


def survey(own: Sequence[str]) -> CoverPlan:
    """Return the folders to cover. `own` are the folders that the program is likely to write to."""
    folders = [*_top_folders(), *_mounted_below()]
    real = dict.fromkeys(filter(os.path.isdir, map(os.path.realpath, own)))
    scattered = tuple(one for one in real if _is_below_others(one, folders))
    written = frozenset(
        one for one in folders if os.access(one, os.W_OK) or any(_is_inside(p, one) for p in real)
    )
    return CoverPlan(tuple(folders), scattered, tuple(_listening_paths()), written)


def cover(found: CoverPlan, *, as_user: bool) -> Covered:
    """Cover everything. `as_user`: in a user namespace, which knows one user only.

    OSError: this cannot be done here.
    """
    mount_table.make_private()
    paths = (*found.folders, *(found.scattered if as_user else ()))
    real: dict[str, int] = {}
    for path in paths:
        with suppress(FileNotFoundError):  # unmounted and deleted since
            real[path] = os.open(path, os.O_PATH)
    files = {path for path, fd in real.items() if not stat.S_ISDIR(os.fstat(fd).st_mode)}
    mount_table.set_read_only("/", below=True)
    mount_table.set_writable("/proc")
    # Read here and not by `survey`: a mount may have been made since.
    mounted = frozenset(one.path for one in mount_table.mounts())
    stage = _Stage(as_user=as_user)
    # Folders before those below them: a cover hides what was mounted below it.
    for path in sorted(real.keys() - files, key=lambda one: (one.count("/"), one)):
        is_composable = as_user and path in found.written
        stage.cover(path, real[path], _below(path, mounted) if is_composable else frozenset())
    stage.close()
    covered = stage.covered
    for path in files:
        _bound(real[path], path)
    _silence(found.sockets, covered)
    covered.real = real
    return covered


def _top_folders() -> list[str]:
    with os.scandir("/") as entries:
        found = [one.path for one in entries if one.is_dir(follow_symlinks=False)]
    return sorted(path for path in found if path not in _UNCOVERED)


def _mounted_below() -> list[str]:
    """Return the real file systems below the top folders: an overlay would show the folders they are mounted on."""
    table = mount_table.mounts()
    found = {one.path for one in table if one.kind in _REAL or one.kind.startswith("fuse.")}
    below = (path for path in found if f"/{path.split('/')[1]}" not in _UNCOVERED)
    return sorted(path for path in below if path.count("/") > 1 and os.path.exists(path))


def _is_below_others(path: str, folders: Sequence[str]) -> bool:
    """Return whether a folder on the way belongs to another user, who has no id in a user namespace: then an overlay
    further up cannot copy that folder, and nothing below it can be written.
    """
    if path in folders:
        return False
    base = max((one for one in folders if _is_inside(path, one)), key=len, default="/")
    while path not in (base, "/"):
        if os.stat(path).st_uid != os.geteuid():
            return True
        path = os.path.dirname(path)
    return False


class _Stage:
    """A tmpfs that holds the upper layers of the overlays."""

    def __init__(self, *, as_user: bool) -> None:
        self._path = next(path for path in _STAGES if os.path.isdir(path))
        mount_table.tmpfs(self._path, mode=0o700)
        self.covered = Covered(stage=os.open(self._path, os.O_PATH | os.O_DIRECTORY))
        # By its descriptor: an overlay may cover the place of the stage.
        self._root = f"/proc/self/fd/{self.covered.stage}"
        self._count = 0
        # `userxattr`: a user may not set the attributes with which overlays mark deleted files.
        self._extra = "userxattr" if as_user else "redirect_dir=on"

    def cover(self, path: str, fd: int, mounted: frozenset[str]) -> None:
        """Cover one folder. `fd` is the real one, `mounted` the mount points below it if it may be composed."""
        try:
            self._overlay(path, fd)
        except OSError as error:
            if mounted and error.errno == errno.EINVAL:
                self._compose(path, fd, mounted)
            else:
                self.covered.read_only[path] = error.strerror or str(error)
                _read_only_instead(path, fd)

    def close(self) -> None:
        """Take the stage out of the tree; the overlays keep it."""
        if self._path == "/dev/shm":  # noqa: S108
            mount_table.detach(self._path)
        if os.path.isdir("/dev/shm"):  # noqa: S108
            mount_table.tmpfs("/dev/shm", mode=0o1777)  # noqa: S108

    def _overlay(self, path: str, fd: int) -> None:
        upper = self._folder("u", os.fstat(fd))
        work = self._folder("w", None)
        options = f"lowerdir=/proc/self/fd/{fd},upperdir={self._root}/{upper},"
        mount_table.overlay(path, f"{options}workdir={self._root}/{work},{self._extra}")
        self.covered.uppers[path] = upper

    def _compose(self, path: str, fd: int, mounted: frozenset[str]) -> None:
        upper = self._folder("u", os.fstat(fd))
        mount_table.bind(f"{self._root}/{upper}", path)
        mount_table.set_writable(path)
        self.covered.uppers[path] = upper
        made = Composed(self._cover_entry, mounted, self.covered.copies)
        made.fill(path, f"/proc/self/fd/{fd}")

    def _cover_entry(self, path: str, real: str) -> None:
        # By a descriptor: commas and colons in a path would end an option of the overlay.
        fd = os.open(real, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            self._overlay(path, fd)
        except OSError as error:
            self.covered.read_only[path] = error.strerror or str(error)
            _bound(fd, path)
        finally:
            os.close(fd)

    def _folder(self, prefix: str, like: os.stat_result | None) -> str:
        self._count += 1
        name = f"{prefix}{self._count}"
        path = f"{self._root}/{name}"
        os.mkdir(path)
        if like is not None:
            with suppress(OSError):
                os.chown(path, like.st_uid, like.st_gid)
            os.chmod(path, stat.S_IMODE(like.st_mode))
        return name


def _read_only_instead(path: str, fd: int) -> None:
    if path in _SOCKET_FOLDERS:
        mount_table.tmpfs(path, mode=0o755)
    elif path.count("/") > 1:
        _bound(fd, path)


def _bound(fd: int, path: str) -> None:
    """Mount the real file or folder, read-only, if an overlay further up hides it."""
    with suppress(OSError):
        mount_table.bind(f"/proc/self/fd/{fd}", path)
        mount_table.set_read_only(path)


def _listening_paths() -> list[str]:
    """Return the Unix sockets of this network namespace that have a path."""
    with open("/proc/net/unix", "rb") as file:
        words = [line.split(maxsplit=7) for line in file.read().splitlines()[1:]]
    return sorted({os.fsdecode(one[7]) for one in words if len(one) == 8 and one[7][:1] == b"/"})


def _silence(sockets: Sequence[str], covered: Covered) -> None:
    """Cover the sockets that no overlay cuts off: a read-only mount does not stop a connection."""
    for path in sockets:
        within = max((one for one in covered.uppers if _is_inside(path, one)), key=len, default="")
        closer = any(_is_inside(path, one) and len(one) > len(within) for one in covered.read_only)
        if within and not closer:
            continue
        with suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                mount_table.bind("/dev/null", path)


def _below(path: str, mounted: frozenset[str]) -> frozenset[str]:
    return frozenset(one for one in mounted if one != path and _is_inside(one, path))


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
