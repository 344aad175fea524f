"""Classify a program by its command line: an agent, a shell, a wrapper, a Python, or something else. Pure.

A recorded command is rarely the agent alone. `timeout 60 claude`, `bash run.sh`, `make agent` and `npx codex` start
it, and Codex and Gemini CLI start themselves a second time. A program that is part of the agent runs in a replay as
well; every other program is a process call, which a replay serves from the tape.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum

from playhead.launch.guest.python_argv import is_closed, is_python

_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
# Wrappers that run exactly one program: the one that the user means.
_PREFIXES = frozenset(
    {
        *("chrt", "doas", "dumb-init", "env", "flock", "ionice", "nice", "nohup", "numactl"),
        *("setsid", "stdbuf", "sudo", "taskset", "time", "timeout", "tini", "unshare"),
    }
)
# Runners that start many programs; one of them is the program that the user means.
_RUNNERS = frozenset(
    {
        *("bunx", "direnv", "dotenv", "gmake", "hatch", "just", "make", "npm", "npx", "pipx"),
        *("pnpm", "pnpx", "poetry", "task", "tox", "uv", "uvx", "yarn"),
    }
)
_FINDERS = frozenset({"asdf", "pyenv"})
_OF_PYTHON = frozenset({"hatch", "pipx", "poetry", "uv", "uvx"})
_INTERPRETERS = frozenset({"bun", "deno", "env", "node", "nodejs"})
_AGENTS = frozenset(
    {
        *("aider", "amp", "claude", "codex", "copilot", "crush", "cursor-agent", "gemini", "goose"),
        *("kimi", "opencode", "qwen"),
    }
)
# Packages whose main file has a name that does not identify the agent.
_PACKAGES = {
    "@anthropic-ai/claude-code": "claude",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen",
    "@sourcegraph/amp": "amp",
    "@github/copilot": "copilot",
    "opencode-ai": "opencode",
}
_ENDINGS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".exe")  # OpenCode's binary is an .exe everywhere
# Programs that trace others: a process has only one tracer.
_TRACERS = frozenset({"gdb", "ltrace", "lldb", "perf", "rr", "strace", "valgrind"})


class Role(Enum):
    """What a program does for the run."""

    AGENT = "agent"
    PYTHON = "python"  # a Python that loads the hooks
    SHELL = "shell"
    PREFIX = "prefix"
    RUNNER = "runner"
    SCRIPT = "script"  # a script of node or a similar interpreter
    SETUP = "setup"  # prepares its own process, which then executes something else
    OTHER = "other"


def role_of(argv: Sequence[str]) -> Role:
    """The role of a program that is started with these words."""
    if not argv:
        return Role.OTHER
    if agent_in(argv) is not None:
        return Role.AGENT
    if _is_setup(argv):
        return Role.SETUP
    if _keeps_house(argv):
        return Role.PREFIX  # and so are the programs that it runs
    words = _without_interpreter(argv)
    name = _name(words[0])
    if name in _RUNNERS:
        return Role.RUNNER
    if is_python(words[0]):
        return Role.OTHER if is_closed(words) else Role.PYTHON
    if name in _SHELLS and len(words) > 1 and _finds_python(words[1]):
        return Role.PREFIX
    if name in _SHELLS:
        return Role.SHELL
    if name in _PREFIXES:
        return Role.PREFIX
    before = argv[: len(argv) - len(words)]
    is_script = any(_name(word) in _INTERPRETERS - {"env"} for word in before)
    return Role.SCRIPT if is_script else Role.OTHER


def agent_in(argv: Sequence[str]) -> str | None:
    """Return the name of the agent that this command line starts. None: it starts no known agent."""
    words = _without_interpreter(argv)
    if len(words) > 1 and _name(words[0]) in _SHELLS and not words[1].startswith("-"):
        words = words[1:]  # a script
    first = words[0] if words else ""
    for package, agent in _PACKAGES.items():
        if f"/{package}/" in first and _name(first) in ("cli", "index", "gemini", agent, "main"):
            return agent
    name = _name(first)
    # Codex and Claude Code also run themselves as tools: under another name, or with such a switch.
    inner = any(word.startswith("--codex-run-as-") for word in words[1:2])
    return name if name in _AGENTS and not inner else None


def program_at(argv: Sequence[str]) -> int:
    """Return the position of the program's own name: after `env` and an interpreter."""
    return len(argv) - len(_without_interpreter(argv))


