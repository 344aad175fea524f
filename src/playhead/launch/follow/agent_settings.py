"""Redirect the base URLs in agents' settings files to the proxy, with the agents' own switches and variables.

Knows where Claude Code, Codex, Gemini CLI, Qwen Code and OpenCode keep settings and which setting wins; does not
know ports. Reads files, writes none.

- Claude Code: the environment < user settings < project settings < `--settings`.
- Codex: `config.toml` < `-c`, the last one wins.
- Gemini CLI: `.env` < the environment.
- Qwen Code: `security.auth.baseUrl` of settings < `.env` < the environment.
- OpenCode: user settings < project settings < `OPENCODE_CONFIG_CONTENT`; objects are merged.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from playhead.launch.follow.roles import agent_in, program_at
from playhead.launch.proxy.routes import VARIABLES, origin_of

_LONGEST = 1 << 20
_SETTINGS = "--settings"
_SECTION = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(r"\s*([\w.\"-]+)\s*=\s*(.+)")
_VALUE = re.compile(r"[\"']([^\"']*)[\"']")
_INLINE = re.compile(r"\bbase_url\s*=\s*[\"']([^\"']*)[\"']")
# Strings match as well, so that a substitution keeps them and removes only comments.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')
_OPENCODE = "OPENCODE_CONFIG_CONTENT"
_KEY = re.compile(r"openai_base_url|model_providers\.[\w\"-]+\.base_url")


def with_settings(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, turn: Callable[[str], str]
) -> list[str]:
    """The command with switches that replace each base URL of its settings files by `turn` of it."""
    agent = agent_in(argv)
    if agent == "claude":
        return _claude(list(argv), env, cwd, turn)
    if agent == "codex":
        return _codex(list(argv), env, turn)
    return list(argv)


def urls_in(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> list[str]:
    """The base URLs that `with_settings` would replace."""
    found: list[str] = []

    def note(url: str) -> str:
        found.append(url)
        return url

    with_settings(argv, env, cwd, note)
    with_inline_settings(argv, env, cwd, note)
    return found


def with_file_variables(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    """Return the environment with the base URLs that Gemini CLI and Qwen Code would take from files: the nearest
    `.env`, and settings. The environment overrides both, so a variable leads these agents through the proxy.
    """
    agent = agent_in(argv)
    if agent not in ("gemini", "qwen"):
        return dict(env)
    folder = f".{agent}"
    found = next((read for path in _dotenv_files(env, cwd, folder) if (read := _dotenv(path))), {})
    if agent == "qwen":
        found = {**_qwen(env, cwd), **found}
    return {**found, **env}


def with_inline_settings(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, turn: Callable[[str], str]
) -> dict[str, str]:
    """The environment with settings for OpenCode that replace each base URL of its files by `turn` of it."""
    if agent_in(argv) != "opencode":
        return dict(env)
    own = _jsonc(env.get(_OPENCODE, "{}"))
    urls: dict[str, str] = {}
    for settings in (*(_jsonc(_read(path) or "{}") for path in _opencode_files(env, cwd)), own):
        urls.update(_provider_urls(settings))
    turned = {name: new for name, url in urls.items() if (new := turn(url)) != url}
    for name, url in turned.items():
        options = _object(_object(_object(own, "provider"), name), "options")
        options["baseURL"] = url
    return {**env, _OPENCODE: json.dumps(own)} if turned else dict(env)


def _qwen(env: Mapping[str, str], cwd: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in (env.get("HOME", ""), cwd):
        settings = _jsonc(_read(os.path.join(folder, ".qwen", "settings.json")) or "{}")
        security = settings.get("security")
        auth = security.get("auth") if isinstance(security, dict) else None
        url = auth.get("baseUrl") if isinstance(auth, dict) else None
        if isinstance(url, str) and origin_of(url) is not None:
            found["OPENAI_BASE_URL"] = url
        found.update(_urls(settings))
    return found


def _opencode_files(env: Mapping[str, str], cwd: str) -> Iterator[str]:
    """Yield the settings files of OpenCode. Later files override earlier ones."""
    home = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    names = ("config.json", "opencode.json", "opencode.jsonc")
    yield from (os.path.join(home, "opencode", name) for name in names)
    if path := env.get("OPENCODE_CONFIG"):
        yield path
    for folder in reversed(list(_upwards(cwd))):
        yield from (os.path.join(folder, name) for name in names[1:])
        yield from (os.path.join(folder, ".opencode", name) for name in names[1:])


def _provider_urls(settings: Mapping[str, Any]) -> dict[str, str]:
    providers = settings.get("provider")
    found: dict[str, str] = {}
    for name, provider in providers.items() if isinstance(providers, dict) else ():
        options = provider.get("options") if isinstance(provider, dict) else None
        url = options.get("baseURL") if isinstance(options, dict) else None
        if isinstance(url, str) and origin_of(url) is not None:
            found[name] = url
    return found


def _object(outer: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object under this name; create it if it is missing."""
    if not isinstance(outer.get(name), dict):
        outer[name] = {}
    inner: dict[str, Any] = outer[name]
    return inner


