"""Reserve the proxy's ports before the command starts, and point the command to them.

Knows sockets, the command's environment, and the command-line switch of agents that ignore base URL variables
(Codex). A switch is added only where the command line makes it safe. Does not know HTTP.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence

from playhead import clock
from playhead.launch.proxy.routes import SPARE, Detour, Origin, addresses, detours, origins, through

_DEFAULT = "https://api.openai.com/v1"
_URL = re.compile(r"https?://[^\s\"'\\,}\]]+")
_SETS_A_URL = re.compile(r"\s*(?:openai_base_url|model_providers\b[^=]*)\s*=")
_SETS_A_PROVIDER = re.compile(r"\s*(?:openai_base_url|model_provider|profile|oss_provider)\s*=")
# Words with which Codex may be told to use another server than its usual one.
_OTHERWISE = frozenset({"--oss", "--local-provider", "-p", "--profile", "--remote"})
# Agents that read the variables, and subcommands that do no agent work.
_AGENTS = frozenset({"claude", "gemini", "opencode", "crush", "goose", "qwen"})
_IDLE = frozenset(
    {
        *("login", "logout", "mcp", "completion", "features", "help", "plugin", "update", "apply"),
        *("-h", "--help", "-v", "-V", "--version", "doctor", "install", "auth", "setup-token"),
    }
)

Turn = Callable[[str], str]


def addresses_in(command: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The addresses that the command line itself contains, which the proxy must serve too."""
    if not is_codex(command):
        return []
    named = [url for at in _settings(command) for url in _urls(command[at])]
    return named or ([_DEFAULT] if _is_safe(command, env) else [])


def turned(command: Sequence[str], env: Mapping[str, str], turn: Turn) -> list[str]:
    """The command with its addresses turned to the proxy: those it names, or the usual one."""
    words = list(command)
    if not is_codex(words):
        return words
    named = [at for at in _settings(words) if _urls(words[at])]
    for at in named:
        words[at] = _URL.sub(lambda hit: turn(hit.group()), words[at])
    if not named and _is_safe(words, env):
        at = _program(words) + 1
        words[at:at] = ["-c", f'openai_base_url="{turn(_DEFAULT)}"']
    return words


def why_silent(command: Sequence[str]) -> str | None:
    """Return the likely reason why an agent made no recorded model call. None: it is not a known agent, or its
    command does no agent work.
    """
    name = next((word.rpartition("/")[2] for word in command[:1]), "")
    if _IDLE & set(command) or not (name in _AGENTS or is_codex(command)):
        return None
    if is_codex(command):
        return (
            "none of its calls passed the proxy: Codex has a login or a configuration of its own. Name its "
            "server, for a ChatGPT login -c 'openai_base_url=\"https://chatgpt.com/backend-api/codex\"'"
        )
    return "none of its calls passed the proxy: its own settings may name another server"


def is_codex(command: Sequence[str]) -> bool:
    return _program(command) >= 0


def _program(command: Sequence[str]) -> int:
    """Return the position of the program in the command: `codex`, `npx @openai/codex`, `node …/codex.js`."""
    for at, word in enumerate(command[:3]):
        name = word.rpartition("/")[2]
        if name in ("codex", "codex.js") or "@openai/codex" in word:
            return at
        if name not in ("npx", "bunx", "node", "bun", "-y", "--yes", "env", "exec"):
            break
    return -1


def _settings(command: Sequence[str]) -> list[int]:
    """Return the positions of `-c KEY=VALUE`, in all its forms, for keys that hold addresses."""
    found = []
    for at, word in enumerate(command):
        before = command[at - 1] if at else ""
        text = word if before in ("-c", "--config") else _joined(word)
        if text is not None and _SETS_A_URL.match(text):
            found.append(at)
    return found


def _joined(word: str) -> str | None:
    for prefix in ("--config=", "-c"):
        if word.startswith(prefix) and len(word) > len(prefix):
            return word[len(prefix) :]
    return None


