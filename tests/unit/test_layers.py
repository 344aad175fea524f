"""Imports go down only, guests import the standard library only, libraries have one home.

The tables below are the architecture. Knows imports as they are written, and runs those of the
guests under every Python they may meet.
"""

import ast
import graphlib
import itertools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "playhead"

# A layer imports itself and what stands above it in this table. "3 in" and "3 out" never meet.
# A new module goes where the modules are whose knowledge it shares.
LAYERS = {
    "0 words": {"_version", "clock", "encoding", "errors", "event", "events", "host", "redact"},
    "1 tape": {"llm", "tape"},
    "2 run": {"config", "recording", "replay", "transcripts", "workspace"},
    "3 in": {"hooks", "launch", "loop"},
    "3 out": {"analytics", "exporters", "library", "remote", "story", "views"},
    "4 doors": {"__init__", "__main__", "cli", "pytest_plugin", "testing", "views.web.api"},
}
LAYER_OF = {name: layer for layer, names in LAYERS.items() for name in names}

# Everything else runs inside agents: the standard library only, on CPython 3.10 to 3.13.
NOT_GUESTS = LAYERS["3 out"] | {"__main__", "cli", "pytest_plugin", "testing", "views.web.api"}

# The standard library of one Python that is not in that of another.
NOT_ON_EVERY_PYTHON = {
    *("annotationlib", "compression", "tomllib"),  # came with 3.11 or 3.14
    *("asynchat", "asyncore", "distutils", "imp", "smtpd"),  # gone in 3.12
    *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap"),
    *("msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau"),
    *("telnetlib", "uu", "xdrlib"),  # these three rows: gone in 3.13
}
STANDARD = set(sys.stdlib_module_names) - NOT_ON_EVERY_PYTHON

# What a guest uses where the agent happens to have it: {(module, library)}. Since it may be
# missing there, it is imported in a function, or where an ImportError is caught.
GUEST_LIBRARIES = {
    ("playhead.config", "tomllib"),
    ("playhead.encoding.jsonbytes", "msgspec"),
    ("playhead.tape.sealed.vault", "cryptography"),
    ("playhead.tape.sealed.vault", "keyring"),
    ("playhead.tape.format", "msgspec"),
    ("playhead.tape.sealed.zstd", "backports"),
    ("playhead.tape.sealed.zstd", "compression"),
    ("playhead.tape.sealed.zstd", "zstandard"),
}

# Outside the guests a library appears in one module, whichever it is, but for these.
SHARED_LIBRARIES = {
    "anyio": ("playhead.views.web.api",),
    "click": ("playhead.cli",),
    "msgspec": ("playhead.encoding.jsonbytes", "playhead.tape.format"),  # any JSON; whole events
    # Every project with Playhead loads the first; the second is loaded for the first replayed test.
    "pytest": ("playhead.pytest_plugin", "playhead.testing.fenced_test"),
    "rich": ("playhead.cli", "playhead.views"),
    "sqlalchemy": ("playhead.analytics", "playhead.library"),
    "starlette": ("playhead.views.web.api",),
    "textual": ("playhead.views.tui",),
}

# Who may import Playhead itself inside a function, and why.
LAZY_ROOMS = {
    "playhead": "__getattr__ loads a name when it is first used",
    "playhead.__main__": "a step of a shell script's session must not wait for click",
    "playhead.cli": "`playhead --help` must not pay for every verb",
    "playhead.pytest_plugin": "pytest loads it in every project that has Playhead installed",
}

# Standard modules put off until they are needed, the verbs of cli apart: {module: {name: reason}}.
LAZY_STANDARD: dict[str, dict[str, str]] = {
    "playhead.config": {"tomllib": "3 ms of every start, and many projects have no such file"},
    "playhead.tape.sealed.zstd": {"compression.zstd": "came with Python 3.14"},
}


# Calls whose first argument is the name of a module that they import, then or later.
LAZY_CALLS = {"Later", "__import__", "import_module", "importlib.import_module", "loaded"}


