"""Keep track of the process tree of a followed command: the role of each executed program, and how an agent in it is
started. Knows `/proc` and environments; does not know how programs are stopped (see `tracer`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from playhead.launch.follow import agent_settings
from playhead.launch.follow.roles import Role, is_part_of_agent, role_of
from playhead.launch.guest.children_env import equip
from playhead.launch.guest.variables import Ticket
from playhead.launch.proxy import routes
from playhead.launch.proxy.ports import ProxyPorts, turned
from playhead.launch.proxy.routes import Detour, Origin
from playhead.launch.shims.shim_frames import ShimCall

# The kernel reads no more than this of a script's first line.
_LONGEST_FIRST_LINE = 256
_VARIABLES = tuple(sorted(routes.VARIABLES))
# A placeholder; no call has this name.
_ANY_PARENT = "any:parent"


class FollowedTree:
    """The processes of a command. The command itself was started with `ticket`."""

    def __init__(
        self, command: Sequence[str], ticket: Ticket, ports: ProxyPorts | None = None
    ) -> None:
        """`ports` are the ports of the proxy. They include spare ones for base URLs that programs of the tree set."""
        self._command = tuple(command)
        self._ticket = ticket
        self._spares = None if ports is None else ports.spares
        self._ports = frozenset[int]() if ports is None else ports.numbers
        self._roles: dict[int, Role] = {}
        # Base URLs of a call → those that lead to the proxy, with a placeholder for the call.
        self._led: dict[tuple[str | None, ...], dict[str, str]] = {}
        # Lane and script → number of Python processes so far.
        self._pythons: Counter[tuple[str, str]] = Counter()
        # Processes that run Python and have a lane.
        self._with_lane: set[int] = set()
        # The recorded Python processes that no process of this replay has taken the part of: lane and `sys.argv`.
        self._taped: list[tuple[str, list[str]]] = []

    def begin(self, command: int | None, taped: Sequence[tuple[str, list[str]]] = ()) -> None:
        """Note the pid of the command, which runs now. `taped`: lanes and arguments of the recorded processes."""
        self._taped = list(taped)
        if command is not None:
            self._roles[command] = role_of(_words_of(command) or self._command)

    def is_agent(self, asked: ShimCall) -> bool:
        """Return whether a program that was executed is part of the agent, and not a process call."""
        if asked.how == "path":
            return False
        words = _with_interpreter(asked)
        is_new = asked.how == "child" or self._roles.get(asked.pid) is Role.SETUP
        if is_new and not is_part_of_agent(self._role_above(asked.ppid), words):
            return False
        self._roles[asked.pid] = role_of(words)
        return True

    def is_by_agent(self, asked: ShimCall) -> bool:
        """Return whether an agent started this program, and not a script around it."""
        return self._role_above(asked.ppid) is Role.AGENT

    def start(self, asked: ShimCall) -> tuple[list[str], dict[str, str]]:
        """Return the command line of an agent, and the variables to change, with which it joins the run."""
        ticket = self._ticket
        if asked.run == ticket.run:
            ticket = ticket._replace(
                parent=asked.parent or ticket.parent, lane=asked.lane or ticket.lane
            )
        is_new = asked.how == "child" or asked.pid not in self._with_lane
        if is_new and self._roles.get(asked.pid) is Role.PYTHON:
            # A Python in the place of another one is the rest of the same program, and keeps its lane. Behind
            # `timeout` or `nice`, Python comes in the place of a program that has no lane.
            self._with_lane.add(asked.pid)
            ticket = ticket._replace(lane=self._lane_of_python(ticket.lane, asked))
        env = agent_settings.with_file_variables(asked.argv, asked.env, asked.cwd)
        env = agent_settings.with_inline_settings(
            asked.argv, self._undone(env), asked.cwd, self._turn
        )
        argv = agent_settings.with_settings(
            turned(asked.argv, env, self._turn), env, asked.cwd, self._turn
        )
        argv, env = equip(argv, env, ticket._replace(detours=self._ways(env)))
        return argv, _changes(asked.env, env)

    def _lane_of_python(self, lane: str, asked: ShimCall) -> str:
        """Return the lane of a Python that a script starts. The second one gets its own lane: in a replay each
        process takes calls from the tape independently of the others, so two processes that send the same request
        in one lane would both get the first answer.
        """
        self._pythons[lane, ""] += 1
        name = _script_of(asked.argv)
        if self._pythons[lane, ""] > 1:
            self._pythons[lane, name] += 1
        # Scripts start programs in parallel, in any order. So a replay goes by the arguments, if the tape has them.
        for one in self._taped:
            if (one[0] == lane or one[0].startswith(f"{lane}/")) and _has_arguments(asked, one[1]):
                self._taped.remove(one)
                return one[0]
        return (
            lane if self._pythons[lane, ""] == 1 else f"{lane}/{name}-{self._pythons[lane, name]}"
        )

    def lead(self, asked: ShimCall, parent: str) -> dict[str, str]:
        """Return the variables to change so that the model calls of a process call are recorded as a part of it."""
        if not self._ticket.detours or not parent:
            return {}
        # Most calls of a run have the same base URLs, so their variables are computed once.
        key = tuple(asked.env.get(name) for name in _VARIABLES)
        if key not in self._led:
            env = self._undone(asked.env)
            self._led[key] = routes.led(env, self._ways(env), _ANY_PARENT)[0]
        values = {name: url.replace(_ANY_PARENT, parent, 1) for name, url in self._led[key].items()}
        return {name: value for name, value in values.items() if asked.env.get(name) != value}

    def _ways(self, env: Mapping[str, str]) -> dict[str, Detour]:
        """Return the detours of the command, and new ones for base URLs that were set since."""
        ways = dict(self._ticket.detours or {})
        for name in routes.VARIABLES & env.keys():
            url, way = env[name], ways.get(name)
            is_old = way is not None and (url == way.had or routes.is_through(url, ways))
            if ways and not is_old and (turned_url := self._turn(url)) != url:
                token = next(iter(ways.values())).token
                ways[name] = Detour(through=turned_url, had=url, token=token)
        return ways

    def _turn(self, url: str) -> str:
        """Replace the origin of a URL by the spare port for it. Return the URL unchanged if there is no port, or if
        it leads to the proxy already.
        """
        origin = routes.origin_of(url)
        if origin is None or self._spares is None or _is_ours(origin, self._ports):
            return url
        port = self._spares.port_for(origin)
        return url if port is None else routes.through(url, {origin: port}) or url

    def _undone(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment in which each base URL of a spare port is the original one again."""
        made = dict(env)
        for name in routes.VARIABLES & env.keys():
            origin = routes.origin_of(env[name])
            if origin is None or self._spares is None or not _is_ours(origin, self._ports):
                continue
            if (real := self._spares.origin_at(origin.port)) is not None:
                made[name] = env[name].replace(str(origin), str(real), 1)
        return made

    def _role_above(self, pid: int) -> Role:
        """Return the role of the nearest ancestor whose program is known: a subshell has the role of its shell."""
        for one in _upwards(pid):
            if one in self._roles:
                return self._roles[one]
        return Role.OTHER


