"""Find the files of a workspace that belong to the replayed program, as opposed to its data.

A replay runs the current code against the recorded files. So the program's own source is left as it is, and
everything else is restored. Knows command lines, shell scripts, `module:attribute` as servers take it, console scripts,
and Python's import statements.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence

# Programs that run the project's own code in ways that their command line does not show.
_RUNNERS = frozenset(
    {
        *("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "tox", "nox", "make", "just", "pytest"),
        *(
            "celery",
            "chainlit",
            "fastapi",
            "flask",
            "gunicorn",
            "hypercorn",
            "streamlit",
            "uvicorn",
        ),
        *("npm", "npx", "pnpm", "yarn", "bun", "deno", "node", "tsx", "cargo", "go"),
    }
)
_SOURCE = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".rs", ".toml", ".json", ".sh")
_LARGEST = 1 << 20
# A shell script also names data. Only files with these endings are taken for programs that it runs.
_RUN_BY_SCRIPT = (b".py", b".sh", b".bash", b".js", b".mjs", b".cjs", b".ts")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_SHEBANG = re.compile(rb"#! *\S*/(?:env +)?(?:sh|bash|dash|zsh|ksh)\b")
# `uvicorn package.app:make_app`.
_ATTRIBUTE = re.compile(r"([\w./]+):\w[\w.]*(?:\(.*\))?")
# Options with the name of a module: `celery -A tasks worker`, `flask --app web run`, `python -m agent`.
_OPTIONS = frozenset({"-m", "-A", "--app"})
# Options with the folder of the modules: `uvicorn --app-dir src`, `gunicorn --chdir web`.
_FOLDERS = frozenset({"--app-dir", "--chdir", "--workdir", "--working-dir"})
_CONSOLE_IMPORT = re.compile(rb"^(?:from|import) ([\w.]+)", re.MULTILINE)


def program_files(
    command: Sequence[str],
    root: str,
    cwd: str,
    known: Iterable[bytes],
    folder: str,
    *,
    pythons: Iterable[str] = (),
) -> set[bytes]:
    """Return paths relative to `root`. `known` are all recorded paths; `folder` is the current path of the
    workspace; `pythons` are the scripts that the Pythons of the run executed, as they were named.

    Empty if none of the program's files exists any more: then the recorded program is restored with the other files.
    """
    if not command:
        return set()
    known = frozenset(known)
    scripts = set(_named(command, root, cwd, folder))
    if os.path.basename(command[0]) in _SHELLS:  # `bash -c "cd x && python agent.py"`
        for text in command[1:]:
            scripts.update(_run_by(text, root, cwd, folder))
    name = os.path.basename(command[0])
    # A word without a slash is looked up in PATH, not in the working folder.
    is_local = "/" in command[0] and _inside(command[0], root, cwd) is not None
    if not scripts and (name in _RUNNERS or is_local or "-m" in command):
        ends = tuple(one.encode() for one in _SOURCE)
        sources = {path for path in known if path.endswith(ends) and not path.startswith(b".git/")}
        is_left = any(os.path.exists(os.path.join(os.fsencode(folder), one)) for one in sources)
        return sources if is_left else set()
    found: set[bytes] = set()
    waiting = sorted({*scripts, *_executed(pythons, root, cwd, known, folder)})
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.endswith(b".py"):
            waiting += _imported(path, folder)
        elif (script := _shell_script(path, folder)) is not None:
            waiting += _run_by(script, root, cwd, folder)
    return found


def _executed(
    pythons: Iterable[str], root: str, cwd: str, known: frozenset[bytes], folder: str
) -> Iterator[bytes]:
    """Files that Pythons executed. A name may be relative to another folder, if a script has changed it."""
    for name in pythons:
        inner = _inside(name, root, cwd)
        if inner is not None and os.path.isfile(os.path.join(folder, inner)):
            yield os.fsencode(inner)
        elif name.endswith(".py") and not name.startswith("/"):
            end = os.fsencode("/" + os.path.normpath(name).lstrip("./"))
            for path in known:
                full = os.path.join(os.fsencode(folder), path)
                if (b"/" + path).endswith(end) and os.path.isfile(full):
                    yield path


def _run_by(text: str, root: str, cwd: str, folder: str) -> list[bytes]:
    """Programs of the workspace that the lines of a shell script name."""
    found: list[bytes] = []
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:  # a quotation of several lines
            words = line.split()
        if words:
            found += _named(words, root, cwd, folder)
    return [
        path
        for path in found
        if path.endswith(_RUN_BY_SCRIPT) or _shell_script(path, folder) is not None
    ]


def _shell_script(path: bytes, folder: str) -> str | None:
    try:
        with open(os.path.join(os.fsencode(folder), path), "rb") as file:
            text = file.read(_LARGEST)
    except OSError:
        return None
    is_script = path.endswith((b".sh", b".bash")) or _SHEBANG.match(text) is not None
    return text.decode("utf-8", "replace") if is_script else None


def _named(command: Sequence[str], root: str, cwd: str, folder: str) -> Iterator[bytes]:
    """Files of the workspace that the command line names: scripts and modules."""
    bases = [cwd, os.path.join(root, "src")]
    names = [] if "/" in command[0] else _console_imports(shutil.which(command[0]))
    for word, following in zip(command, (*command[1:], ""), strict=True):
        option, _, value = word.partition("=")
        inner = _inside(word, root, cwd)
        if inner is not None and os.path.isfile(os.path.join(folder, inner)):
            yield os.fsencode(inner)
        if option in _FOLDERS:
            bases.append(os.path.normpath(os.path.join(cwd, value or following)))
        if option in _OPTIONS:
            names.append((value or following).partition(":")[0])
        elif found := _ATTRIBUTE.fullmatch(word):
            names.append(found[1])
    for base in bases:
        for name in names:
            module = _inside(name.removesuffix(".py").replace(".", "/"), root, base)
            for end in ("/__main__.py", ".py", "/__init__.py"):
                if module is not None and os.path.isfile(os.path.join(folder, module + end)):
                    yield os.fsencode(module + end)


def _console_imports(path: str | None) -> list[str]:
    """Modules that a console script imports: `pip install -e .` makes a script outside of the workspace that
    runs a module of the workspace.
    """
    if path is None:
        return []
    try:
        with open(path, "rb") as file:
            text = file.read(4096)
    except OSError:
        return []
    if not text.startswith(b"#!") or b"python" not in text.partition(b"\n")[0]:
        return []
    return [found.decode("ascii", "replace") for found in _CONSOLE_IMPORT.findall(text)]


def _inside(word: str, root: str, cwd: str) -> str | None:
    """A path relative to the workspace; None if it is outside."""
    if not word or word.startswith("-") or "\n" in word:
        return None
    full = os.path.normpath(os.path.join(cwd, word))
    if not full.startswith(root.rstrip("/") + "/"):
        return None
    return os.path.relpath(full, root)


def _imported(path: bytes, folder: str) -> Iterator[bytes]:
    """The modules of the workspace that a module imports: beside it, or from a folder above it."""
    full = os.path.join(os.fsencode(folder), path)
    try:
        if os.path.getsize(full) > _LARGEST:
            return
        with open(full, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, ValueError, SyntaxError):
        return
    here = os.path.dirname(path)
    above = [here]
    while above[-1]:
        above.append(os.path.dirname(above[-1]))
    for name, level in _names(tree):
        parts = [os.fsencode(one) for one in name.split(".") if one]
        bases = above[level - 1 : level] if level else [*above, b"src"]
        for base in bases:
            yield from _modules(folder, base, parts)


def _names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, 0) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.level
            yield from ((f"{node.module or ''}.{one.name}", node.level) for one in node.names)


def _modules(folder: str, base: bytes, parts: list[bytes]) -> Iterator[bytes]:
    """The files of a dotted name, packages on the way included."""
    for count in range(len(parts) + 1):
        stem = b"/".join((*([base] if base else []), *parts[:count]))
        names = [stem + b"/__init__.py" if stem else b"__init__.py"]
        if count:
            names.append(stem + b".py")
        for one in names:
            if os.path.isfile(os.path.join(os.fsencode(folder), one)):
                yield one
