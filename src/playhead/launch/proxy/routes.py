"""Choose the variables that hold the base URLs of models, and change them to lead through the proxy. Pure.

A detour changes only the origin of a URL and keeps its path, so it also works for a tool that rebuilds URLs. Below a
hooked Python, a first path segment (`/~PARENT`) names the call that started the program and, if the program had a
base URL of its own, its origin (`/~PARENT~https~host:443~TOKEN`). The token is known only to processes of the run:
without it every process of the machine could use the proxy to reach any host.
"""

from __future__ import annotations

from playhead.host.later import Later
from playhead.host.lean import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hmac
    from collections.abc import Iterable, Mapping

    Detours = Mapping[str, "Detour"]
else:
    hmac = Later("hmac")


_ANTHROPIC = "https://api.anthropic.com"
_OPENAI = "https://api.openai.com/v1"

# The variables that agents read, and the origins they use without them.
_DEFAULTS = {
    "ANTHROPIC_BASE_URL": _ANTHROPIC,
    "OPENAI_BASE_URL": _OPENAI,
    "OPENAI_API_BASE": _OPENAI,
    "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    "CODE_ASSIST_ENDPOINT": "https://cloudcode-pa.googleapis.com",
}
# Two names for the same setting. If the user set one of them, both lead to its value: a tool may read either.
_SAME = {"OPENAI_BASE_URL": "OPENAI_API_BASE", "OPENAI_API_BASE": "OPENAI_BASE_URL"}
# Variables that have no default: they are changed only if the user has set them.
_WHERE_SET = (
    *("ANTHROPIC_API_BASE", "ANTHROPIC_VERTEX_BASE_URL", "AZURE_API_BASE"),
    *("AZURE_OPENAI_ENDPOINT", "CEREBRAS_BASE_URL", "DEEPSEEK_API_BASE", "DEEPSEEK_BASE_URL"),
    *("GEMINI_API_BASE", "GOOGLE_VERTEX_BASE_URL", "GROQ_BASE_URL", "LITELLM_BASE_URL"),
    *("MISTRAL_BASE_URL", "OLLAMA_API_BASE", "OPENROUTER_API_BASE", "OPENROUTER_BASE_URL"),
    *("TOGETHER_BASE_URL", "XAI_BASE_URL"),
)
# All variables that may name the address of a model.
VARIABLES = frozenset({*_DEFAULTS, *_WHERE_SET})
_MARK = "/~"


# The scheme of a port whose origin is not known yet.
SPARE = "spare"


class Origin(NamedTuple):
    """Scheme, host and port of an address."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        usual = {"http": 80, "https": 443}.get(self.scheme)
        return f"{self.scheme}://{self.host}{'' if self.port == usual else f':{self.port}'}"

    @property
    def authority(self) -> str:
        """Return the host and port as in the Host header."""
        return str(self).partition("://")[2]


class Detour(NamedTuple):
    """One variable: its value for the proxy, and its value in the program's own environment."""

    through: str
    had: str | None
    # The token of the run; see `arrived`.
    token: str = ""


def addresses(env: Mapping[str, str]) -> dict[str, str]:
    """Return the address of each variable: its value, or the default of agents."""
    found = {name: env.get(name) or default for name, default in _DEFAULTS.items()}
    for name, other in _SAME.items():
        if not env.get(name) and env.get(other):
            found[name] = env[other]
    found.update({name: env[name] for name in _WHERE_SET if env.get(name)})
    return {name: url for name, url in found.items() if origin_of(url) is not None}


def guessed(target: str, headers: Iterable[str], found: Mapping[str, str]) -> Origin | None:
    """Guess the origin of a request that arrived at the port for all origins, from the form of the vendors' APIs."""
    names = {name.lower() for name in headers}
    path = target.partition("?")[0]
    if "anthropic-version" in names or "x-api-key" in names or path.endswith("/v1/messages"):
        variable = "ANTHROPIC_BASE_URL"
    elif "x-goog-api-key" in names or "/v1beta/" in path or "key=" in target.partition("?")[2]:
        variable = "GOOGLE_GEMINI_BASE_URL"
    elif path.startswith("/v1internal"):
        variable = "CODE_ASSIST_ENDPOINT"
    elif path.startswith("/api/"):
        variable = "ANTHROPIC_BASE_URL"  # requests of Claude Code that are not model calls
    else:
        variable = "OPENAI_BASE_URL"
    return origin_of(found[variable])


