"""The vocabulary of a tape: boundaries, levels, and the table of event kinds that recorder and views read.

Data only: nothing here reads a clock or a file. The event itself is in `playhead.event` and can be imported
from here: a recorder writes lines without making an `Event`, and the imports of that module (dataclasses,
typing) would cost every recorded process 15 ms at its start.
"""

from __future__ import annotations

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.event import Boundary as Boundary  # noqa: PLC0414  re-exported by __getattr__
    from playhead.event import Damage as Damage  # noqa: PLC0414
    from playhead.event import Effect as Effect  # noqa: PLC0414
    from playhead.event import Event as Event  # noqa: PLC0414
    from playhead.event import Level as Level  # noqa: PLC0414
    from playhead.event import Ref as Ref  # noqa: PLC0414
    from playhead.event import Status as Status  # noqa: PLC0414

LEVELS: tuple[Level, ...] = ("minimal", "standard", "full")

BOUNDARIES: tuple[Boundary, ...] = (
    "llm",
    "http",
    "grpc",
    "sql",
    "process",
    "tool",
    "mcp",
    "state",
    "input",
    "stream",
    "clock",
    "entropy",
)

# The closed vocabulary. Every other word is a user's own kind, or one from a later version of
# Playhead: both are kept and written back as they were.
RUN_START = "run.start"
RUN_END = "run.end"
SEGMENT_START = "segment.start"
SEGMENT_END = "segment.end"
CALL = "call"
CHUNK = "chunk"
OUTCOME = "outcome"
TURN_START = "turn.start"
TURN_END = "turn.end"
SEAM = "seam"
RETRIEVAL = "retrieval"
SNAPSHOT = "snapshot"
OUTPUT = "output"
INPUT = "input"
AMBIENT = "ambient"
ORDER = "order"
HOOK = "hook"
HOLE = "hole"
GAP = "gap"
DIVERGENCE = "divergence"
WORKSPACE = "workspace"
FILES = "files"
# Not on a tape: the story creates it from the calls of libraries (see `story/start_up.py`).
START_UP = "playhead.start-up"
# Member of a call's data: the library that made the call while it was loaded (see `recording/where.py`).
BY_LIBRARY = "start_up"