def _claude(
    words: list[str], env: Mapping[str, str], cwd: str, turn: Callable[[str], str]
) -> list[str]:
    own = env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", ""), ".claude")
    files = (
        os.path.join(own, "settings.json"),
        os.path.join(cwd, ".claude", "settings.json"),
        os.path.join(cwd, ".claude", "settings.local.json"),
    )
    switch = _switch(words)
    given = {} if switch is None else _json_or_file(words[switch], cwd)
    urls: dict[str, str] = {}
    for settings in (*(_json(path) for path in files), given):
        urls.update(_urls(settings))
    turned = {name: new for name, url in urls.items() if (new := turn(url)) != url}
    if not turned:
        return words
    variables = given.get("env")
    merged = {**given, "env": {**(variables if isinstance(variables, dict) else {}), **turned}}
    if switch is not None:
        words[switch] = json.dumps(merged)
        return words
    at = program_at(words) + 1
    return [*words[:at], _SETTINGS, json.dumps(merged), *words[at:]]


def _switch(words: Sequence[str]) -> int | None:
    """Return the position of the value of the last `--settings`: earlier ones have no effect."""
    places = [at for at in range(1, len(words)) if words[at - 1] == _SETTINGS]
    return places[-1] if places else None


def _urls(settings: Mapping[str, Any]) -> dict[str, str]:
    variables = settings.get("env")
    if not isinstance(variables, dict):
        return {}
    return {
        name: url
        for name, url in variables.items()
        if name in VARIABLES and isinstance(url, str) and origin_of(url) is not None
    }


def _codex(words: list[str], env: Mapping[str, str], turn: Callable[[str], str]) -> list[str]:
    home = env.get("CODEX_HOME") or os.path.join(env.get("HOME", ""), ".codex")
    found = _base_urls(_read(os.path.join(home, "config.toml")) or "")
    at = program_at(words) + 1
    added: list[str] = []
    for key, url in found.items():
        # Settings on the command line win, and lead through the proxy already.
        said = any(key.rpartition(".")[0] in word or key in word for word in words if "=" in word)
        if not said and (new := turn(url)) != url:
            added += ["-c", f'{key}="{new}"']
    return [*words[:at], *added, *words[at:]]


def _dotenv_files(env: Mapping[str, str], cwd: str, own: str) -> Iterator[str]:
    """Yield the `.env` files, nearest first. `own` is the agent's folder, such as `.gemini`."""
    for folder in (*_upwards(cwd), env.get("HOME", "")):
        yield os.path.join(folder, own, ".env")
        yield os.path.join(folder, ".env")


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def _dotenv(path: str) -> dict[str, str] | None:
    """Return the base URLs in a file. None: the file does not exist."""
    text = _read(path)
    if text is None:
        return None
    pairs = (line.strip().removeprefix("export ").partition("=") for line in text.splitlines())
    values = {name.strip(): value.strip().strip("\"'") for name, sign, value in pairs if sign}
    return {name: url for name, url in values.items() if name in VARIABLES and origin_of(url)}


def _json_or_file(given: str, cwd: str) -> dict[str, Any]:
    if given.lstrip().startswith("{"):
        with suppress(ValueError):
            found = json.loads(given)
            return found if isinstance(found, dict) else {}
        return {}
    return _json(os.path.join(cwd, given))


def _json(path: str) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(_read(path) or "{}")
        return found if isinstance(found, dict) else {}
    return {}


def _jsonc(text: str) -> dict[str, Any]:
    """Parse an object in JSON with comments and trailing commas. Any other text gives an empty object."""
    plain = _COMMENT.sub(lambda hit: hit[1] or "", text)
    with suppress(ValueError):
        found = json.loads(_TRAILING_COMMA.sub(lambda hit: hit[1] or "", plain))
        return found if isinstance(found, dict) else {}
    return {}


def _base_urls(text: str) -> dict[str, str]:
    """Return the base URLs in a `config.toml`, by their dotted keys. Python 3.10 has no TOML parser. If the file is
    malformed, Codex itself reports that.
    """
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if hit := _SECTION.match(line):
            section = f"{hit[1].strip()}."
        elif (hit := _ASSIGNMENT.match(line)) is None:
            continue
        elif (url := _VALUE.match(hit[2])) is not None:
            found[f"{section}{hit[1]}"] = url[1]
        elif (url := _INLINE.search(hit[2])) is not None:
            found[f"{section}{hit[1]}.base_url"] = url[1]
    return {key: url for key, url in found.items() if _KEY.fullmatch(key) and origin_of(url)}


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_LONGEST)
    except (OSError, ValueError):
        return None