def exports(port: int, host: str = "127.0.0.1") -> dict[str, str]:
    """Return the variables that lead agents to the port for all origins."""
    return {name: f"http://{host}:{port}{_path(url)}" for name, url in _DEFAULTS.items()}


def origins(urls: Iterable[str]) -> list[Origin]:
    """Each origin once, in order."""
    return list(dict.fromkeys(one for url in urls if (one := origin_of(url)) is not None))


def detours(
    env: Mapping[str, str],
    found: Mapping[str, str],
    ports: Mapping[Origin, int],
    token: str = "",
) -> dict[str, Detour]:
    """The detour of each variable, by the port that serves its origin."""
    ways = {name: through(url, ports) for name, url in found.items()}
    return {
        name: Detour(through=way, had=env.get(name), token=token)
        for name, way in ways.items()
        if way is not None
    }


def through(url: str, ports: Mapping[Origin, int]) -> str | None:
    """Replace the origin of a URL by the port that serves it. None: no port does."""
    origin = origin_of(url)
    if origin is None or origin not in ports:
        return None
    return f"http://127.0.0.1:{ports[origin]}{_path(url)}"


def led(
    env: Mapping[str, str], ways: Detours, parent: str | None
) -> tuple[dict[str, str], Detours]:
    """The variables for a child whose environment is `env`, and the detours it must know.

    `parent`: the call that starts it; None: the command itself.
    """
    values: dict[str, str] = {}
    detours: dict[str, Detour] = {}
    for name, way in ways.items():
        own = env.get(name)
        if own and is_through(own, ways):
            own = way.had
        other = origin_of(own) if own and own != way.had else None
        if own and own != way.had and other is None:
            continue  # not a URL: leave the program's value alone
        local, path = _split(way.through)
        if own and other is not None:
            path = _path(own)
        token = "" if parent is None and other is None else f"{_MARK}{parent or ''}"
        if other is not None:
            token += f"~{other.scheme}~{other.host}:{other.port}~{way.token}"
        values[name] = f"{local}{token}{path}"
        detours[name] = Detour(through=way.through, had=own, token=way.token)
    return values, detours


def is_through(url: str, ways: Detours) -> bool:
    """Return whether an address leads to the proxy already."""
    return _split(url)[0] in {_split(way.through)[0] for way in ways.values()}


def arrived(target: str, usual: Origin, token: str) -> tuple[Origin, str, str | None] | None:
    """Parse the target of a request: its origin, its path, and the call that started the client.

    None: it names an origin without the token of the run.
    """
    if not target.startswith(_MARK):
        return usual, target, None
    first, slash, rest = target[len(_MARK) :].partition("/")
    parent, *other = first.split("~")
    if other:
        named = origin_of(f"{other[0]}://{other[1]}") if len(other) == 3 else None
        # Encoded, because `compare_digest` refuses text that is not ASCII.
        is_known = bool(token) and hmac.compare_digest(other[-1].encode(), token.encode())
        if named is None or not is_known:
            return None
        usual = named
    return usual, f"{slash or '/'}{rest}", parent or None


def origin_of(url: str) -> Origin | None:
    """Return the origin of a URL. None: it is not the URL of a server."""
    scheme, colon, rest = url.strip().partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in ("http", "https"):
        return None
    authority = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
    host, _, port = authority.rpartition(":") if _has_port(authority) else (authority, "", "")
    if not host:
        return None
    return Origin(scheme, host.lower(), int(port) if port else 443 if scheme == "https" else 80)


def _has_port(authority: str) -> bool:
    return authority.rpartition(":")[2].isdigit() and not authority.endswith("]")


def _split(url: str) -> tuple[str, str]:
    scheme, _, rest = url.strip().partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}", f"{slash}{path}"


def _path(url: str) -> str:
    return _split(url)[1]