def _is_ours(origin: Origin, ports: Collection[int]) -> bool:
    """Return whether a URL leads to the proxy already."""
    return origin.host == "127.0.0.1" and origin.port in ports


def _with_interpreter(asked: ShimCall) -> list[str]:
    """Return the command line as the kernel completes it: a script is preceded by its interpreter."""
    path = os.path.join(asked.cwd or "/", asked.real)
    for root in (f"/proc/{asked.pid}/root", ""):  # its root may have other files
        with suppress(OSError), open(f"{root}{path}", "rb") as file:
            first = os.fsdecode(file.readline(_LONGEST_FIRST_LINE))
            if not first.startswith("#!"):
                return list(asked.argv)
            return [*first[2:].strip().split(None, 1), asked.real, *asked.argv[1:]]
    return list(asked.argv)


def _has_arguments(asked: ShimCall, argv: list[str]) -> bool:
    """Return whether a command line of Python results in this `sys.argv`."""
    return bool(argv) and argv[0] in asked.argv and list(asked.argv[-len(argv) :])[1:] == argv[1:]


def _script_of(argv: Sequence[str]) -> str:
    """A short name for what a Python runs: its script, or the interpreter."""
    scripts = (word for word in argv[1:] if word.endswith(".py"))
    return os.path.basename(next(scripts, argv[0] if argv else "python"))


def _words_of(pid: int) -> list[str]:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    return []


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in after.items() if before.get(name) != value}


def _upwards(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        found = 0
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
            found = int(file.read().rpartition(b")")[2].split()[1])
        pid = found