@dataclass(frozen=True)
class Import:
    module: str
    target: str
    line: int
    in_function: bool
    for_types: bool
    guarded: bool
    is_late: bool = False  # by `Later`: at first use, not at import time

    @property
    def library(self) -> str:
        return self.target.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


@dataclass(frozen=True)
class Tree:
    modules: frozenset[str]
    imports: tuple[Import, ...]


class ImportsOf(ast.NodeVisitor):
    """Collects the imports of one module, with where they stand."""

    def __init__(self, module: str, package: str, modules: frozenset[str]) -> None:
        self.module, self.package, self.modules = module, package, modules
        self.found: list[Import] = []
        self.functions = self.type_blocks = self.guards = 0

    def add(self, target: str, line: int, *, is_late: bool = False) -> None:
        place = (self.functions > 0, self.type_blocks > 0, self.guards > 0)
        self.found.append(Import(self.module, target, line, *place, is_late))

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            self.add(name.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            above = self.package.split(".")[: 1 - node.level or None]
            base = ".".join([*above, base]).rstrip(".")
        for name in node.names:
            full = f"{base}.{name.name}"
            self.add(full if full in self.modules else base, node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        if ast.unparse(node.func) in LAZY_CALLS:
            match node.args:
                case [ast.Constant(value=str(target)), *_]:
                    self.add(target, node.lineno, is_late=ast.unparse(node.func) == "Later")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) not in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            self.generic_visit(node)
            return
        self.type_blocks += 1
        for statement in node.body:
            self.visit(statement)
        self.type_blocks -= 1
        for statement in node.orelse:
            self.visit(statement)

    def visit_Try(self, node: ast.Try) -> None:
        caught = " ".join(ast.unparse(one.type) for one in node.handlers if one.type)
        guards = "ImportError" in caught or "ModuleNotFoundError" in caught
        self.guards += guards
        for statement in node.body:
            self.visit(statement)
        self.guards -= guards
        for statement in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.functions += 1
        self.generic_visit(node)
        self.functions -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  the name is ast's


def read_tree(package: Path) -> Tree:
    files = {}
    for path in sorted(package.rglob("*.py")):
        if path.name == "sitecustomize.py":
            continue  # no module of ours: `site` finds it by its folder, in any Python there is
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        files[".".join(parts).removesuffix(".__init__")] = path
    modules = frozenset(files)
    imports: list[Import] = []
    for module, path in files.items():
        home = module if path.stem == "__init__" else module.rpartition(".")[0]
        visitor = ImportsOf(module, home, modules)
        visitor.visit(ast.parse(path.read_bytes(), str(path)))
        imports += [found for found in visitor.found if found.target != "__future__"]
    return Tree(modules, tuple(imports))


def top(module: str) -> str:
    """The entry of LAYERS with the longest name that holds the module; the root itself is `__init__`."""
    inner = module.partition(".")[2] or "__init__"
    parts = inner.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in LAYER_OF:
            return name
    return parts[0]


def is_ours(target: str) -> bool:
    return is_within(target, ("playhead",))


def is_within(module: str, rooms: tuple[str, ...]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def strangers(tree: Tree) -> Iterator[str]:
    for module in sorted(tree.modules):
        if top(module) not in LAYER_OF:
            yield f"{module} is in no layer: give it one in LAYERS, tests/unit/test_layers.py"


def upward(tree: Tree) -> Iterator[str]:
    ranks = list(LAYERS)
    for one in tree.imports:
        if not is_ours(one.target):
            continue
        here, there = LAYER_OF.get(top(one.module)), LAYER_OF.get(top(one.target))
        if here is None or there is None or here == there:
            continue
        if ranks.index(there) > ranks.index(here) or (here, there) == ("3 out", "3 in"):
            yield f"{one}: layer {here!r} must not know {there!r}"


def guests_who_bring_friends(tree: Tree) -> Iterator[str]:
    for one in tree.imports:
        if top(one.module) in NOT_GUESTS:
            continue
        if is_ours(one.target):
            if top(one.target) in NOT_GUESTS and not one.in_function:
                yield f"{one}, which is no guest: an agent's process would load it"
        elif one.library in STANDARD:
            continue
        elif (one.module, one.library) not in GUEST_LIBRARIES:
            yield f"{one}: a guest has the standard library of Python 3.10 to 3.13 only"
        elif not (one.in_function or one.for_types or one.guarded):
            yield f"{one} at its top: the agent may not have it, so import it in a function"


def libraries_with_two_homes(tree: Tree) -> Iterator[str]:
    homes: dict[str, set[str]] = defaultdict(set)
    for one in tree.imports:
        if is_ours(one.target) or one.library in sys.stdlib_module_names:
            continue
        if not is_within(one.module, SHARED_LIBRARIES.get(one.library, ())):
            homes[one.library].add(one.module)
    for name, modules in sorted(homes.items()):
        if name in SHARED_LIBRARIES:
            yield f"{name} belongs to {SHARED_LIBRARIES[name]}, not to {sorted(modules)}"
        elif len(modules) > 1:
            yield f"{name} is imported by {sorted(modules)}: one of them should own it"


def late_imports(tree: Tree) -> Iterator[str]:
    for one in tree.imports:
        if not one.in_function or is_within(one.module, ("playhead.cli",)):
            continue
        if is_ours(one.target):
            if one.module not in LAZY_ROOMS:
                yield f"{one} inside a function: a layer is wrong if it has to"
        elif one.library not in sys.stdlib_module_names:
            continue
        elif one.target not in LAZY_STANDARD.get(one.module, {}):
            yield f"{one} inside a function: import it at the top, or give a reason"


def cycles(tree: Tree) -> Iterator[str]:
    graph: dict[str, set[str]] = {module: set() for module in tree.modules}
    for one in tree.imports:
        if one.in_function or one.is_late or one.for_types or one.target == one.module:
            continue
        if one.target in graph:
            graph[one.module].add(one.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield "a cycle: " + " ← ".join(error.args[1])


# Packages in which the second level counts as well: their folders, and their own modules as one folder.
NESTED = ("cli", "hooks", "launch", "replay", "views")

# Imports that close a circle of folders, with the reason: {(from, to): reason}. Each is a debt.
KNOWN_FOLDER_CYCLES: dict[tuple[str, str], str] = {
    ("hooks/http", "hooks/websocket"): "aiohttp and httpx open WebSockets with their HTTP clients",
    ("replay/matching", "replay"): "what to ignore is a part of the plan",
    ("replay/report", "replay/modes"): "a verdict depends on what was meant to be live",
}


def folder_cycles(tree: Tree) -> Iterator[str]:
    """Folders that import each other in a circle, lazily or not: none of them can be read alone."""
    for depth in (1, 2):
        edges: dict[tuple[str, str], Import] = {}
        for one in tree.imports:
            if is_ours(one.target) and not one.for_types:
                here, there = folder_of(one.module, depth), folder_of(one.target, depth)
                if here and there and here != there and (here, there) not in KNOWN_FOLDER_CYCLES:
                    edges.setdefault((here, there), one)
        graph: dict[str, set[str]] = defaultdict(set)
        for here, there in sorted(edges):
            graph[here].add(there)
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            circle = list(reversed(error.args[1]))  # graphlib names the imported folder first
            steps = [str(edges[step]) for step in itertools.pairwise(circle)]
            yield "a circle of folders: " + ", and ".join(steps)


def folder_of(module: str, depth: int) -> str:
    """The folder of a module, as far down as `depth`; "" for what the rule leaves out: the modules of the
    root, and below the first level those of packages that are not in NESTED.
    """
    parts = module.split(".")[1:]
    if depth == 1:
        return parts[0] if len(parts) > 1 or (parts and parts[0] in FOLDERS) else ""
    if not parts or parts[0] not in NESTED:
        return ""
    inner = "/".join(parts[:2])
    return inner if len(parts) > 2 or inner in FOLDERS else parts[0]


FOLDERS = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("__init__.py")}


def forgotten(tree: Tree) -> Iterator[str]:
    """Entries of the tables that nothing needs any more."""
    for name in sorted(LAYER_OF):
        module = "playhead" if name == "__init__" else f"playhead.{name}"
        if module not in tree.modules:
            yield f"LAYERS: there is no {module}"
    used = {(one.module, one.library) for one in tree.imports}
    for module, name in sorted(GUEST_LIBRARIES - used):
        yield f"GUEST_LIBRARIES: {module} does not import {name}"
    found = {
        (folder_of(one.module, depth), folder_of(one.target, depth))
        for one in tree.imports
        for depth in (1, 2)
    }
    for here, there in sorted(set(KNOWN_FOLDER_CYCLES) - found):
        yield f"KNOWN_FOLDER_CYCLES: {here} does not import {there}"
    late = {(one.module, one.target) for one in tree.imports if one.in_function}
    for module, names in LAZY_STANDARD.items():
        yield from (
            f"LAZY_STANDARD: {module} does not import {name} in a function"
            for name in names
            if (module, name) not in late
        )


RULES = [
    strangers,
    upward,
    guests_who_bring_friends,
    libraries_with_two_homes,
    late_imports,
    cycles,
    folder_cycles,
    forgotten,
]


@pytest.fixture(scope="module")
def playhead_tree() -> Tree:
    return read_tree(PACKAGE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_playhead_keeps_the_rule_on(rule, playhead_tree):
    assert "playhead.clock" in playhead_tree.modules
    problems = list(rule(playhead_tree))
    assert not problems, "\n" + "\n".join(problems)


def test_every_guest_module_imports_on_every_python(guest_python, playhead_tree):
    guests = sorted(one for one in playhead_tree.modules if top(one) not in NOT_GUESTS)
    program = "import importlib, sys\nsys.path.insert(0, sys.argv[1])\n"
    program += "for name in sys.argv[2:]: importlib.import_module(name)\n"
    # -I and -S: what an agent has beside the standard library is not ours to rely on.
    argv = [guest_python, "-I", "-S", "-W", "error", "-c", program, str(PACKAGE.parent), *guests]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_make_checks_the_types_of_the_same_guests():
    makefile = (PACKAGE.parents[1] / "Makefile").read_text(encoding="utf-8")
    listed = re.search(r"^NOT_GUESTS := (.*)$", makefile, re.MULTILINE)[1].split()
    assert set(listed) == {name for name in NOT_GUESTS if "." not in name}


BROKEN = [
    (strangers, "novelty.py", "", "playhead.novelty is in no layer"),
    (upward, "events.py", "from playhead.tape import writer", "'0 words' must not know '1 tape'"),
    (upward, "tape/writer.py", "import playhead.recording.deck", "'1 tape' must not know '2 run'"),
    (upward, "tape/writer.py", "from ..recording import deck", "'1 tape' must not know '2 run'"),
    (upward, "recording/deck.py", "import playhead", "'2 run' must not know '4 doors'"),
    (upward, "recording/deck.py", "from playhead import story", "'2 run' must not know '3 out'"),
    (upward, "views/text.py", "import playhead.hooks", "'3 out' must not know '3 in'"),
    (upward, "launch/start.py", "import playhead.story", "'3 in' must not know '3 out'"),
    (
        upward,
        "recording/deck.py",
        "def f():\n  import playhead.cli",
        "'2 run' must not know '4 doors'",
    ),
    (guests_who_bring_friends, "recording/deck.py", "import httpx", "imports httpx"),
    (guests_who_bring_friends, "recording/deck.py", "def f():\n  import httpx", "imports httpx"),
    (guests_who_bring_friends, "recording/deck.py", "import tomllib", "3.10 to 3.13 only"),
    (guests_who_bring_friends, "encoding/jsonbytes.py", "import msgspec", "at its top"),
    (guests_who_bring_friends, "config.py", "try: pass\nfinally:\n  import tomllib", "at its top"),
    (guests_who_bring_friends, "__init__.py", "import playhead.cli", "which is no guest"),
    (libraries_with_two_homes, "views/tui.py", "import click", "click belongs to"),
    (
        late_imports,
        "recording/deck.py",
        "def f():\n  import playhead.recording.runs",
        "inside a function",
    ),
    (late_imports, "recording/deck.py", "async def f():\n  import asyncio", "inside a function"),
    (late_imports, "recording/deck.py", "def f(): import_module('json')", "inside a function"),
]


@pytest.mark.parametrize(("rule", "path", "source", "said"), BROKEN)
def test_a_broken_rule_is_said_with_the_place(tmp_path, rule, path, source, said):
    known = dict.fromkeys(
        ["tape/writer.py", "recording/deck.py", "recording/runs.py", "story/__init__.py"], ""
    )
    problems = list(rule(read_tree(write_package(tmp_path, known | {path: source}))))
    assert [said in problem for problem in problems] == [True], problems


ALLOWED = {
    "events.py": "import json\nfrom playhead import errors",
    "errors.py": "",
    "config.py": "try:\n  import tomllib\nexcept ImportError:\n  tomllib = None",
    "encoding/jsonbytes.py": "def f():\n  try:\n    import msgspec.json\n  except ImportError: pass",
    "recording/deck.py": "from playhead.tape.writer import Writer",
    "tape/__init__.py": "",
    "tape/writer.py": "from playhead.events import Event",
    "views/text.py": "import rich.table\nimport playhead.story",
    "story/__init__.py": "import tomllib\nimport attrs",
    "cli/__init__.py": "import click, rich\ndef f():\n  import playhead.views.text",
    "__init__.py": "def __getattr__(name):\n  from playhead.recording.deck import Deck",
}


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule is not forgotten], ids=lambda rule: rule.__name__
)
def test_what_the_rules_allow_is_not_called_broken(tmp_path, rule):
    assert list(rule(read_tree(write_package(tmp_path, ALLOWED)))) == []


def test_two_modules_that_import_one_library_are_both_named(tmp_path):
    files = {"library/a.py": "import sqlmodel", "exporters/b.py": "from sqlmodel import x"}
    (problem,) = libraries_with_two_homes(read_tree(write_package(tmp_path, files)))
    assert "playhead.exporters.b" in problem
    assert "playhead.library.a" in problem


def test_modules_that_import_each_other_are_a_cycle_unless_only_for_types(tmp_path):
    files = {
        "recording/runs.py": "import playhead.recording.turns",
        "recording/turns.py": "from playhead.recording.runs import Run",
    }
    (problem,) = cycles(read_tree(write_package(tmp_path, files)))
    assert "playhead.recording.runs" in problem
    guarded = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import playhead.recording.runs"
    )
    files["recording/turns.py"] = guarded
    assert list(cycles(read_tree(write_package(tmp_path, files)))) == []


def test_folders_that_import_each_other_in_a_circle_are_named_with_the_imports(tmp_path):
    files = {
        "launch/sidecar/routes.py": "from playhead.launch.shims import frames",
        "launch/shims/frames.py": "def f():\n  import playhead.launch.command",
        "launch/command.py": "from playhead.launch.sidecar import routes",
        "launch/shims/__init__.py": "",
        "launch/sidecar/__init__.py": "",
    }
    (problem,) = folder_cycles(read_tree(write_package(tmp_path, files)))
    assert "playhead.launch.shims.frames:2 imports playhead.launch.command" in problem
    assert "playhead.launch.sidecar.routes:1 imports playhead.launch.shims.frames" in problem
    files["launch/shims/frames.py"] = ""
    assert list(folder_cycles(read_tree(write_package(tmp_path, files)))) == []


def test_an_entry_that_nothing_needs_any_more_is_named(tmp_path):
    problems = list(forgotten(read_tree(write_package(tmp_path, {"encoding/jsonbytes.py": ""}))))
    assert "GUEST_LIBRARIES: playhead.encoding.jsonbytes does not import msgspec" in problems


def write_package(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "playhead"
    for name, source in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return package
