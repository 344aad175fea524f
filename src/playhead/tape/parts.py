"""Files that are written in pieces and get their name when they are whole. Knows the `.part`
suffix; not what is in them.
"""

from __future__ import annotations

import os
from pathlib import Path


def append(part: Path, content: bytes) -> None:
    """Opened anew each time: a run may have more segments than a process may have open files."""
    fd = os.open(part, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(fd, "ab") as file:
        file.write(content)


def finish(part: Path) -> Path:
    """`NAME.part` → `NAME`, once its content is on the disk."""
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    whole = part.with_suffix("")
    os.replace(part, whole)
    return whole
