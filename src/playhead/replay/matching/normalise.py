"""Normalise the volatile fields of a request, for agents that have their own clock and ids. Pure.

Knows how LLM APIs pair a tool's result with its call; does not know tapes. `fingerprint` renames the
remaining ids, dates and hashes in order of appearance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from playhead.encoding.form_fields import with_form
from playhead.replay.matching.fingerprint import TIME, VOLATILE, canonical_form
from playhead.replay.matching.shell_snapshot import without_snapshot

# (a path as it occurs in requests, its placeholder): the folders of the recorded run, or the current ones.
Places = Sequence[tuple[re.Pattern[str], str]]

# The cache mark of a prompt moves with the last message, and changes no answer. Codex describes its turn for its own
# statistics; the state of the repository is there only if git answered in time.
_PASSING = frozenset({"cache_control", "x-codex-turn-metadata"})
# Kinds of a stdin that a program does not read. A stdin from /dev/null cannot be told from an inherited one if the
# caller's is /dev/null, and older shims recorded an inherited one as `null` or `closed`.
_SILENT = ("null", "closed")
_DEEPEST = 60
_MOST_KNOWN = 50_000
# Numbers from here on may be moments.
_FIRST_MOMENT = 1_500_000_000
# Fields with binary data in base64, which has nothing that changes by itself. The search for it takes a second per
# megabyte: a changed upload of 50 MB was reported after more than three minutes.
_BINARY = frozenset({"b64", "$bytes", "$bytearray"})
# Longer texts are compared as they are, for the same reason.
_LONGEST = 4_000_000
# Ends a text: no text contains it.
_END = "\0"


def places_of(cwd: str | None, home: str | None) -> Places:
    """Return patterns for the folders that agents mention, and for the names that agents derive from them for their own
    files.
    """
    found = [(path.rstrip("/"), name) for path, name in ((cwd, "cwd"), (home, "home")) if path]
    slugs = [
        (re.sub(r"[^A-Za-z0-9]", "-", path), f"{name}-slug")
        for path, name in found
        if path.count("/") > 1  # `-root` is found in other words, too
    ]
    # Longest first: a project is inside a home folder.
    named = sorted([*found, *slugs], key=lambda one: -len(one[0]))
    return [
        (re.compile(rf"(?<![\w.-]){re.escape(path)}(?!\w)"), f"‹{name}›")
        for path, name in named
        if len(path) > 1
    ]


class Settler:
    """Makes the texts by which requests are compared, for the folders of one run.

    Each text within a request is processed once, however many requests contain it: a conversation repeats all earlier
    messages with every turn.
    """

    def __init__(self, places: Places = ()) -> None:
        self.places = places
        # A text → itself, or its parts: fixed, renamed, fixed…
        self._known: dict[str, str | list[str]] = {}

    def text(self, request: Any) -> str:
        """Return a text that is equal for two requests that differ only in volatile values, which change in
        every run.
        """
        out: list[str] = []
        self._write(settled(request), "", out, {})
        return "".join(out)

    def _write(self, value: Any, name: str, out: list[str], names: dict[str, str]) -> None:
        kind = type(value)
        if kind is str and (name in _BINARY or len(value) > _LONGEST):
            out += (value, _END)
        elif kind is str:
            self._say(value, out, names)
        elif kind is dict:
            out.append("{")
            for key in sorted(value):
                self._say(key, out, names)
                self._write(value[key], key, out, names)
            out.append("}")
        elif kind is list:
            out.append("[")
            for item in value:
                self._write(item, name, out, names)
            out.append("]")
        elif kind in (int, float) and name.endswith("_ms"):
            out.append(TIME)
        elif kind in (int, float) and value >= _FIRST_MOMENT:
            self._say(repr(value), out, names)
        else:
            out.append(f"{value!r},")

    def _say(self, text: str, out: list[str], names: dict[str, str]) -> None:
        parts = self._known.get(text)
        if parts is None:
            parts = self._parts(text)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[text] = parts
        if type(parts) is str:
            out.append(parts)
        else:
            for at, part in enumerate(parts):
                renamed = at % 2 and part != TIME
                out.append(names.setdefault(part, f"‹V{len(names)}›") if renamed else part)
        out.append(_END)

    def _parts(self, text: str) -> str | list[str]:
        for path, name in self.places:
            text = path.sub(name, text)
        parts: list[str] = []
        at = 0
        for hit in VOLATILE.finditer(text):
            renamed = TIME if hit.lastgroup == "time" else hit.group()
            parts += (text[at : hit.start()], renamed)
            at = hit.end()
        return [*parts, text[at:]] if parts else text


def settled_text(request: Any, places: Places = ()) -> str:
    """See `Settler.text`."""
    return (Settler(places) if places else _usual).text(request)


def settled(request: Any) -> Any:
    """Return the request with JSON inside texts as structure, tool results in the order in which the model requested
    them, programs by their names, tools of Codex without the shell snapshot, and an empty stdin like an inherited one.
    """
    form = _opened(request, 0)
    for one in form if isinstance(form, list) else [form]:
        if isinstance(one, dict) and isinstance(argv := one.get("argv"), list) and argv:
            # The location of a program depends on the machine: `git` may be recorded as `/usr/bin/git`.
            words = without_snapshot(argv)
            one["argv"] = [str(words[0]).rpartition("/")[2], *words[1:]]
            if one.get("stdin") in _SILENT:
                one["stdin"] = "inherited"
    asked: dict[str, int] = {}
    for name in _asked(form):
        asked.setdefault(name, len(asked))
    return _ordered(form, asked) if len(asked) > 1 else form


def _opened(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return value
    if type(value) is dict:
        if "body" in value:
            value = with_form(value)
        return {
            name: _opened(item, depth + 1) for name, item in value.items() if name not in _PASSING
        }
    if type(value) is list:
        return [_opened(item, depth + 1) for item in value]
    if type(value) is str and value[:1] in ("{", "["):
        form = canonical_form(value)
        return form if form is value else _opened(form, depth + 1)
    return value


def _asked(value: Any) -> Iterator[str]:
    """Yield the ids of the tool calls that a model has requested, in order."""
    if isinstance(value, dict):
        name = _call_id(value)
        if name is not None:
            yield name
        for item in value.values():
            yield from _asked(item)
    elif isinstance(value, list):
        for item in value:
            yield from _asked(item)


def _call_id(item: dict[str, Any]) -> str | None:
    kind = item.get("type")
    if kind == "tool_use":
        found = item.get("id")
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        found = item.get("call_id")
    elif kind == "function" and isinstance(item.get("function"), dict):
        found = item.get("id")
    elif isinstance(item.get("functionCall"), dict):
        found = item["functionCall"].get("id")
    else:
        return None
    return found if isinstance(found, str) else None


def _result_id(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    kind = str(item.get("type", ""))
    if kind == "tool_result":
        found = item.get("tool_use_id")
    elif kind.endswith("_call_output"):
        found = item.get("call_id")
    elif item.get("role") == "tool":
        found = item.get("tool_call_id")
    elif isinstance(item.get("functionResponse"), dict):
        found = item["functionResponse"].get("id")
    else:
        return None
    return found if isinstance(found, str) else None


def _ordered(value: Any, asked: dict[str, int]) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(item, asked) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    items = [_ordered(item, asked) for item in value]
    places = [at for at, item in enumerate(items) if _result_id(item) in asked]
    results = sorted((items[at] for at in places), key=lambda one: asked[str(_result_id(one))])
    for at, result in zip(places, results, strict=True):
        items[at] = result
    return items


_usual = Settler()
