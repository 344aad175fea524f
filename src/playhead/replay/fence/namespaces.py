"""The fence of namespaces: a network, mounts and IPC of the command's own, with overlays over the real files.

Every folder of `/` is covered by an overlay whose upper layer is in a tmpfs, so a program reads the real files and may
write wherever it could write before; the writes vanish with it. An overlay also cuts off Unix sockets and named pipes
below it: their inodes are the overlay's own, and no daemon listens on those. Where an overlay cannot be mounted, the
folder is read-only.

Root needs no user namespace; any other user gets one and keeps their user id: files of other users appear to belong to
`nobody`, and `sudo` does not work. Knows Linux; does not know the command.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from playhead.replay.fence import mount_table
from playhead.replay.fence.kernel import call

# Kernel interfaces and devices: there is nothing to overlay in them.
_UNCOVERED = frozenset({"/proc", "/sys", "/dev"})
_SOCKET_FOLDERS = ("/run", "/var/run")
_STAGES = ("/dev/shm", "/tmp", "/run", "/mnt")  # noqa: S108  covered by a tmpfs while it is used
_REAL = frozenset(
    {
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "ramfs"),
        *("overlay", "fuse", "fuseblk", "9p", "virtiofs", "nfs", "nfs4", "cifs", "vfat", "exfat"),
        *("squashfs", "erofs", "iso9660", "shiftfs", "ntfs3", "ceph", "fuse.sshfs", "fuse.bindfs"),
    }
)


@dataclass(slots=True)
class Covered:
    """The cover over the real files."""

    # Path → folder of the stage that has the files written there.
    uppers: dict[str, str] = field(default_factory=dict)
    # Folders that are read-only because no overlay could be mounted, and why.
    read_only: dict[str, str] = field(default_factory=dict)
    # The stage, held open, because it is no longer in the tree.
    stage: int = -1
    # Covered path → the real file or folder below it, held open.
    real: dict[str, int] = field(default_factory=dict)

    def keep(self, path: str, *, writable: bool) -> None:
        """Show the real file or folder at this path, so that a socket there can be reached again."""
        base = max((one for one in self.real if _is_inside(path, one)), key=len, default=None)
        if base is None:
            return  # not covered by anything
        inner = path[len(base.rstrip("/")) :]
        mount_table.bind(f"/proc/self/fd/{self.real[base]}{inner}", path)
        if writable:
            mount_table.set_writable(path)


class CoverPlan(NamedTuple):
    """The folders to cover. Computed before the namespaces exist: in a user namespace all files of other users
    appear to belong to `nobody`, and the sockets of the old network are no longer listed.
    """

    folders: tuple[str, ...]
    # Folders below those of other users.
    scattered: tuple[str, ...]
    sockets: tuple[str, ...]


def survey(own: Sequence[str]) -> CoverPlan:
    """Return the folders to cover. `own` are the folders that the program is likely to write to."""
    folders = [*_top_folders(), *_mounted_below()]
    real = dict.fromkeys(filter(os.path.isdir, map(os.path.realpath, own)))
    scattered = tuple(one for one in real if _is_below_others(one, folders))
    return CoverPlan(tuple(folders), scattered, tuple(_listening_paths()))


def cover(found: CoverPlan, *, as_user: bool) -> Covered:
    """Cover everything. `as_user`: in a user namespace, which knows one user only.

    OSError: this cannot be done here.
    """
    mount_table.make_private()
    paths = (*found.folders, *(found.scattered if as_user else ()))
    real = {path: os.open(path, os.O_PATH) for path in paths}
    files = {path for path, fd in real.items() if not stat.S_ISDIR(os.fstat(fd).st_mode)}
    mount_table.set_read_only("/", below=True)
    mount_table.set_writable("/proc")
    covered = _overlaid({p: fd for p, fd in real.items() if p not in files}, as_user=as_user)
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
    found = {one.path for one in mount_table.mounts() if one.kind in _REAL}
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


def _overlaid(real: dict[str, int], *, as_user: bool) -> Covered:
    stage = next(path for path in _STAGES if os.path.isdir(path))
    mount_table.tmpfs(stage, mode=0o700)
    covered = Covered(stage=os.open(stage, os.O_PATH | os.O_DIRECTORY))
    # `userxattr`: a user may not set the attributes with which overlays mark deleted files.
    extra = "userxattr" if as_user else "redirect_dir=on"
    waiting = []
    for number, path in enumerate(sorted(real, key=lambda one: one.count("/"))):
        upper = f"u{number}"
        seen = os.fstat(real[path])
        os.mkdir(f"{stage}/{upper}")
        os.mkdir(f"{stage}/w{number}")
        with suppress(OSError):
            os.chown(f"{stage}/{upper}", seen.st_uid, seen.st_gid)
        os.chmod(f"{stage}/{upper}", stat.S_IMODE(seen.st_mode))
        lower = f"/proc/self/fd/{real[path]}"
        options = f"lowerdir={lower},upperdir=/proc/self/fd/{covered.stage}/{upper},"
        options += f"workdir=/proc/self/fd/{covered.stage}/w{number},{extra}"
        waiting.append((path, upper, options))
    # Last: a folder that covers the stage's own place, if there is one.
    for path, upper, options in waiting:
        try:
            mount_table.overlay(path, options)
            covered.uppers[path] = upper
        except OSError as error:
            covered.read_only[path] = error.strerror or str(error)
            _read_only_instead(path, real[path])
    mount_table.detach(stage) if stage == "/dev/shm" else None  # noqa: S108
    if os.path.isdir("/dev/shm"):  # noqa: S108
        mount_table.tmpfs("/dev/shm", mode=0o1777)  # noqa: S108
    return covered


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


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_NET = 0x00020000, 0x08000000, 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP


def enter(own: Sequence[str], *, network: bool = False) -> Covered:
    """Put this process, and the command that it becomes, inside the fence. OSError: this system does not allow it.

    `own`: folders that the program is likely to write to; `network`: keep the network.
    """
    found = survey(own)
    as_user = unshare(NEW_MOUNTS | _NEW_IPC | (0 if network else _NEW_NET))
    covered = cover(found, as_user=as_user)
    _guard_machine()
    if not network:
        _loopback_up()
    return covered


def unshare(flags: int) -> bool:
    """Give this process namespaces of its own. Return whether that needed a user namespace. OSError: refused."""
    try:
        call("unshare", flags)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        call("unshare", _NEW_USER | flags)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
        return True
    return False


def _guard_machine() -> None:
    """Cover the disks and the settings of the kernel: root owns them even without capabilities."""
    if os.geteuid():
        return
    for path in ("/proc/sys", "/proc/sysrq-trigger"):
        with suppress(OSError):
            mount_table.bind(path, path)
            mount_table.set_read_only(path)
    with suppress(OSError):
        for name in os.listdir("/sys/class/block"):
            device = f"/dev/{name.replace('!', '/')}"
            if os.path.exists(device):
                mount_table.bind("/dev/null", device)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _loopback_up() -> None:
    """Start the loopback interface: a program may serve itself, and "localhost" must work there as usual."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0).ljust(40, b"\0")
        flags = struct.unpack_from("h", fcntl.ioctl(control, _GET_FLAGS, request), 16)[0]
        wanted = struct.pack("16sh", b"lo", flags | _UP).ljust(40, b"\0")
        fcntl.ioctl(control, _SET_FLAGS, wanted)
