"""The frames of a playback: what a viewer sees, with its time since the start of the run. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from playhead import events
from playhead.recording.chunks import as_bytes
from playhead.story import CallItem, Item, Mark, NoteItem, SeamItem, Story, TurnItem
from playhead.story.call_contents import text_pieces
from playhead.story.run_clock import generations, offsets
from playhead.story.totals import usages
from playhead.views.text.safe import unstyled

Part = Literal["begin", "said", "thought", "printed", "end", "seam", "note"]

_MOST_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayFrame:
    """One visible change. `kind` and `place` are the kind and the position of its event on the tape."""

    at_ns: int
    place: int
    part: Part
    kind: str
    item: Item
    depth: int = 0
    text: str = ""
    seam: SeamItem | None = None
    is_failure: bool = False
    # Totals up to and including this frame.
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFilter:
    """Which frames are played. An empty member does not filter."""

    kinds: tuple[str, ...] = ()
    boundaries: frozenset[str] = frozenset()
    lanes: tuple[str, ...] = ()
    who: tuple[str, ...] = ()
    output: bool = True

    def matches(self, frame: PlayFrame) -> bool:
        item = frame.item
        if not self.output and frame.part == "printed":
            return False
        if self.kinds and not any(fnmatchcase(frame.kind, glob) for glob in self.kinds):
            return False
        if self.lanes and not any(fnmatchcase(item.lane, glob) for glob in self.lanes):
            return False
        if self.who and not any(fnmatchcase(item.who or "", glob) for glob in self.who):
            return False
        if not self.boundaries:
            return True
        return isinstance(item, CallItem) and item.boundary in self.boundaries


def frames_of(story: Story, wanted: FrameFilter | None = None) -> list[PlayFrame]:
    """Return the frames in the order of the tape. Their times never decrease."""
    depths = _depths(story)
    since = offsets(story)
    placed: list[PlayFrame] = []
    latest = 0
    for generation in generations(story.items.values()):
        made = [frame for item in generation for frame in _item_frames(item)]
        made.sort(key=lambda frame: frame.place)
        for frame in made:
            latest = max(latest, frame.at_ns + since[frame.item.ref])
            placed.append(replace(frame, at_ns=latest, depth=depths[frame.item.ref]))
    chosen = wanted or FrameFilter()
    return [frame for frame in _with_totals(placed) if chosen.matches(frame)]


def _item_frames(item: Item) -> Iterator[PlayFrame]:
    """Yield frames with times of the tape's monotonic clock; `frames_of` makes them relative to the start."""
    if isinstance(item, CallItem):
        yield from _call_frames(item)
    elif isinstance(item, TurnItem):
        yield from _turn_frames(item)
    elif item.kind == events.OUTPUT:
        yield _frame(item, "printed", item.kind, text=_printed(item))
    elif not events.kind_of(item.kind).background:
        is_warning = events.kind_of(item.kind).is_warning
        yield _frame(item, "note", item.kind, is_failure=is_warning)


def _call_frames(call: CallItem) -> Iterator[PlayFrame]:
    yield _frame(call, "begin", events.CALL)
    for said in text_pieces(call):
        part: Part = "thought" if said.is_thought else "said"
        mark = Mark(mono=call.mono + said.at_ns, place=said.place)
        yield _frame(call, part, events.CHUNK, mark, text=said.text)
    if call.boundary == "process":
        yield from _process_output(call)
    if call.ended is not None:
        is_failure = call.failure is not None
        yield _frame(call, "end", events.OUTCOME, call.ended, is_failure=is_failure)


def _process_output(call: CallItem) -> Iterator[PlayFrame]:
    """Yield the output of a process. Characters that were split between two chunks are joined."""
    decoders = {
        stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in ("stdout", "stderr")
    }
    for piece in call.pieces:
        if piece.stream in decoders:
            text = unstyled(decoders[piece.stream].decode(piece.data))
            mark = Mark(mono=call.mono + piece.at_ns, place=piece.place)
            yield _frame(call, "printed", events.CHUNK, mark, text=text)


def _turn_frames(turn: TurnItem) -> Iterator[PlayFrame]:
    yield _frame(turn, "begin", events.TURN_START)
    for seam in turn.seams:
        yield _frame(turn, "seam", events.SEAM, seam.passed, seam=seam)
    if turn.ended is not None:
        is_failure = turn.failure is not None
        yield _frame(turn, "end", events.TURN_END, turn.ended, is_failure=is_failure)


def _frame(item: Item, part: Part, kind: str, mark: Mark | None = None, **more: Any) -> PlayFrame:
    """Make a frame at the time of `mark`; None: at the start of the item."""
    at = mark or Mark(mono=item.mono, place=item.place)
    return PlayFrame(at_ns=at.mono, place=at.place, part=part, kind=kind, item=item, **more)


def _printed(note: NoteItem) -> str:
    data = note.data if isinstance(note.data, dict) else {}
    try:
        return unstyled(as_bytes(data).decode("utf-8", "replace"))
    except (TypeError, ValueError):
        return ""


def _with_totals(frames: Iterable[PlayFrame]) -> Iterator[PlayFrame]:
    """Add the totals of calls, tokens and cost to each frame."""
    calls = tokens = 0
    cost = 0.0
    for frame in frames:
        item = frame.item
        if isinstance(item, CallItem):
            calls += frame.part == "begin"
            if frame.part == "end":
                used = usages(item)
                tokens += sum((one.input_tokens or 0) + (one.output_tokens or 0) for one in used)
                cost += float(item.cost.usd) if item.cost is not None else 0.0
        yield replace(frame, calls=calls, tokens=tokens, cost_usd=cost)


def _depths(story: Story) -> dict[str, int]:
    """Return the indentation level of each item: the number of items that enclose it, up to a maximum."""
    depths: dict[str, int] = {}
    for ref, item in story.items.items():
        above = item.parent
        depths[ref] = min(_MOST_DEPTH, depths[above] + 1) if above in depths else 0
    return depths