def _urls(word: str) -> list[str]:
    return _URL.findall(word)


def _is_safe(command: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether the command uses the usual server: it has a key, and no setting names another server."""
    words = set(command)
    if _OTHERWISE & words or _IDLE & words or not env.get("CODEX_API_KEY"):
        return False
    for word in command:
        if _SETS_A_PROVIDER.match(_joined(word) or word):
            return False
    home = env.get("CODEX_HOME") or os.path.join(env.get("HOME", ""), ".codex")
    return not _configures(os.path.join(home, "config.toml"))


def _configures(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return any(_SETS_A_PROVIDER.match(line) for line in file)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True  # it has a value that we cannot interpret


_BACKLOG = 256


def listen(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """Return a listener on loopback; port 0 means any free port. OSError: the port is taken."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


# Below the ports that systems give to servers that ask for any port, and without well-known services.
_APART = range(28_100, 29_400)


def listen_apart(listen: Callable[..., socket.socket]) -> socket.socket:
    """Return a listener whose port no server gets that asks for any free one.

    A recorded model server on loopback is gone in a replay, and its port is free there. If the proxy got that port, the
    taped base URL of the server would be taken for one that leads to the proxy already, and to another origin.
    """
    for _ in range(8):
        try:
            return listen(_APART[int.from_bytes(clock.urandom(2), "big") % len(_APART)])
        except OSError:  # taken
            continue
    return listen()


class SparePorts:
    """Ports for origins that become known while the command runs: a wrapper may set a base URL."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._free = list(ports)
        self._taken: dict[Origin, int] = {}
        self.is_withdrawn = False

    def port_for(self, origin: Origin) -> int | None:
        """Return the port for this origin. None: other origins have taken all ports."""
        if origin not in self._taken and self._free:
            self._taken[origin] = self._free.pop(0)
        return self._taken.get(origin)

    def withdraw(self) -> None:
        """Assign no more ports: another process assigned them, and this one does not know to which origins."""
        self._free.clear()
        self.is_withdrawn = True

    def origin_at(self, port: int) -> Origin | None:
        return next((origin for origin, one in self._taken.items() if one == port), None)


_SPARES = 4


class ProxyPorts:
    """One listener for each origin that the command is likely to call. The command's environment and command line
    are made from the port numbers before the listeners are served: until then, clients wait in the backlog.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        listen: Callable[..., socket.socket] = listen,
        *,
        followed: bool = False,
        urls: Sequence[str] = (),
    ) -> None:
        """`listen` creates a listener that the command can reach. OSError: there is no free port.

        `followed`: agents may be started by programs of the command, with base URLs of their own. `urls` are
        those of its settings files.
        """
        found = addresses(env)
        self.env = dict(env)
        self.listeners: dict[Origin, socket.socket] = {}
        for origin in origins([*found.values(), *addresses_in(command, env), *urls]):
            self.listeners[origin] = listen_apart(listen)
        self._ports = {origin: one.getsockname()[1] for origin, one in self.listeners.items()}
        spares = [listen_apart(listen) for _ in range(_SPARES if followed else 0)]
        self.spares = SparePorts([one.getsockname()[1] for one in spares])
        for number, one in enumerate(spares):
            self.listeners[Origin(SPARE, "", number)] = one
        self.numbers = frozenset(one.getsockname()[1] for one in self.listeners.values())
        self.token = clock.urandom(16).hex()
        self.detours: dict[str, Detour] = detours(env, found, self._ports, self.token)
        # The command with the addresses in its arguments replaced by those of the proxy.
        self.command = turned(command, env, self.turn)

    def turn(self, url: str) -> str:
        """Replace the origin of a URL by the port that serves it, if there is one."""
        return through(url, self._ports) or url

    def close(self) -> None:
        for listener in self.listeners.values():
            listener.close()
