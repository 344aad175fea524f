"""One name for one thing, and a tree of small folders.

Knows file names, class names and line counts. The tables below are debts with a reason each: an
entry that nothing needs any more fails the test, so the tables only shrink.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "playhead"

MOST_FILES = 20
MOST_ROOT_MODULES = 8
MOST_LINES = 400

# Programs that the demo copies and records. They are data: no module of ours imports them.
NOT_OURS = "cli/demo/agents"

# Module names that stand more than once, and why each of them may.
REPEATED_MODULES: dict[str, str] = {}

# Public class names that stand more than once, and why each of them may.
REPEATED_CLASSES: dict[str, str] = {}

# Folders with too many files, and why.
LARGE_FOLDERS: dict[str, str] = {}

# Modules with more than MOST_LINES lines, and why.
LONG_MODULES: dict[str, str] = {
    "replay/time/virtual_time.py": "debt",
}


def modules() -> list[Path]:
    return [
        path.relative_to(PACKAGE)
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(NOT_OURS)
    ]


def public_classes(path: Path) -> Iterator[str]:
    for node in ast.parse((PACKAGE / path).read_bytes()).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def repeated(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: where for name, where in places.items() if len(where) > 1}


def named_more_than_once() -> dict[str, list[str]]:
    """Module names without those of packages, whose name is their folder's."""
    places = defaultdict(list)
    for path in modules():
        if path.stem != "__init__":
            places[path.stem].append(path.as_posix())
    return repeated(places)


def classes_named_more_than_once() -> dict[str, list[str]]:
    places = defaultdict(list)
    for path in modules():
        for name in public_classes(path):
            places[name].append(path.as_posix())
    return repeated(places)


def large_folders() -> dict[str, list[str]]:
    files = defaultdict(list)
    for path in modules():
        files[path.parent.as_posix()].append(path.name)
    return {folder: names for folder, names in files.items() if len(names) > MOST_FILES}


def long_modules() -> dict[str, list[str]]:
    lines = {path.as_posix(): (PACKAGE / path).read_bytes().count(b"\n") for path in modules()}
    return {path: [f"{count} lines"] for path, count in lines.items() if count > MOST_LINES}


RULES = [
    (named_more_than_once, REPEATED_MODULES),
    (classes_named_more_than_once, REPEATED_CLASSES),
    (large_folders, LARGE_FOLDERS),
    (long_modules, LONG_MODULES),
]


@pytest.mark.parametrize(("rule", "known"), RULES, ids=lambda one: getattr(one, "__name__", ""))
def test_every_exception_is_known_and_has_a_reason(rule, known):
    found = rule()
    new = {name: places for name, places in found.items() if name not in known}
    assert not new, "\n" + "\n".join(f"{name}: {', '.join(new[name])}" for name in sorted(new))
    assert all(known.values()), "an exception needs a reason"


@pytest.mark.parametrize(("rule", "known"), RULES, ids=lambda one: getattr(one, "__name__", ""))
def test_an_exception_that_nothing_needs_any_more_is_removed(rule, known):
    gone = known.keys() - rule().keys()
    assert not gone, f"take these entries out of the table: {sorted(gone)}"


def test_the_package_root_holds_only_what_a_newcomer_reads_first():
    root = [path.name for path in modules() if len(path.parts) == 1 and path.stem != "__init__"]
    assert len(root) <= MOST_ROOT_MODULES, root


def test_the_number_of_modules_is_printed(capsys):
    paths = modules()
    packages = sum(path.stem == "__init__" for path in paths)
    with capsys.disabled():
        print(f"\n{len(paths)} modules, {packages} of them packages")
    assert paths
