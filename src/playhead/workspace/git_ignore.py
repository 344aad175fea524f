"""Decide which paths git ignores: `.gitignore` files, `.git/info/exclude` and the user's own list.

Knows patterns as gitignore(5) defines them; starts no process, because a running recorder checks every new
file.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_LARGEST = 1 << 20


class IgnoreRule(NamedTuple):
    """One line of a `.gitignore`. Matches paths relative to that file's folder."""

    pattern: re.Pattern[bytes]
    is_negated: bool
    folders_only: bool


def parse_rules(text: bytes) -> list[IgnoreRule]:
    """Return the rules of a file, last one first: the last match decides."""
    rules = [rule for line in text.splitlines() if (rule := _rule(line)) is not None]
    return rules[::-1]


class IgnoreRules:
    """Decides for one workspace. A `.gitignore` is read on the first query about its folder."""

    def __init__(self, root: bytes, *, git: bool) -> None:
        self._root = root
        self._git = git
        self._rules: dict[bytes, list[IgnoreRule]] = {}
        self._shared: list[IgnoreRule] = []
        if git:
            self._shared = [
                *_read(os.path.join(root, b".git", b"info", b"exclude")),
                *_read(_users_file()),
            ]

    def forget(self, folder: bytes) -> None:
        """Drop the rules of a folder: its `.gitignore` has changed."""
        self._rules.pop(folder, None)

    def ignores(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether the path itself matches; the caller checks the folders above it one by one."""
        if not self._git:
            return False
        folder = path.rpartition(b"/")[0]
        while True:
            relative = path[len(folder) + 1 :] if folder else path
            for rule in self._of(folder):
                if (is_folder or not rule.folders_only) and rule.pattern.match(relative):
                    return not rule.is_negated
            if not folder:
                break
            folder = folder.rpartition(b"/")[0]
        for rule in self._shared:
            if (is_folder or not rule.folders_only) and rule.pattern.match(path):
                return not rule.is_negated
        return False

    def ignores_any_part(self, path: bytes) -> bool:
        """Return whether the path or a folder above it is ignored."""
        names = path.split(b"/")
        above = (b"/".join(names[:count]) for count in range(1, len(names)))
        return any(self.ignores(one, is_folder=True) for one in above)

    def _of(self, folder: bytes) -> list[IgnoreRule]:
        rules = self._rules.get(folder)
        if rules is None:
            rules = self._rules[folder] = _read(os.path.join(self._root, folder, b".gitignore"))
        return rules


def _read(path: bytes) -> list[IgnoreRule]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            return parse_rules(file.read(_LARGEST))
    except OSError:
        return []


def _users_file() -> bytes:
    home = os.environb.get(b"XDG_CONFIG_HOME") or os.path.expanduser(b"~/.config")
    return os.path.join(home, b"git", b"ignore")


def _rule(line: bytes) -> IgnoreRule | None:
    line = line.rstrip(b"\r")
    while line.endswith(b" ") and not line.endswith(b"\\ "):
        line = line[:-1]
    if not line or line.startswith(b"#"):
        return None
    is_negated = line.startswith(b"!")
    line = line.removeprefix(b"!")
    folders_only = line.endswith(b"/")
    line = line.rstrip(b"/") if folders_only else line
    if not line:
        return None
    is_anchored = b"/" in line
    expression = _expression(line.removeprefix(b"/"))
    if not is_anchored:
        expression = rb"(?:.*/)?" + expression
    try:
        return IgnoreRule(re.compile(expression + rb"\Z", re.DOTALL), is_negated, folders_only)
    except re.error:
        return None  # git also ignores patterns that it does not understand


def _expression(glob: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while at < len(glob):
        rest = glob[at:]
        if rest.startswith(b"**/") and (at == 0 or glob[at - 1 : at] == b"/"):
            parts.append(rb"(?:.*/)?")
            at += 3
        elif rest == b"**" and glob[at - 1 : at] == b"/":
            parts.append(rb".+")
            at += 2
        elif rest.startswith(b"*"):
            parts.append(rb"[^/]*")
            at += len(rest) - len(rest.lstrip(b"*"))
        elif rest.startswith(b"?"):
            parts.append(rb"[^/]")
            at += 1
        elif rest.startswith(b"[") and (end := _end_of_class(rest)):
            inner = rest[1:end]
            negated = inner[:1] in (b"!", b"^")
            inner = inner[1:] if negated else inner
            inner = inner.replace(b"\\", b"\\\\").replace(b"[", b"\\[")
            parts.append(b"(?!/)[" + (b"^" if negated else b"") + inner + b"]")
            at += end + 1
        elif rest.startswith(b"\\") and len(rest) > 1:
            parts.append(re.escape(rest[1:2]))
            at += 2
        else:
            parts.append(re.escape(rest[:1]))
            at += 1
    return b"".join(parts)


def _end_of_class(rest: bytes) -> int:
    start = 2 if rest[1:2] in (b"!", b"^") else 1
    return max(0, rest.find(b"]", start + 1))
