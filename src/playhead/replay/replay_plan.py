"""The plan of a replay, passed to its processes. Knows one file in the replay's folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from playhead.errors import TapeDamaged
from playhead.host.private_files import read_regular
from playhead.tape.store import PLAN

FILE = PLAN

_LARGEST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A part of a request that does not count: a JSON path, a header, or a pattern."""

    boundary: str = "*"
    path: str | None = None
    header: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """The tape to serve from, and the options of the replay."""

    tape: str
    pace: bool = False
    # `strict`: completions come in the order of the tape; `calls`: only each call's own order is kept.
    order: str = "strict"
    # A replay ends after this many seconds in which nothing happens and nothing can happen.
    timeout_s: float = 5.0
    ignore: tuple[Rule, ...] = ()
    # Boundaries, or `tool:NAME`, that are performed for real, in the other modes.
    live: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    # The folder that the command runs in, where it exists in the fence alone: the sidecar, which serves
    # answers from outside the fence, has another working folder.
    cwd: str | None = None


def write_plan(run: Path, plan: ReplayPlan) -> None:
    fd = os.open(
        run / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        os.write(fd, json.dumps(asdict(plan)).encode())
    finally:
        os.close(fd)


def read_plan(run: Path) -> ReplayPlan | None:
    """Return the plan; None if this run is not a replay. A plan that cannot be read raises: the program must not go
    live.
    """
    try:
        members = json.loads(read_regular(run / FILE, _LARGEST))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TapeDamaged(f"{run / FILE} cannot be read ({error}).") from None
    known = {one.name for one in fields(Rule)}
    rules = tuple(
        Rule(**{k: v for k, v in one.items() if k in known}) for one in members.get("ignore", ())
    )
    return ReplayPlan(
        tape=str(members["tape"]),
        pace=bool(members.get("pace")),
        order=str(members.get("order") or "strict"),
        timeout_s=float(members.get("timeout_s") or 5.0),
        ignore=rules,
        live=tuple(str(one) for one in members.get("live", ())),
        options=dict(members.get("options") or {}),
        cwd=members.get("cwd"),
    )
