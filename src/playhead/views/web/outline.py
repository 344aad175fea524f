"""A run as columns for the page: its tree, lanes, figures, and the cause of each item. Pure.

Columns instead of objects, and each text once: 100,000 rows must be on the screen within a second. The page requests
the contents of a row when it is opened (`story_json.item_at`).

A tool is called because a response asked for it, a model because of a tool's result, and an HTTP exchange happens
inside a tool. Followed upwards, this is the chain of causes of an item.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from playhead import events
from playhead.llm import ToolResult
from playhead.story import CallItem, Item, NoteItem, Story, TurnItem
from playhead.story.run_clock import offsets
from playhead.story.start_up import is_start_up
from playhead.story.story_json import run_json
from playhead.story.totals import usages
from playhead.views.text.safe import styled
from playhead.views.web.page_rows import PageRow, name_and_brief, reason, rows_of

# Words between an item and its cause; the outline holds their index.
WORDS = ("", "asked for by", "given the result of", "inside", "part of")
_ASKED, _GIVEN, _INSIDE, _PART = 1, 2, 3, 4

Reason = tuple[str, int]


def reasons(story: Story) -> dict[str, Reason]:
    """Return {ref: (ref of the cause, index of the word between them)}."""
    found: dict[str, Reason] = {}
    uses: dict[str, tuple[str, str, int]] = {}
    for ref, item in story.items.items():
        reason = _near(story, item)
        if isinstance(item, CallItem) and item.llm:
            result = _newest_result(story, item, uses)
            reason = (result, _GIVEN) if result is not None else reason
            _remember(item, uses)
        if reason is not None and reason[0] != ref:
            found[ref] = reason
    return found


def _near(story: Story, item: Item) -> Reason | None:
    cause = getattr(item, "cause", None)
    if cause is not None and cause in story.items:
        above = story.items[cause]
        return cause, _ASKED if isinstance(above, CallItem) and above.llm else _INSIDE
    if item.parent is None or item.parent not in story.items:
        return None
    return item.parent, _PART if isinstance(story.items[item.parent], TurnItem) else _INSIDE


def _remember(call: CallItem, uses: dict[str, tuple[str, str, int]]) -> None:
    """Remember the tool calls that this response asks for, with their ordinal among calls of the same name."""
    seen: Counter[str] = Counter()
    for exchange in call.llm:
        for use in exchange.response.tool_calls if exchange.response else ():
            name = use.name or ""
            if use.id is not None:
                uses[use.id] = (call.ref, name, seen[name])
            seen[name] += 1


def _newest_result(
    story: Story, call: CallItem, uses: dict[str, tuple[str, str, int]]
) -> str | None:
    """Return the tool call whose result is the newest in this request."""
    for message in reversed(call.llm[0].request.messages):
        if message.role == "assistant":
            return None
        for part in reversed(message.parts):
            if isinstance(part, ToolResult) and part.id in uses:
                return _performed(story, *uses[part.id])
    return None


def _performed(story: Story, asker: str, name: str, ordinal: int) -> str:
    """Return the call that performed a requested tool; the response itself if none is on the tape."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for ref in story.children.get(asker, ()):
        item = story.items[ref]
        if isinstance(item, CallItem):
            by_name[item.name].append(ref)
    performed = by_name.get(name, [])
    return performed[ordinal] if ordinal < len(performed) else asker


VERSION = 1
KINDS = ("turn", "call", "note", "seam", "person")
# Values of `took`: in flight when the tape ends; a moment without a length.
IN_FLIGHT, MOMENT = -1, -2
_MOST_PRINTED = 200_000
_BLINK_US = 50_000
_NUMBERS = ("kind", "depth", "above", "lane", "boundary", "name", "brief", "fail", "how")
_COLUMNS = (*_NUMBERS, "at", "took", "place", "number", "came", "went", "cost", "because", "word")


# Members of `run_json` that the page keeps outside of the run.
_BESIDE = ("totals", "failure", "last_seam", "failed_turn", "damage")


def outline(story: Story) -> dict[str, Any]:
    """Derive the page's columns from a story; `static/model.js` reads them.

    The head is `run_json`. Each row is an item of `item_json`, a seam of a turn, or what a person asked in an
    LLM call; a column holds one member of all rows. Texts are indices into `strings`, lanes into `lanes`, times
    are microseconds since the first item.
    """
    rows = list(rows_of(story))
    columns = _Columns(story, rows)
    filled = columns.filled(rows)
    run = run_json(story)
    beside = {name: run.pop(name) for name in _BESIDE}
    # The page links to rows by ref.
    run["in_flight"] = beside["in_flight"] = list(story.in_flight)
    return {
        "version": VERSION,
        "run": {**run, **_times(story)},
        **beside,
        # The steps that "First failure" goes to, in the order of time.
        "failures": list(story.failures()),
        "printed": _printed(story),
        # 0: the page need not request the files of the run.
        "file_events": story.file_events,
        "kinds": list(KINDS),
        "words": list(WORDS),
        # Kinds of events that the page hides until a person asks for them.
        "background": [name for name, kind in events.KINDS.items() if kind.background],
        "lanes": list(columns.lanes),
        "strings": list(columns.strings),
        "refs": [row.ref for row in rows],
        "columns": filled,
    }


