"""Decide which connections of a command were not recorded. Pure; knows the watcher's rows and the tape."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playhead.launch.sidecar.connection_watch import SeenConnection

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_MOST_NAMED = 3
# Shown to the user who recorded the run.
_ADVICE = (
    "Record them as calls: start the program from a script, which makes it a process call, or let it use "
    "Playhead's proxy, a hooked client or a tool (docs/fence.md)."
)
_NOTEBOOK_ADVICE = (
    "Convert the notebook to a script, and record that: `jupyter nbconvert --to script NOTEBOOK`."
)
_SERVER_ADVICE = "Record the application with uvicorn, hypercorn or gunicorn instead."
_SSH_ADVICE = (
    "Use the program `ssh`, or make the connection inside of a tool: both are answered as a whole."
)
_REQUESTS = "partial: requests to "


class RecordedPlaces(NamedTuple):
    """The connections that a tape accounts for."""

    # The event that started the command.
    root: str
    # Processes that were hooked: the names of their segments.
    segments: Collection[str]
    # Ports that recorded calls went to.
    ports: Collection[int]
    # Segment → the times (monotonic ns) at which it was inside a tool call or another call that is served as a whole.
    within: Mapping[str, Sequence[tuple[int, int]]]


def unrecorded(rows: Iterable[SeenConnection], taped: RecordedPlaces) -> list[SeenConnection]:
    """Return connections that left the tree without passing a hook, the proxy or a recorded process call."""
    return [row for row in rows if row.how == "out" and not _is_accounted_for(row, taped)]


def _is_accounted_for(row: SeenConnection, taped: RecordedPlaces) -> bool:
    if row.parent is not None and row.parent != taped.root and not row.parent.endswith(":0"):
        return True  # inside a process call, which is served as a whole
    segment = str(row.pid)
    if segment not in taped.segments:
        return False
    spans = taped.within.get(segment, ())
    inside = (any(begin <= at <= end for begin, end in spans) for at in row.times)
    return row.port in taped.ports or (bool(row.times) and all(inside))


def datagrams(rows: Iterable[SeenConnection], taped: RecordedPlaces) -> list[SeenConnection]:
    """Return datagrams that no recorded process call sent. A replay loses them, as any network may: they are a hole,
    but no reason to refuse a replay.
    """
    return [row for row in rows if row.how == "datagram" and not _is_accounted_for(row, taped)]


def daemons(rows: Iterable[SeenConnection], taped: RecordedPlaces) -> list[SeenConnection]:
    """Return connections to Unix sockets of daemons that no recorded process call made. Hooks record those of a
    hooked Python. The fence of a replay refuses them, so they are a hole.
    """
    return [
        row
        for row in rows
        if row.how == "daemon"
        and str(row.pid) not in taped.segments
        and not _is_accounted_for(row, taped)
    ]


def missing(rows: Iterable[SeenConnection], taped: RecordedPlaces) -> list[SeenConnection]:
    """Return the connections of `unrecorded` without which a replay proves nothing. An agent that calls its models
    through the proxy also sends telemetry and checks for updates without it, and `npm run` checks for updates of
    npm. Such connections are a hole, but no reason to refuse a replay.
    """
    rows = list(rows)
    proxied = [row for row in rows if row.proxied]
    pids, roles = {row.pid for row in proxied}, {row.role for row in proxied}
    programs = {row.program for row in proxied}

    def is_beside_the_models(row: SeenConnection) -> bool:
        if row.role == "runner" or row.pid in pids:
            return True
        # The program of a script is its interpreter, which does not identify it: an agent in node uses the proxy, while
        # another script in node sends other requests.
        is_known = row.program in programs and row.role != "script"
        return row.role in roles if row.role.startswith("agent:") else is_known

    return [row for row in unrecorded(rows, taped) if not is_beside_the_models(row)]


def refused(rows: Iterable[SeenConnection]) -> list[str]:
    """Return the places where nothing listened. A replay in which nothing listens there either is the same."""
    return sorted({row.to for row in rows if row.how == "refused"})


def words(found: Iterable[SeenConnection]) -> str:
    """Return one sentence for the last line of `record`, and for the refusal of a replay."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in found:
        counts[row.program, row.to] += row.count
    named = [f"{os.path.basename(program)} to {to}" for program, to in counts]
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f"partial: connections were not recorded ({', '.join(named[:_MOST_NAMED])}{more})"


def unserved_words(servers: Collection[str]) -> str:
    """Return the same sentence for servers of the program whose requests were not recorded."""
    return f"{_REQUESTS}{' and '.join(sorted(servers))} were not recorded"


def unanswerable_words(conversations: Collection[str]) -> str:
    """Return the same sentence for recorded conversations that a replay cannot have again."""
    return f"partial: {' and '.join(sorted(conversations))} is encrypted by the program itself"


def advice_for(partial: str) -> str:
    """Return what the user can do to get a run that can be replayed. `partial`: why this one cannot."""
    if partial.startswith(f"{_REQUESTS}the notebook kernel"):
        return _NOTEBOOK_ADVICE
    if partial.startswith("partial: SSH "):
        return _SSH_ADVICE
    return _SERVER_ADVICE if partial.startswith(_REQUESTS) else _ADVICE


def refusal_of(partial: str) -> str:
    """Return why a replay of such a run would prove nothing, and what to do."""
    would = (
        "send them again"
        if partial.startswith(_REQUESTS)
        else "answer them, and does not make them"
    )
    return f"A replay cannot {would}. {advice_for(partial)}"


def port_of(request: object) -> int | None:
    """Return the port that a recorded request went to."""
    url = request.get("url") if isinstance(request, Mapping) else None
    to = request.get("to") if isinstance(request, Mapping) else None
    if isinstance(to, str):  # a connection of `hooks/stream`
        port = to.rpartition(":")[2]
        return int(port) if port.isdigit() else None
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
        return parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None


def proxy_ports(env: Mapping[str, str]) -> set[int]:
    """Return the ports of the HTTP proxies that an environment names: requests go there instead."""
    urls = (value for name, value in env.items() if name.lower().endswith("_proxy"))
    return {port for url in urls if (port := port_of({"url": url})) is not None}
