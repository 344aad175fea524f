"""Runs with their replays and forks below them. Knows whose child a run is; not how it came about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from playhead.library.catalogue import Entry
from playhead.library.golden import is_golden
from playhead.views.text import words
from playhead.views.text.console import GLYPHS, console
from playhead.views.text.safe import one_line

_WIDTH = 28


def print_families(entries: Sequence[Entry], *, limit: int | None, now_ns: int) -> None:
    """`limit`: so many families, each whole."""
    out = console()
    if not entries:
        out.print("No runs here. Record one: playhead record -- python my_agent.py")
        return
    for prefix, entry in families(entries, limit=limit):
        out.print(_line(prefix, entry, now_ns), no_wrap=True, overflow="crop")


def parent_of(entry: Entry) -> str | None:
    forked = entry.manifest.extra.get("forked_from")
    return forked if isinstance(forked, str) else entry.manifest.replay_of


def families(entries: Sequence[Entry], *, limit: int | None = None) -> Iterator[tuple[str, Entry]]:
    """Each with the drawing before it: parents as they come, children oldest first."""
    known = {entry.id for entry in entries}
    below: dict[str, list[Entry]] = {}
    top: list[Entry] = []
    for entry in entries:
        parent = parent_of(entry)
        if parent is None or parent not in known or parent == entry.id:
            top.append(entry)
        else:
            below.setdefault(parent, []).append(entry)
    stack = [(one, "", "") for one in reversed(top[:limit])]
    while stack:
        entry, prefix, deeper = stack.pop()
        yield prefix, entry
        children = sorted(below.pop(entry.id, ()), key=lambda one: one.id)
        for at in range(len(children) - 1, -1, -1):
            last = at == len(children) - 1
            branch, rail = ("└ ", "  ") if last else ("├ ", "│ ")
            stack.append((children[at], deeper + branch, deeper + rail))
    if limit is None or len(top) < limit:
        # Only manifests that name each other as parents are left.
        yield from (("", entry) for entries in below.values() for entry in entries)


def _line(prefix: str, entry: Entry, now_ns: int) -> Text:
    manifest = entry.manifest
    age = words.age(manifest.started_ns, now_ns) if manifest.started_ns else "–"
    room = max(0, _WIDTH - len(prefix))
    return Text.assemble(
        (prefix, "quiet"),
        (f"{GLYPHS[entry.status]} ", entry.status),
        f"{one_line(entry.id, 60):<{room}}",
        (f"{one_line(manifest.name, 18):<18} ", "name"),
        (f"{age:>5} {words.duration(manifest.duration_s):>8}  ", "quiet"),
        (_kinship(entry), "quiet"),
    )


def _kinship(entry: Entry) -> str:
    manifest = entry.manifest
    said = ["golden"] if is_golden(manifest) else []
    if "forked_from" in manifest.extra:
        said.append(f"fork at {one_line(str(manifest.extra.get('forked_at', '?')), 12)}")
    elif manifest.replay_of is not None:
        said.append("replay")
    return ", ".join(said)