def _times(story: Story) -> dict[str, int]:
    """Return the length of the run; of the time axis, which starts with the agent; and of the time before that."""
    return {
        "duration_us": story.duration_ns // 1000,
        "axis_us": (story.duration_ns - story.start_up_ns) // 1000,
        "start_up_us": story.start_up_ns // 1000,
    }


def _printed(story: Story) -> list[list[Any]]:
    """Return the last part of the program's output: [microseconds, stream, text], a line or more each."""
    since = offsets(story)
    pieces: list[list[Any]] = []
    size = 0
    outputs = (one for one in story.items.values() if isinstance(one, NoteItem))
    for note in reversed([one for one in outputs if one.kind == events.OUTPUT]):
        data = note.data if isinstance(note.data, dict) else {}
        text, stream = data.get("text"), str(data.get("stream", "stdout"))
        if not isinstance(text, str):
            continue
        at = max(0, note.mono + since[note.ref]) // 1000
        # Output within 50 ms is one piece: the page can draw a limited number of pieces.
        if pieces and pieces[-1][1] == stream and pieces[-1][0] - at < _BLINK_US:
            pieces[-1][0], pieces[-1][2] = at, text + pieces[-1][2]
        else:
            pieces.append([at, stream, text])
        size += len(text)
        if size > _MOST_PRINTED:
            break
    return [[at, stream, styled(text)] for at, stream, text in reversed(pieces)]


class _Columns:
    """Fills the columns row by row; texts and lanes get the number of their first use."""

    def __init__(self, story: Story, rows: list[PageRow]) -> None:
        self.strings: dict[str, int] = {"": 0}
        self.lanes: dict[str, int] = {}
        self._reasons = reasons(story)
        # The row of an item: where it has two, the one that is the item itself.
        self._row_of = {row.ref: index for index, row in enumerate(rows)}
        self._since = offsets(story)

    def filled(self, rows: list[PageRow]) -> dict[str, list[Any]]:
        table = [self._row(row) for row in rows]
        found = [list(column) for column in zip(*table, strict=True)] or [[] for _ in _COLUMNS]
        return dict(zip(_COLUMNS, found, strict=True))

    def _text(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def _row(self, row: PageRow) -> tuple[Any, ...]:
        item = row.item
        name, brief = name_and_brief(row)
        above = -1 if row.above is None else self._row_of.get(row.above, -1)
        went_back = self._reasons.get(item.ref) if row.kind in ("turn", "call", "note") else None
        because = -1 if went_back is None else self._row_of.get(went_back[0], -1)
        at, took = self._time(row)
        boundary, how, fail, number = "", "", "", 0
        came, went, cost = 0, 0, 0.0
        if isinstance(item, CallItem) and row.kind == "call":
            boundary, how, number = item.boundary, item.how or "", item.number
            fail = reason(item.failure)
            used = usages(item)
            came = sum(one.input_tokens or 0 for one in used)
            went = sum(one.output_tokens or 0 for one in used)
            cost = 0.0 if item.cost is None else round(float(item.cost.usd), 8)
        elif isinstance(item, TurnItem) and row.kind == "turn":
            how, fail = item.how or "", reason(item.failure)
        elif isinstance(item, NoteItem):
            boundary = item.kind
        numbers = (
            *(KINDS.index(row.kind), row.depth, above),
            *(self.lanes.setdefault(item.lane, len(self.lanes)), self._text(boundary)),
            *(self._text(name), self._text(brief), self._text(fail), self._text(how)),
        )
        word = went_back[1] if went_back is not None else 0
        return (*numbers, at, took, _place(row), number, came, went, cost, because, word)

    def _time(self, row: PageRow) -> tuple[int, int]:
        item = row.item
        since = max(0, item.mono + self._since[item.ref]) // 1000
        if isinstance(item, TurnItem) and row.kind == "seam":
            return since + item.seams[row.seam].at_ns // 1000, MOMENT
        # The time axis starts after the calls of libraries at start-up: they have no length on it.
        if isinstance(item, NoteItem) or row.kind == "person" or is_start_up(item):
            return since, MOMENT
        if item.how is None:
            return since, IN_FLIGHT
        ended = item.ended.mono - item.mono if item.ended is not None else 0
        return since, (item.took_ns if item.took_ns is not None else max(0, ended)) // 1000


def _place(row: PageRow) -> int:
    if isinstance(row.item, TurnItem) and row.kind == "seam":
        passed = row.item.seams[row.seam].passed
        return passed.place if passed is not None else row.item.place
    return row.item.place
