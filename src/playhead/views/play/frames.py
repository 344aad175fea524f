"""What is seen when, counted from the start of the tape. Pure: a story in, frames out.

A run that was resumed goes on where it had stopped: the time in between, which may be days or a
reboot, is no part of it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from playhead import events
from playhead.recording.chunks import as_bytes
from playhead.story import CallItem, Item, Mark, NoteItem, SeamItem, Story, TurnItem
from playhead.story.streamed_text import text_pieces
from playhead.story.totals import usages
from playhead.views.text.safe import unstyled

Part = Literal["begin", "said", "thought", "printed", "end", "seam", "note"]

_DEEPEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayFrame:
    """One thing that happened. `kind` is that of the event on the tape, `place` its number there."""

    at_ns: int
    place: int
    part: Part
    kind: str
    item: Item
    depth: int = 0
    text: str = ""
    seam: SeamItem | None = None
    is_failure: bool = False
    # So far, this one included.
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is to be seen. Empty: everything."""

    kinds: tuple[str, ...] = ()
    boundaries: frozenset[str] = frozenset()
    lanes: tuple[str, ...] = ()
    output: bool = True

    def takes(self, frame: PlayFrame) -> bool:
        item = frame.item
        if not self.output and frame.part == "printed":
            return False
        if self.kinds and not any(fnmatchcase(frame.kind, glob) for glob in self.kinds):
            return False
        if self.lanes and not any(fnmatchcase(item.lane, glob) for glob in self.lanes):
            return False
        if not self.boundaries:
            return True
        return isinstance(item, CallItem) and item.boundary in self.boundaries


def frames_of(story: Story, shown: Shown | None = None) -> list[PlayFrame]:
    """All frames in the order of the tape, their times never going back."""
    depths = _depths(story)
    placed: list[PlayFrame] = []
    latest = 0
    for generation in _generations(story.items.values()):
        made = [frame for item in generation for frame in _of_item(item)]
        made.sort(key=lambda frame: frame.place)
        offset = latest - made[0].at_ns if made else 0
        for frame in made:
            latest = max(latest, frame.at_ns + offset)
            placed.append(replace(frame, at_ns=latest, depth=depths[frame.item.ref]))
    wanted = shown or Shown()
    return [frame for frame in _counted(placed) if wanted.takes(frame)]


def _generations(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Items from one start, or resumption, to the next."""
    here: list[Item] = []
    for item in items:
        if isinstance(item, NoteItem) and item.kind == events.RUN_START and here:
            yield here
            here = []
        here.append(item)
    if here:
        yield here


def _of_item(item: Item) -> Iterator[PlayFrame]:
    """Frames by the monotonic clock of the tape; `frames_of` counts them from the start."""
    if isinstance(item, CallItem):
        yield from _of_call(item)
    elif isinstance(item, TurnItem):
        yield from _of_turn(item)
    elif item.kind == events.OUTPUT:
        yield _frame(item, "printed", item.kind, text=_printed(item))
    elif not events.kind_of(item.kind).background:
        is_warning = events.kind_of(item.kind).is_warning
        yield _frame(item, "note", item.kind, is_failure=is_warning)


def _of_call(call: CallItem) -> Iterator[PlayFrame]:
    yield _frame(call, "begin", events.CALL)
    for said in text_pieces(call):
        part: Part = "thought" if said.is_thought else "said"
        mark = Mark(mono=call.mono + said.at_ns, place=said.place)
        yield _frame(call, part, events.CHUNK, mark, text=said.text)
    if call.boundary == "process":
        yield from _printed_by(call)
    if call.ended is not None:
        is_failure = call.failure is not None
        yield _frame(call, "end", events.OUTCOME, call.ended, is_failure=is_failure)


def _printed_by(call: CallItem) -> Iterator[PlayFrame]:
    """What a process printed, letters that were cut in two put together again."""
    decoders = {
        stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in ("stdout", "stderr")
    }
    for piece in call.pieces:
        if piece.stream in decoders:
            text = unstyled(decoders[piece.stream].decode(piece.data))
            mark = Mark(mono=call.mono + piece.at_ns, place=piece.place)
            yield _frame(call, "printed", events.CHUNK, mark, text=text)


def _of_turn(turn: TurnItem) -> Iterator[PlayFrame]:
    yield _frame(turn, "begin", events.TURN_START)
    for seam in turn.seams:
        yield _frame(turn, "seam", events.SEAM, seam.passed, seam=seam)
    if turn.ended is not None:
        is_failure = turn.failure is not None
        yield _frame(turn, "end", events.TURN_END, turn.ended, is_failure=is_failure)


def _frame(item: Item, part: Part, kind: str, mark: Mark | None = None, **more: Any) -> PlayFrame:
    """At the moment of `mark`, else when the item began."""
    at = mark or Mark(mono=item.mono, place=item.place)
    return PlayFrame(at_ns=at.mono, place=at.place, part=part, kind=kind, item=item, **more)


def _printed(note: NoteItem) -> str:
    data = note.data if isinstance(note.data, dict) else {}
    try:
        return unstyled(as_bytes(data).decode("utf-8", "replace"))
    except (TypeError, ValueError):
        return ""


def _counted(frames: Iterable[PlayFrame]) -> Iterator[PlayFrame]:
    """Each frame with what had been asked and spent by then."""
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
    """How far an item is moved in: one step for everything that encloses it."""
    depths: dict[str, int] = {}
    for ref, item in story.items.items():
        above = item.parent
        depths[ref] = min(_DEEPEST, depths[above] + 1) if above in depths else 0
    return depths
