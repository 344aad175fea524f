"""Read facts about processes from `/proc`. Knows files of `/proc`; does not know the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress


def entries_of(pid: int, name: str) -> list[bytes]:
    with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read().split(b"\0")[:-1]
    return []


def process_of(thread: int) -> int:
    # This works only for the first thread of a process, which makes most calls. It takes a fifth of the time.
    with suppress(OSError):
        os.close(os.pidfd_open(thread))
        return thread
    with open(f"/proc/{thread}/status", "rb") as file:
        for line in file:
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    return thread


def ancestors_of(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return


def open_files_of(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        with suppress(OSError):
            yield os.readlink(f"{folder}/{name}")


def is_socket_path(path: str) -> bool:
    with suppress(OSError):
        return os.stat(path).st_mode & 0o170000 == 0o140000
    return False
