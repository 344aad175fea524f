"""RUN where a tape may also be a single file: for replay and its kin. Knows where to unpack one."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from playhead.cli.common import find_run
from playhead.errors import RunNotFound
from playhead.tape.reader import Tape
from playhead.tape.sealed.seal import unseal
from playhead.tape.sealed.seal_index import FILE as SEALED
from playhead.tape.single import SUFFIX, unpack


def find_tape(store: Path | None, asked: str) -> Path:
    """The run's folder; a single-file tape is unpacked into one that goes away with this process."""
    if not asked.endswith(SUFFIX):
        return find_run(store, asked)
    source = Path(asked).expanduser()
    if not source.is_file():
        raise RunNotFound(f"There is no file {asked}.", asked=asked)
    folder = Path(tempfile.mkdtemp(prefix="playhead-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return unpack(source.resolve(), folder / source.name[: -len(SUFFIX)])


def plain(tape: Tape) -> Tape:
    """The tape as plain lines: the agent's Python may have nothing that reads a sealed one."""
    if not (tape.run / SEALED).exists():
        return tape
    folder = Path(tempfile.mkdtemp(prefix="playhead-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / tape.run.name
    shutil.copytree(tape.run, copy)
    unseal(copy)
    return Tape(copy)
