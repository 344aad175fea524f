"""Build one item of a story (a call, a turn, a note) from its events, and arrange items as a tree. Pure.

A tape is untrusted: references between events may be wrong or circular.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from playhead.events import Event
from playhead.story.call_contents import exchanges_of, failure_of_exchange, stream_of, whole_number
from playhead.story.shape import CallItem, Failure, Item, Mark, NoteItem, SeamItem, TurnItem
from playhead.story.totals import NOTHING, Prices

# Deeper than any program nests; a tape that claims more is drawn flat from here on, so that
# recursive readers of the tree do not overflow the stack.
DEEPEST = 100


def family(items: Mapping[str, Item]) -> dict[str | None, tuple[str, ...]]:
    """Return the children of each item in order of time; None is the top level.

    The parent of an item is the response that asked for it, else the item that encloses it.
    """
    above: dict[str, str | None] = {}
    for ref, item in items.items():
        cause = getattr(item, "cause", None)
        chosen = cause if cause in items else item.parent
        above[ref] = chosen if chosen in items and chosen != ref else None
    depths: dict[str, int] = {}
    # Where the children of an item go: under the item itself, or under the last ancestor that may have children.
    places: dict[str | None, str | None] = {None: None}
    children: dict[str | None, list[str]] = defaultdict(list)
    for ref in items:
        parent = above[ref]
        # The enclosing item nearly always comes first.
        known = parent is None or parent in depths
        for one in (ref,) if known else _down_to(ref, above, depths):
            parent = above[one]
            depths[one] = 0 if parent is None else depths[parent] + 1
            places[one] = one if depths[one] < DEEPEST else places[parent]
        children[places[above[ref]]].append(ref)
    return {parent: tuple(below) for parent, below in children.items()}


def _down_to(ref: str, above: dict[str, str | None], known: dict[str, int]) -> list[str]:
    """Return `ref` and its unknown ancestors, highest first. A circle is cut."""
    path: list[str] = []
    seen: set[str] = set()
    at: str | None = ref
    while at is not None and at not in known:
        if at in seen:
            above[path[-1]] = None
            break
        path.append(at)
        seen.add(at)
        at = above[at]
    return path[::-1]


# An event, and the number of events before it on the tape.
PlacedEvent = tuple[Event, int]
# Longer than any run: a tape may contain numbers of any size.
_LONGEST_NS = 2**62
_SHAPED = frozenset(("boundary", "name", "request", "effect", "api"))


def data_of(event: Event | None) -> dict[str, Any]:
    return event.data if event is not None and isinstance(event.data, dict) else {}


def call_item(
    placed: PlacedEvent,
    *,
    number: int,
    outcome: PlacedEvent | None,
    pieces: Sequence[PlacedEvent],
    prices: Prices | None,
) -> CallItem:
    """Build a call. Without `prices`, only calls that cost nothing have a cost."""
    event, place = placed
    asked = data_of(event)
    ended = data_of(outcome[0]) if outcome is not None else {}
    head, cut = stream_of(pieces) if pieces else (None, ())
    boundary = str(asked.get("boundary", ""))
    api = asked.get("api")
    llm = exchanges_of(api, asked, head, cut) if boundary == "llm" and isinstance(api, str) else ()
    failure = failure_from(ended.get("error")) or failure_of_exchange(boundary, head, llm)
    cost = None
    if llm and _is_served(asked):
        cost = NOTHING
    elif llm and prices is not None:
        cost = prices.of(llm, event.wall)
    return CallItem(
        number=number,
        ref=event.ref,
        boundary=boundary,
        name=str(asked.get("name", "")),
        lane=event.lane,
        wall=event.wall,
        mono=event.mono,
        at=event.at,
        who=event.who,
        why=event.why,
        parent=event.absolute(event.parent),
        cause=event.absolute(event.cause),
        effect=asked.get("effect"),
        api=api,
        request=asked.get("request"),
        facts={name: asked[name] for name in asked if name not in _SHAPED},
        how=_text_or_none(ended.get("how")),
        took_ns=_nanoseconds(ended.get("took_ns")),
        value=ended.get("value"),
        failure=failure,
        head=head,
        pieces=cut,
        outcome=ended,
        place=place,
        ended=_mark(outcome),
        llm=llm,
        cost=cost,
    )


def turn_item(
    placed: PlacedEvent,
    *,
    end: PlacedEvent | None,
    seams: Sequence[PlacedEvent],
    request: int | None = None,
) -> TurnItem:
    event, place = placed
    begun = data_of(event)
    ended = data_of(end[0]) if end is not None else {}
    return TurnItem(
        ref=event.ref,
        name=str(begun.get("name", "")),
        lane=event.lane,
        wall=event.wall,
        mono=event.mono,
        purpose=purpose if isinstance(purpose := begun.get("purpose"), str) else None,
        input=begun.get("input"),
        at=event.at,
        who=event.who,
        parent=event.absolute(event.parent),
        how=_text_or_none(ended.get("how")),
        took_ns=_nanoseconds(ended.get("took_ns")),
        value=ended.get("value"),
        context=_text(begun.get("context")),
        decision=_text(ended.get("decision")),
        reason=_text(ended.get("reason")),
        failure=failure_from(ended.get("error")),
        seams=tuple(_seam(one) for one in seams),
        place=place,
        ended=_mark(end),
        request=request,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def note_item(placed: PlacedEvent) -> NoteItem:
    event, place = placed
    return NoteItem(
        ref=event.ref,
        kind=event.kind,
        lane=event.lane,
        wall=event.wall,
        mono=event.mono,
        at=event.at,
        who=event.who,
        why=event.why,
        parent=event.absolute(event.parent),
        cause=event.absolute(event.cause),
        data=event.data,
        place=place,
    )


def _seam(placed: PlacedEvent) -> SeamItem:
    data = data_of(placed[0])
    return SeamItem(
        name=str(data.get("name", "")),
        at_ns=whole_number(data.get("at_ns")),
        took_ns=whole_number(data.get("took_ns")),
        value=data.get("value"),
        passed=_mark(placed),
    )


def _mark(placed: PlacedEvent | None) -> Mark | None:
    return None if placed is None else Mark(mono=placed[0].mono, place=placed[1])


def _is_served(asked: Mapping[str, Any]) -> bool:
    """Return whether this call was answered from the tape of another run."""
    match = asked.get("match")
    return isinstance(match, dict) and "of" in match


def failure_from(frozen: Any) -> Failure | None:
    """Return a frozen exception as a failure that views can show."""
    if not isinstance(frozen, dict) or "$exception" not in frozen:
        return None
    name = str(frozen["$exception"]).rpartition(":")[2]
    trace = frozen.get("traceback")
    lines = tuple(str(line) for line in trace) if isinstance(trace, list) else ()
    return Failure(type=name, message=str(frozen.get("message") or ""), traceback=lines)


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _nanoseconds(value: Any) -> int | None:
    """Return a duration. None: the value is not a duration (a tape may contain any value)."""
    return min(value, _LONGEST_NS) if type(value) is int and value >= 0 else None
