"""Mount shims over the real programs, for callers that use absolute paths (`/bin/sh`, `/usr/bin/git`). Knows
bind mounts; the namespaces and system calls are those of the fence.

Runs in Playhead's own Python (see `covering`), mounts, and executes the command: same process, same user. The
mounts are in a namespace of the command's own, so no other process sees them. A user other than root gets a
user namespace as well: in it `sudo` does not work, and files of other users appear to belong to `nobody`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from playhead.replay.fence import mount_table, namespaces

_FAILED = 125  # as `env` and `unshare` exit when they cannot run the command


def enter(pairs: Iterable[tuple[str, str]]) -> None:
    """Mount the first path of each pair over the second one, for this process."""
    namespaces.unshare(namespaces.NEW_MOUNTS)
    mount_table.make_private()
    for above, below in pairs:
        mount_table.bind(above, below)


def main(argv: list[str]) -> int:
    """`ABOVE BELOW … -- COMMAND…`: mount, then exec the command."""
    at = argv.index("--")
    words, command = argv[:at], argv[at + 1 :]
    try:
        enter(zip(words[::2], words[1::2], strict=True))
    except OSError as error:
        sys.stderr.write(f"no shims over the real paths: {error.strerror or error}\n")
        return _FAILED
    try:
        os.execvp(command[0], command)  # noqa: S606  intended
    except OSError as error:
        sys.stderr.write(f"playhead: cannot run {command[0]}: {error.strerror}.\n")
        return 127 if isinstance(error, FileNotFoundError) else 126
