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
_KINDS = {PIPE: "pipe", STDOUT: "stdout", DEVNULL: "null"}

_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
# Programs with subcommands: their second word is part of the name.
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
# If more variables than this are missing, the caller did not remove single variables but made a new environment. The
# missing names then depend on the machine, and not on the program.
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
    """Return the call to record. `stdin` is a kind of stream, or the input if it is known beforehand."""
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
    """Return a path or an argument of any accepted type as text; other values as their repr."""
    if type(word) is str:
        return word
    try:
        return os.fsdecode(word)
    except TypeError:
        return str(word)


def script_of(words: Sequence[str]) -> str | None:
    """Return the script in `bash -lc SCRIPT`. It is the actual command, and a model may have written it."""
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
    """Return the first line that is not empty, in full: it is used to find the LLM response that contains it."""
    return next((line.strip() for line in script.splitlines() if line.strip()), "")


def name_of(words: Sequence[str], script: str | None = None) -> str:
    """Return a display name: `git status`, `pytest`, `python -m http.server`."""
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
    """Return the words of the first command proper, after any `cd there &&` and `VAR=1`."""
    for step in _STEP.split(script):
        words = step.lstrip("({! \t").rstrip(")} \t").split()
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        if words and words[0] not in ("cd", "set", "export", "source", ".", "#"):
            return words
    return []


def env_changes(env: Mapping[Any, Any] | None) -> tuple[dict[str, str], list[str]]:
    """Return the variables whose values differ in the child, and the names of those that it lacks."""
    if env is None or env is os.environ:
        return {}, []
    variables = {text_of(name): text_of(value) for name, value in env.items()}
    changed = {
        name: value
        for name, value in variables.items()
        if os.environ.get(name) != value and not _ours(name)
    }
    unset = [name for name in os.environ if name not in variables and not _ours(name)]
    return changed, sorted(unset)


def _ours(name: str) -> bool:
    return name.startswith("PLAYHEAD_")


def known_input(data: Any) -> Any:
    """Return the input that `subprocess.run(input=…)` is about to send, as part of the request."""
    if isinstance(data, str):
        return {"text": data}
    return dict(as_text(bytes(data)))


def kind_of(given: Any) -> str:
    """Return the kind of stream that a caller gave to `Popen`. The kind is the same in every run."""
    if given is None:
        return "inherited"
    if isinstance(given, int) and given < 0:
        return _KINDS.get(given, "closed")
    fd = fd_of(given)
    return "closed" if fd is None else kind_of_fd(fd)


def fd_of(given: Any) -> int | None:
    if given is None:
        return None
    try:
        return given if isinstance(given, int) else int(given.fileno())
    except (AttributeError, OSError, ValueError):
        return None  # an invalid argument: `Popen` itself raises


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
