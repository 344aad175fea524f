"""What the process that began a run tells the others about it, beside the manifest. Knows one file of
the run's folder; not who reads it.

A file and not a variable: patterns can be long, and every program that prints its environment would
show them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Mapping

from playhead.errors import TapeDamaged
from playhead.recorder import Recorder
from playhead.redact import Redactor
from playhead.tape.store import redaction_key

FILE = "guests.json"


def post(recorder: Recorder) -> None:
    """Leave the rules of this run for its other processes. Idempotent: the first process's hold."""
    redactor = recorder.redactor
    members = {"redact": None if redactor is None else {"patterns": redactor.patterns, "names": redactor.names}}
    try:
        fd = os.open(recorder.run / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        os.write(fd, json.dumps(members).encode())
    finally:
        os.close(fd)


def redactor_for(run: Path, variables: Mapping[str, str]) -> Redactor | None:
    """What takes the secrets out in this process: the run's rules, this process's own variables."""
    try:
        redact = json.loads((run / FILE).read_bytes())["redact"]
        if redact is None:
            return None
        patterns, names = [str(one) for one in redact["patterns"]], [str(one) for one in redact["names"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Without the rules it would be a guess whether secrets may be written: then nothing is.
        raise TapeDamaged(f"{run / FILE} cannot be read ({error})") from None
    return Redactor(key=redaction_key(run.parent.parent), variables=variables, patterns=patterns, names=names)
