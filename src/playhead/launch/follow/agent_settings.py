"""Base URLs in the settings files of agents, led through the proxy by the agents' own switches.

Knows where Claude Code, Codex and Gemini CLI keep settings and which setting wins; does not know ports. Reads
files, writes none.

- Claude Code: the environment < user settings < project settings < `--settings`.
- Codex: `config.toml` < `-c`, the last one wins.
- Gemini CLI: `.env` < the environment.
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
    return found


def with_dotenv(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    """The environment with the base URLs that Gemini CLI would take from the nearest `.env` file."""
    if agent_in(argv) != "gemini":
        return dict(env)
    found = next((read for path in _dotenv_files(env, cwd) if (read := _dotenv(path))), {})
    return {**found, **env}


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
    """Where the value of the last `--settings` is: the others have no effect."""
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
        # What the command line says wins, and is led through the proxy already.
        said = any(key.rpartition(".")[0] in word or key in word for word in words if "=" in word)
        if not said and (new := turn(url)) != url:
            added += ["-c", f'{key}="{new}"']
    return [*words[:at], *added, *words[at:]]


def _dotenv_files(env: Mapping[str, str], cwd: str) -> Iterator[str]:
    folder = cwd
    while True:
        yield os.path.join(folder, ".gemini", ".env")
        yield os.path.join(folder, ".env")
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    home = env.get("HOME", "")
    yield os.path.join(home, ".gemini", ".env")
    yield os.path.join(home, ".env")


def _dotenv(path: str) -> dict[str, str] | None:
    """The base URLs in a file; None: there is no such file."""
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


def _base_urls(text: str) -> dict[str, str]:
    """The base URLs in a `config.toml`, by their dotted keys. Python 3.10 has no parser for TOML; Codex itself
    says what is wrong with a file that is not well-formed.
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