class EventKind:
    """One kind of event: what it means, what each level keeps of it, and how the views show it.

    A plain class and not a dataclass: every recorded process loads this module at its start.
    """

    __slots__ = (
        *(
            "background",
            "defaults",
            "in_story",
            "is_warning",
            "keeps_all",
            "line",
            "mark",
            "meaning",
        ),
        *("metadata", "name", "searchable", "style", "summary", "title"),
    )

    def __init__(
        self,
        name: str,
        meaning: str,
        *,
        metadata: tuple[str, ...] = (),
        keeps_all: bool = False,
        in_story: bool = True,
        background: bool = False,
        is_warning: bool = False,
        searchable: bool = False,
        style: str = "quiet",
        mark: str = "",
        title: str = "",
        summary: str | None = None,
        line: str = "",
        defaults: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.meaning = meaning
        # Levels below `full` keep these members of the data: they hold no content.
        self.metadata = frozenset(metadata)
        # Every level keeps all of the data.
        self.keeps_all = keeps_all
        # Whether the story shows it. False: only `playhead events` shows it.
        self.in_story = in_story
        # In the story, and left out of the tree and the player unless the person asks for it.
        self.background = background
        # Something is missing on the tape: shown in the colour of a warning.
        self.is_warning = is_warning
        # Whether `playhead search` finds its data.
        self.searchable = searchable
        # The colour of the terminal views (see `views/text/console.py`), and a sign before the title.
        self.style = style
        self.mark = mark
        # Templates of the members of the data (`{lost} events lost`). One line of the tree, the player and the
        # page is title and summary; without a summary it is the data as JSON.
        self.title = title or name
        self.summary = summary
        # The same for `playhead events`, which also offers {took}, {result}, {given} and {shown}.
        self.line = line
        # Shown for members that are missing.
        self.defaults = defaults or {}

    def titled(self, data: Any) -> str:
        return fill(self.title, data, self.defaults)

    def summarised(self, data: Any) -> str:
        return fill(self.summary or "", data, self.defaults)


class _Members(dict):  # type: ignore[type-arg]  # {name: _Member}, for str.format_map
    """The members of an event's data for a template; a tape is untrusted, so any member may be missing."""

    def __missing__(self, name: str) -> _Member:
        return _Member(None)


class _Member:
    """A value that works with any format specification of a template."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        value = self.value
        if spec and type(value) in (int, float):
            return format(value, spec)
        if value is None:
            return "?" if spec else ""
        return str(value)


def fill(template: str, data: Any, defaults: dict[str, str]) -> str:
    """Fill a template of a kind from an event's data. A missing number is shown as `?`."""
    members = {**defaults, **data} if isinstance(data, dict) else defaults
    return template.format_map(_Members({str(k): _Member(v) for k, v in members.items()}))


_CALL_METADATA = (
    *("boundary", "name", "effect", "api", "method", "url", "model", "stream", "argv0", "library"),
    BY_LIBRARY,
)
_OUTCOME_METADATA = (
    *("call", "how", "status", "took_ns", "exit_code", "signal", "bytes", "chunks", "usage"),
)

# To add a kind: its name above, one row here, and the code that writes it (see CONTRIBUTING.md).
_ROWS = (
    EventKind(
        RUN_START,
        "A run begins: its command, environment and versions; again when it is resumed",
        keeps_all=True,
        style="running",
        title="resumed",
        summary="",
    ),
    EventKind(
        RUN_END,
        "A run ends: its status and exit code",
        keeps_all=True,
        line="{status} after {took} {result}",
    ),
    EventKind(
        SEGMENT_START,
        "A process begins to record: its pid, interpreter and host",
        keeps_all=True,
        in_story=False,
    ),
    EventKind(SEGMENT_END, "A process has recorded everything", keeps_all=True, in_story=False),
    EventKind(
        CALL,
        "A call across a boundary begins: its request, written before the call is performed",
        metadata=_CALL_METADATA,
        style="tool",
        line="{boundary} {name}{given}",
    ),
    EventKind(
        CHUNK,
        "A piece of a stream that belongs to a call",
        metadata=("call", "stream", "sizes", "at_ns"),
        line="of {call} {stream} {shown}",
    ),
    EventKind(
        OUTCOME,
        "A call is answered: returned, raised, cut or left",
        metadata=_OUTCOME_METADATA,
        style="ok",
        line="of {call} {how} after {took} {result}",
    ),
    EventKind(
        TURN_START,
        "A unit of agent work begins",
        metadata=("turn", "name", "purpose", "context"),
        style="turn",
        line="{name} {purpose}",
    ),
    EventKind(
        TURN_END,
        "A unit of agent work ends",
        metadata=("turn", "name", "how", "took_ns", "last_seam", "seams", "decision", "reason"),
        style="turn",
        line="{name} {how} after {took} {result}",
    ),
    EventKind(
        SEAM,
        "A named checkpoint inside a turn, or of the run",
        metadata=("turn", "name", "took_ns", "at_ns"),
        searchable=True,
        style="seam",
        mark="◆ ",
        title="{name}",
        summary="",
        line="{name} {purpose}",
    ),
    EventKind(
        RETRIEVAL,
        "Sources were retrieved for a prompt",
        metadata=("turn", "count", "included", "dropped", "bytes"),
        searchable=True,
        summary="{included:,} of {count:,} sources, {bytes:,} bytes in the prompt",
    ),
    EventKind(
        SNAPSHOT,
        "The state of a watched store at one moment",
        metadata=("store", "bytes"),
        background=True,
        style="tool",
    ),
    EventKind(
        OUTPUT,
        "The program printed to stdout or stderr",
        metadata=("stream", "bytes"),
        background=True,
        style="process",
        title="{stream}",
        summary="{text}",
        line="{stream} {text}",
        defaults={"stream": "stdout", "text": "(binary)"},
    ),
    EventKind(
        INPUT,
        "The command read its stdin, which the launcher recorded",
        metadata=("stream", "bytes"),
        background=True,
        style="process",
        title="{stream}",
        summary="{text}",
        line="{stream} {text}",
        defaults={"stream": "stdin", "text": "(binary)"},
    ),
    EventKind(AMBIENT, "Readings of clocks, entropy and random numbers", in_story=False),
    EventKind(ORDER, "The order in which concurrent work finished", in_story=False),
    EventKind(
        HOOK,
        "A library is recorded from now on",
        keeps_all=True,
        background=True,
        style="tool",
    ),
    EventKind(
        HOLE,
        "Something happened that Playhead could not record",
        keeps_all=True,
        is_warning=True,
        searchable=True,
        style="interrupted",
        title="not recorded",
        summary="{what} ({why})",
    ),
    EventKind(
        GAP,
        "Events were lost, for example because the disk was full",
        keeps_all=True,
        is_warning=True,
        searchable=True,
        style="interrupted",
        summary="{lost:,} events lost ({why})",
    ),
    EventKind(DIVERGENCE, "A replay differs from its tape", style="tool"),
    EventKind(
        WORKSPACE,
        "A folder of files at the start of a run",
        in_story=False,
    ),
    EventKind(FILES, "Files that a call changed", in_story=False),
)
# By name, in the order of the format's documentation.
KINDS = {row.name: row for row in _ROWS}
# A user's own kind, or one from a later version of Playhead.
_OTHER = EventKind("", "An event of the user's own", searchable=True, style="tool")
_START_UP = EventKind(
    START_UP,
    "Calls that libraries made while they were loaded",
    title="start-up",
    summary="{programs} (by libraries; not counted)",
)


def kind_of(name: str) -> EventKind:
    """Return the kind with this name; for a user's own kind, one that shows the data as it is."""
    return _START_UP if name == START_UP else KINDS.get(name, _OTHER)


_event = Later("playhead.event")
_THERE = frozenset({"Boundary", "Damage", "Effect", "Event", "Level", "Ref", "Status"})


def __getattr__(name: str) -> Any:
    """Load a type of `playhead.event` when it is first used."""
    if name not in _THERE:
        raise AttributeError(f"module 'playhead.events' has no attribute {name!r}")
    value = globals()[name] = getattr(_event, name)
    return value