def is_part_of_agent(parent: Role, argv: Sequence[str]) -> bool:
    """Return whether a program is part of the agent, too, if a program of the role `parent` starts it."""
    role = role_of(argv)
    if role in (Role.AGENT, Role.SETUP) or parent is Role.PREFIX or _keeps_house(argv):
        return True
    if parent is Role.RUNNER:
        return role is not Role.OTHER
    if parent not in (Role.SHELL, Role.PYTHON):
        return False
    if role is Role.PREFIX:
        inner = _after_prefix(argv)
        return bool(inner) and is_part_of_agent(parent, inner)
    return role is Role.PYTHON or (role is Role.RUNNER and _runs_agent(argv))


def _is_setup(argv: Sequence[str]) -> bool:
    """Return whether Codex prepares a tool. Codex starts its tools through a second copy of itself, and ends them if
    their parent is not Codex: a shim that ran this copy as its own child would break it. The copy replaces itself
    with the tool.
    """
    return argv[1:2] == ["--codex-run-as-process-setup"]


def _keeps_house(argv: Sequence[str]) -> bool:
    """Return whether a program serves the agent itself, so that a replay must run it.

    Claude Code lets a shell write the user's functions and aliases into a file, and starts its tools differently if
    that file is missing. A taped shell would not write it.

    uv queries an interpreter and the loader, unless its cache has the answer from an earlier run.
    """
    if any(word.startswith("SNAPSHOT_FILE=") and "shell-snapshots" in word for word in argv):
        return True
    if _name(argv[0]).startswith(("ld-linux", "ld-musl")):
        return list(argv[1:]) in ([], ["--version"])
    return is_python(argv[0]) and any("get_interpreter_info" in word for word in argv[1:])


def _finds_python(script: str) -> bool:
    """Return whether a shell script only executes an interpreter, as `python` of pyenv and asdf does."""
    return is_python(script) or _name(script) in _FINDERS


def _after_prefix(argv: Sequence[str]) -> Sequence[str]:
    """`timeout -k 5 60s claude -p x` → `claude -p x`."""
    for at, word in enumerate(argv[1:], 1):
        if not (word.startswith("-") or word[:1].isdigit() or "=" in word):
            return argv[at:]
    return ()


def _runs_agent(argv: Sequence[str]) -> bool:
    """Return whether a runner was started for one program: `npx claude`, `uv run agent.py`."""
    words = _without_interpreter(argv)
    if _name(words[0]) in _OF_PYTHON:
        return len(words) > 1
    return any(agent_in([word]) or word.partition("@latest")[0] in _PACKAGES for word in words[1:])


def traces_others(argv: Sequence[str]) -> bool:
    """Return whether this program cannot be followed because it traces its own children."""
    return bool(argv) and _name(argv[0]) in _TRACERS


def _without_interpreter(argv: Sequence[str]) -> Sequence[str]:
    """`/usr/bin/env node --flag script.js x` → `script.js x`; without a script, the same words. `env` replaces
    itself with the program that follows, so it has no effect on the role.
    """
    at = 0
    while at < len(argv) and (interpreter := _name(argv[at])) in _INTERPRETERS:
        after = at + 1
        while after < len(argv) and (
            argv[after].startswith("-") or (interpreter == "env" and "=" in argv[after])
        ):
            after += 1
        evaluates = any(word in _EVALUATES for word in argv[at + 1 : after])
        if after >= len(argv) or (interpreter != "env" and evaluates):
            break
        at = after
    return argv[at:]


_EVALUATES = frozenset({"-e", "--eval", "-p", "--print", "-"})


def _name(word: str) -> str:
    name = os.path.basename(word)
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name
