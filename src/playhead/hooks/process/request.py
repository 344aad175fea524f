"""Describe the start of a process as one `Call`, for all the functions that start processes.

Knows command lines, environments and kinds of streams; does not know how processes are started or observed.
"""

from __future__ import annotations

import os
import stat

from playhead.events import BY_LIBRARY
from playhead.host.later import Later, pattern
from playhead.recording import deck, where
from playhead.recording.chunks import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import shlex
    from collections.abc import Mapping, Sequence
    from typing import Any

    from playhead.recording.calls import Call
else:
    shlex = Later("shlex")

PIPE, STDOUT, DEVNULL = -1, -2, -3  # the values that `subprocess` defines

_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
# Programs of many trades: their second word says which.
_TRADES = frozenset(
    (
        *("apt", "apt-get", "aws", "az", "brew", "bun", "bundle", "cargo", "claude", "codex"),
        *("conda", "deno", "docker", "dotnet", "gcloud", "gem", "gh", "git", "go", "helm"),
        *("hg", "jj", "just", "kubectl", "make", "nix", "npm", "npx", "pip", "pip3", "pnpm"),
        *("podman", "poetry", "rustup", "svn", "systemctl", "terraform", "uv", "uvx", "yarn"),
    )
)
_INTERPRETER = pattern(r"(?:python|pypy)[\d.]*|node|perl|ruby|php")
_ASSIGNMENT = pattern(r"[A-Za-z_]\w*=")
_STEP = pattern(r"&&|\|\||[|;\n]")
_VERB = pattern(r"[\w:@./-]{1,40}")
_SHORT_SCRIPT = pattern(r"-[a-z]*c")
# More than these are not single variables taken away but an environment made from nothing, and
# which names it lacks says more about the machine than about the program.
_MOST_UNSET = 8


def call_of(
    *,
    via: str,
    argv: Sequence[Any] = (),
    shell: Any = None,
    executable: Any = None,
    cwd: Any = None,
    env: Mapping[Any, Any] | None = None,
    stdin: Any = "inherited",
    stdout: str = "inherited",
    stderr: str = "inherited",
) -> Call:
    """The call as it is recorded. `stdin` is a kind of stream, or the input that is known beforehand."""
    words = [text_of(word) for word in argv]
    script = text_of(shell) if shell is not None else script_of(words)
    request: dict[str, Any] = {"argv": words} if shell is None else {"shell": script}
    if shell is not None and words:
        request["argv"] = words  # the script sees them as $0, $1, …
    if executable is not None:
        request["executable"] = text_of(executable)
    if cwd is not None:
        request["cwd"] = text_of(cwd)
    changed, unset = env_changes(env)
    if changed:
        request["env"] = changed
    request["stdin"] = stdin
    facts: dict[str, Any] = {
        "command": one_line(script) if script is not None else shlex.join(words),
        "via": via,
        "stdout": stdout,
        "stderr": stderr,
    }
    if unset:
        facts["unset"] = unset if len(unset) <= _MOST_UNSET else len(unset)
    if (library := where.loading_library()) is not None:
        facts[BY_LIBRARY] = library
    return deck.Call(boundary="process", name=name_of(words, script), request=request, facts=facts)


def text_of(word: Any) -> str:
    """A path or an argument in any accepted type, as text; other values as their repr."""
    try:
        return os.fsdecode(word)
    except TypeError:
        return str(word)


def script_of(words: Sequence[str]) -> str | None:
    """The script in `bash -lc SCRIPT`, which is the actual command, and which a model may have written."""
    if not words or os.path.basename(words[0]) not in _SHELLS:
        return None
    for at, word in enumerate(words[1:-1], 1):
        if _SHORT_SCRIPT.fullmatch(word):
            # `bash -c -l SCRIPT`: further options may follow.
            return next((one for one in words[at + 1 :] if one[:1] != "-"), words[at + 1])
        if not word.startswith("-"):
            return None
    return None


def one_line(script: str) -> str:
    """The first line that says something. Verbatim: the LLM response that holds it is looked for."""
    return next((line.strip() for line in script.splitlines() if line.strip()), "")


def name_of(words: Sequence[str], script: str | None = None) -> str:
    """A display name: `git status`, `pytest`, `python -m http.server`."""
    if script is not None:
        words = _first_command(script) or words
    if not words:
        return "?"
    program = os.path.basename(words[0]) or words[0]
    rest = words[1:]
    if program in _TRADES:
        verb = next((word for word in rest if not word.startswith("-")), "")
        return f"{program} {verb}" if _VERB.fullmatch(verb) else program
    if _INTERPRETER.fullmatch(program) and rest:
        if rest[0] == "-m" and len(rest) > 1:
            return f"{program} -m {rest[1]}"
        if rest[0].startswith("-"):
            return f"{program} {rest[0]}"
        return f"{program} {os.path.basename(rest[0])}"
    return program


def _first_command(script: str) -> list[str]:
    """The words of the first command that does something: not `cd there &&`, not `VAR=1`."""
    for step in _STEP.split(script):
        words = step.lstrip("({! \t").rstrip(")} \t").split()
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        if words and words[0] not in ("cd", "set", "export", "source", ".", "#"):
            return words
    return []


def env_changes(env: Mapping[Any, Any] | None) -> tuple[dict[str, str], list[str]]:
    """Variables that the child has otherwise than we do, and the names of those it lacks."""
    if env is None or env is os.environ:
        return {}, []
    told = {text_of(name): text_of(value) for name, value in env.items()}
    changed = {
        name: value
        for name, value in told.items()
        if os.environ.get(name) != value and not _ours(name)
    }
    unset = [name for name in os.environ if name not in told and not _ours(name)]
    return changed, sorted(unset)


def _ours(name: str) -> bool:
    return name.startswith("PLAYHEAD_")


def known_input(data: Any) -> Any:
    """The input that `subprocess.run(input=…)` is about to send, as part of the request."""
    if isinstance(data, str):
        return {"text": data}
    return dict(as_text(bytes(data)))


def kind_of(given: Any) -> str:
    """The kind of stream that a caller gave to `Popen`: an answer that is the same in every run."""
    if given is None:
        return "inherited"
    if isinstance(given, int) and given < 0:
        return {PIPE: "pipe", STDOUT: "stdout", DEVNULL: "null"}.get(given, "closed")
    fd = fd_of(given)
    return "closed" if fd is None else kind_of_fd(fd)


def fd_of(given: Any) -> int | None:
    try:
        return given if isinstance(given, int) else int(given.fileno())
    except (AttributeError, OSError, ValueError):
        return None  # the caller's mistake: `Popen` itself says so


def kind_of_fd(fd: int) -> str:
    # Our own streams are a terminal in one run and a pipe in CI, so they are not part of the request.
    if 0 <= fd <= 2:
        return "inherited"
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return "closed"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return "pipe"
    return "tty" if os.isatty(fd) else "device"
