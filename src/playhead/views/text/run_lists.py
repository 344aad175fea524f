"""Lists of runs on a terminal: the table of `list`, its tree of replays and forks, and search results.

Every line fits 60 columns. Knows entries and summaries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from playhead.library.catalogue import Entry
from playhead.library.fulltext import Snippet
from playhead.library.run_rows import Summary, is_golden, note_of
from playhead.library.search import FoundRun, ResultPage
from playhead.tape.ending import ending_of
from playhead.tape.manifest import verdict_of
from playhead.views.text import words
from playhead.views.text.console import console, print_line, width_of
from playhead.views.text.safe import clean, one_line

_HEADINGS = ("RUN", "NAME", "AGE", "TOOK", "CALLS", "TOKENS", "COST", "WHY, TAGS")
_STYLES = ("default", "name", "quiet", "default", "default", "default", "money", "quiet")
_LEFT = {0, 1, 7}
# Columns that a narrow terminal omits, the least important one first: TOKENS, CALLS, TOOK, COST.
_FIRST_LEFT_OUT = (5, 4, 3, 6)
_GAP = 2
# Minimum widths of the names and of the remarks at the end of a line.
_NAME = 12
_WHY = 24


def print_runs(
    rows: Sequence[tuple[Entry, Summary]],
    *,
    home: Path,
    everywhere: bool,
    is_filtered: bool,
    now_ns: int,
) -> None:
    out = console()
    width = width_of(out)
    if not rows:
        place = str(home) if everywhere else "this project"
        if is_filtered:
            out.print(f"No run in {place} matches these options.")
            return
        out.print(f"No runs in {place}.")
        out.print("Record one: playhead record -- python my_agent.py")
        return
    shown = run_lines(rows, width=width, now_ns=now_ns)
    for line in shown:
        print_line(out, line)
    is_remarked = any("WHY" in str(line) for line in shown[:1])
    for entry, summary in rows:
        if summary.failed_turns and not is_remarked:
            noun = "failed turn" if summary.failed_turns == 1 else "failed turns"
            warning = f"! {entry.id} has {words.count(summary.failed_turns)} {noun}"
            out.print(Text(one_line(warning, 400), style="failed"))
        if entry.problem:
            out.print(Text(f"! {one_line(entry.problem, 400)}", style="interrupted"))
        elif summary.lost:
            noun = "event" if summary.lost == 1 else "events"
            lost = f"{words.count(summary.lost)} {noun}"
            warning = f"! {entry.id} lost {lost}: `playhead show` says where"
            out.print(Text(one_line(warning, 400), style="interrupted"))


def run_lines(rows: Sequence[tuple[Entry, Summary]], *, width: int, now_ns: int) -> list[Text]:
    """Return the headings, then one line per run."""
    cells = [_cells(entry, summary, now_ns) for entry, summary in rows]
    widths = _widths([_HEADINGS, *cells], width)
    _leave_out(widths, width)
    lines = [_line(_HEADINGS, widths, ["quiet"] * len(_HEADINGS))]
    for (entry, _), row in zip(rows, cells, strict=True):
        line = Text.assemble(_glyph(entry))
        lines.append(line.append_text(_line(row, widths, _STYLES)[2:]))
    return lines


def _glyph(entry: Entry) -> tuple[str, str]:
    ending = ending_of(entry.status, entry.manifest)
    return f"{ending.glyph} ", ending.tone


def _cells(entry: Entry, summary: Summary, now_ns: int) -> tuple[str, ...]:
    manifest = entry.manifest
    seconds = manifest.duration_s if manifest.duration_s is not None else summary.duration_s
    return (
        f"  {one_line(entry.id, 60)}",
        ("↻ " if manifest.replay_of else "") + one_line(manifest.name, 60),
        words.age(manifest.started_ns, now_ns) if manifest.started_ns else "–",
        words.duration(seconds),
        words.short(summary.calls)
        if summary.calls or not summary.emitted
        else f"{words.short(summary.emitted)} ev",
        words.short(summary.tokens),
        words.money(summary.cost_usd, at_least=summary.unpriced > 0),
        _remark(entry, summary),
    )


def _remark(entry: Entry, summary: Summary) -> str:
    """Return the note, the reason of a failure and the replayed run; else the tags."""
    parts = [summary.failure] if summary.failure else []
    if entry.manifest.replay_of:
        verdict = verdict_of(entry.manifest)
        what = "replay of" if verdict is None else f"{verdict}: replay of"
        parts.append(f"{what} {entry.manifest.replay_of}")
    if summary.failed_turns:
        noun = "failed turn" if summary.failed_turns == 1 else "failed turns"
        parts.append(f"{words.count(summary.failed_turns)} {noun}")
    if summary.last_seam and entry.status in ("failed", "interrupted"):
        parts.append(f"after seam {summary.last_seam}")
    if note := note_of(entry.manifest):
        parts.insert(0, note)
    if not parts:
        parts = [f"{key}={value}" for key, value in entry.manifest.tags.items()]
    return one_line(" · ".join((["kept"] if entry.manifest.keep else []) + parts), 200)


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the width of each column. Names are shortened first; remarks are left out without room."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEADINGS))]
    fixed = sum(widths) - widths[1] - widths[-1] + _GAP * (len(widths) - 2)
    room = width - fixed
    if room - min(widths[1], 24) - _GAP < min(_WHY, widths[-1]) or widths[-1] <= len(_HEADINGS[-1]):
        return [widths[0], max(_NAME, min(widths[1], room)), *widths[2:-1]]
    name = min(widths[1], 24)
    return [widths[0], name, *widths[2:-1], min(widths[-1], room - name - _GAP)]


def _leave_out(widths: list[int], width: int) -> None:
    """Set the width of columns that do not fit on a narrow terminal to 0."""
    for at in _FIRST_LEFT_OUT:
        shown = [one for one in widths if one]
        if sum(shown) + _GAP * (len(shown) - 1) <= width:
            return
        widths[at] = 0


def _line(cells: Sequence[str], widths: Sequence[int], styles: Sequence[str]) -> Text:
    line = Text()
    for at, (cell, width, style) in enumerate(zip(cells, widths, styles, strict=False)):
        if not width:
            continue
        text = Text(cell, style=style)
        if text.cell_len > width:
            text.truncate(width, overflow="ellipsis")
        space = " " * (width - text.cell_len)
        line.append(" " * _GAP if at else "")
        if at in _LEFT:
            line.append_text(text).append(space if at < len(widths) - 1 else "")
        else:
            line.append(space).append_text(text)
    return line


_WIDTH = 28
# Below this width a line of the tree has no times, so that there is room for the verdict.
_NARROW = 76


def print_families(entries: Sequence[Entry], *, limit: int | None, now_ns: int) -> None:
    """Print runs with their replays and forks as trees. `limit`: maximum number of trees."""
    out = console()
    if not entries:
        out.print("No runs here. Record one: playhead record -- python my_agent.py")
        return
    for prefix, entry in families(entries, limit=limit):
        line = _family_line(prefix, entry, now_ns, is_narrow=out.width < _NARROW)
        out.print(line, no_wrap=True, overflow="ellipsis")


def parent_of(entry: Entry) -> str | None:
    forked = entry.manifest.extra.get("forked_from")
    return forked if isinstance(forked, str) else entry.manifest.replay_of


def families(entries: Sequence[Entry], *, limit: int | None = None) -> Iterator[tuple[str, Entry]]:
    """Yield each run with the branches drawn before it; children are sorted oldest first."""
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
        # The rest are runs whose manifests form a cycle of parents.
        yield from (("", entry) for entries in below.values() for entry in entries)


def _family_line(prefix: str, entry: Entry, now_ns: int, *, is_narrow: bool) -> Text:
    manifest = entry.manifest
    age = words.age(manifest.started_ns, now_ns) if manifest.started_ns else "–"
    room = max(0, _WIDTH - len(prefix))
    name = 12 if is_narrow else 18
    times = f"{age:>5} {words.duration(manifest.duration_s):>8}  "
    return Text.assemble(
        (prefix, "quiet"),
        _glyph(entry),
        f"{one_line(entry.id, 60):<{room}}",
        (f"{one_line(manifest.name, name):<{name}} ", "name"),
        ("" if is_narrow else times, "quiet"),
        (_relation(entry), "quiet"),
    )


def _relation(entry: Entry) -> str:
    manifest = entry.manifest
    parts = ["golden"] if is_golden(manifest) else []
    if "forked_from" in manifest.extra:
        parts.append(f"fork at {one_line(str(manifest.extra.get('forked_at', '?')), 12)}")
    elif manifest.replay_of is not None:
        parts.append(one_line(verdict_of(manifest) or "replay", 20))
    return ", ".join(parts)


_MARGIN = 11


def print_hits(page: ResultPage, *, now_ns: int, everywhere: bool) -> None:
    out = console()
    if not page.rows:
        elsewhere = "" if everywhere else " in this project (--all searches all projects)"
        out.print(f"No run matches{elsewhere}.")
        return
    for found in page.rows:
        for line in hit_lines(found, now_ns, width_of(out)):
            print_line(out, line)
    left = page.total - len(page.rows)
    noun = "run" if page.total == 1 else "runs"
    more = f", the first {len(page.rows)} shown (--limit)" if left > 0 else ""
    counted = f"{'more than ' if page.has_more else ''}{words.count(page.total)}"
    out.print(Text(f"{counted} {noun}{more}", style="quiet"))


def hit_lines(found: FoundRun, now_ns: int, width: int) -> Iterator[Text]:
    entry, manifest = found.entry, found.entry.manifest
    facts = [f"{words.age(manifest.started_ns, now_ns)} ago"]
    if found.summary.cost_usd is not None:
        facts.append(words.money(found.summary.cost_usd))
    if found.models:
        facts.append(one_line(found.models[0], 40))
    head = Text.assemble(
        _glyph(entry),
        f"{one_line(entry.id, 60)}  ",
        (one_line(manifest.name, 40), "name"),
        (f"  {' · '.join(facts)}", "quiet"),
    )
    head.truncate(width, overflow="ellipsis")
    yield head
    for snippet in found.snippets:
        yield Text.assemble((f"  {snippet.scope:<{_MARGIN - 2}}", "quiet"), _shown(snippet, width))


def _shown(snippet: Snippet, width: int) -> Text:
    """Highlight the hits of a snippet. Their offsets refer to the original text, so each piece is cleaned on its
    own.
    """
    line = Text()
    at = 0
    for start, end in snippet.hits:
        line.append(clean(snippet.text[at:start]))
        line.append(clean(snippet.text[start:end]), style="bold yellow")
        at = end
    line.append(clean(snippet.text[at:]))
    first = len(clean(snippet.text[: snippet.hits[0][0]])) if snippet.hits else 0
    room = width - _MARGIN
    if line.cell_len > room and first > room // 2:
        line = Text("…").append_text(line[first - room // 3 :])
    line.truncate(room, overflow="ellipsis")
    return line
