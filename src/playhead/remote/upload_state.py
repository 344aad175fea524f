"""The state of a local store's uploads, without a network: the runs that are pushed, and those that still wait.

remote/uploads/RUN.json      state of one run: pending, pushed, or the error of the last attempt
remote/KEY/packs.json        contents of the packs that this store has pushed, so that they are pushed once
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from playhead.host.private_files import read_regular, replace_file
from playhead.tape.store import checked_id

State = Literal["pending", "pushed", "failed"]
_LARGEST = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUpload:
    """The state of one run. `why`: the error of the last attempt."""

    state: State
    remote: str
    why: str = ""


def note_upload(home: Path, run: str, upload: RunUpload) -> None:
    folder = home / "remote" / "uploads"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(folder / f"{checked_id(run)}.json", json.dumps(asdict(upload)).encode())


def uploads(home: Path) -> dict[str, RunUpload]:
    """Return all runs with a state. Runs that were deleted here are left out."""
    found: dict[str, RunUpload] = {}
    try:
        names = os.listdir(home / "remote" / "uploads")
    except OSError:
        return found
    for name in sorted(names):
        run, dot, _ = name.rpartition(".json")
        members = _read(home / "remote" / "uploads" / name)
        state = members.get("state")
        if dot and state in ("pending", "pushed", "failed") and (home / "runs" / run).is_dir():
            found[run] = RunUpload(
                state=state, remote=str(members.get("remote")), why=str(members.get("why", ""))
            )
    return found


def remote_folder(home: Path, url: str) -> Path:
    """The folder for facts about one shared store; created if necessary."""
    key = hashlib.sha256(url.encode()).hexdigest()[:16]
    folder = home / "remote" / key
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def known_packs(home: Path, url: str) -> dict[str, dict[str, Any]]:
    """SHA-256 of each pack that this store has pushed → its size and contents."""
    members = _read(remote_folder(home, url) / "packs.json")
    return {name: one for name, one in members.items() if isinstance(one, dict)}


def note_pack(home: Path, url: str, sha256: str, facts: Mapping[str, Any]) -> None:
    members = {**known_packs(home, url), sha256: dict(facts)}
    replace_file(remote_folder(home, url) / "packs.json", json.dumps(members).encode())


def forget_packs(home: Path, url: str) -> None:
    """Push all contents again: packs have disappeared from the shared store."""
    (remote_folder(home, url) / "packs.json").unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        members = json.loads(read_regular(path, _LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
