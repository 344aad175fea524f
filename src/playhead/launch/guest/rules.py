"""The rules of a run for its other processes: how to record, and whether the run is in progress. Knows one file
in the run's folder, which exists as long as the run lasts.

A file and not a variable: patterns can be long, and every program that prints its environment would show
them. Not the manifest: that is written for readers, and costs every process 4 ms to load.
"""

from __future__ import annotations

import os

from playhead.encoding.jsonbytes import dumps, loads
from playhead.errors import TapeDamaged
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor
from playhead.redact.vault_notes import VaultNotes
from playhead.tape.store import redaction_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "guests.json"


def post(recorder: Recorder) -> None:
    """Leave the rules of this run for its other processes."""
    redactor = recorder.redactor
    members = {
        "run": recorder.run_id,
        "who": recorder.who,
        "level": recorder.level,
        "generation": recorder.generation,
        "redact": None
        if redactor is None
        else {
            "patterns": redactor.patterns,
            "names": redactor.names,
            "keep": redactor.keep,
            "vault": redactor.keeper is not None,
        },
    }
    part = recorder.run / f"{FILE}.{os.getpid()}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, dumps(members).encode())
    finally:
        os.close(fd)
    os.replace(part, recorder.run / FILE)


def withdraw(run: Path) -> None:
    """Delete the rules when the run has ended: processes that start later, such as those of a daemon, do not join
    it.
    """
    try:
        os.unlink(run / FILE)
    except OSError:
        return  # already removed, or the folder is gone


def join(run: str, parent: str | None, variables: Mapping[str, str]) -> Recorder | None:
    """Open this process's segment of the run. None: the run has ended."""
    try:
        with open(os.path.join(run, FILE), encoding="utf-8") as file:
            members = loads(file.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        # Without the rules it is unknown whether secrets may be written, so nothing is written.
        raise TapeDamaged(f"{os.path.join(run, FILE)} cannot be read ({error})") from None
    redactor = None
    if (redact := members["redact"]) is not None:
        key = redaction_key(os.path.dirname(os.path.dirname(run)))
        redactor = Redactor(
            key=key,
            variables=variables,
            patterns=redact["patterns"],
            names=redact["names"],
            keep=redact["keep"],
        )
        if redact.get("vault"):
            redactor.keeper = VaultNotes(run, key).keep
    return Recorder(
        run=run,
        run_id=members["run"],
        who=members["who"],
        level=members["level"],
        redactor=redactor,
        parent=parent,
        generation=members["generation"],
        may_import=False,
    )
